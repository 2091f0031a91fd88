"""Contents of buffers that make a race's conditions true: one value for all elements of each array.

What the conditions in front of both accesses read is followed through assignments, and values near the
numbers that they name are tried, the smallest first.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.ops import BINARY, UNARY
from cuda_lsp.ir.program import Array, BinaryOp, Expr, Kernel, Stmt, Var
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.ir.walk import operands, pointers, used, variables
from cuda_lsp.model import Dim3, Finding
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.launches.coordinates import THREAD_AXES
from cuda_lsp.static.slicing import Slice

_OF_FLOATS: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul,
    BinaryOp.LT: operator.lt, BinaryOp.LE: operator.le, BinaryOp.GT: operator.gt, BinaryOp.GE: operator.ge,
    BinaryOp.EQ: operator.eq, BinaryOp.NE: operator.ne, BinaryOp.MIN: min, BinaryOp.MAX: max,
}  # fmt: skip


class _NotKnown(Exception):
    """The value depends on more than arrays, scalars and the thread."""


def contents_for(kernel: Kernel, finding: Finding, arguments: Mapping[str, int]) -> dict[str, float]:
    """One value for all elements of each array that the conditions in front of a race read.

    Empty: there are no such conditions, or none that a value for each array fulfils. Arrays that the accesses
    are indexed by are left out: equal indices would make a race of every scatter.
    """
    search = _Search(kernel, data_flow(kernel).slice, arguments)
    witness = finding.witness
    early, late = witness.threads if witness else ((0, 0, 0), (0, 0, 0))
    places = [(finding.site.range, late), *((other.site.range, early) for other in finding.related[:1])]
    needed: list[tuple[_Guard, Dim3]] = []
    indices: set[Array] = set()
    for place, thread in places:
        found = next((d for d in search.accesses if d.statement.site.range == place), None)
        if found is not None:
            needed += [(guard, thread) for guard in found.guards if search.arrays(guard.condition)]
            indices |= {a for p in pointers(found.statement) for a in search.arrays(p)}
    needed = [one for one in needed if not search.arrays(one[0].condition) & indices]
    return search.solution(needed) if needed else {}


@frozen
class _Guard:
    """A condition that has an outcome where a statement is executed; ``order``: of its own statement."""

    condition: Expr
    outcome: bool
    order: int


@frozen
class _Placed:
    """A statement with its place in the program's order and what guards it."""

    statement: Any
    order: int
    guards: tuple[_Guard, ...]


def _placed(statements: Sequence[Stmt], held: tuple[_Guard, ...], orders: Iterator[int]) -> Iterator[_Placed]:
    """Every statement, in program order."""
    for s in statements:
        order = next(orders)
        yield _Placed(s, order, held)
        if isinstance(s, ir.If):
            yield from _placed(s.then, (*held, _Guard(s.condition, True, order)), orders)
            yield from _placed(s.otherwise, (*held, _Guard(s.condition, False, order)), orders)
            if _leaves(s.then) or _leaves(s.otherwise):
                held = (*held, _Guard(s.condition, not _leaves(s.then), order))
        elif isinstance(s, ir.Loop):
            yield from _placed((*s.test, *s.body, *s.step), (*held, _Guard(s.condition, True, order)), orders)
        elif isinstance(s, ir.Block):
            yield from _placed(s.body, held, orders)


def _leaves(statements: Sequence[Stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ir.Leave)


@define
class _Search:
    kernel: Kernel
    facts: Slice
    arguments: Mapping[str, int]
    fill: dict[Array, float] = field(factory=dict[Array, float])
    thread: Dim3 = (0, 0, 0)
    definitions: dict[int, list[_Placed]] = field(factory=dict[int, "list[_Placed]"])
    accesses: list[_Placed] = field(factory=list["_Placed"])

    def __attrs_post_init__(self) -> None:
        for placed in _placed(self.kernel.body, (), itertools.count()):
            s = placed.statement
            if isinstance(s, (ir.Load, ir.Store, ir.Atomic, ir.Copy)):
                self.accesses.append(placed)
            if isinstance(s, (ir.Assign, ir.Load)) and s.var is not None:
                self.definitions.setdefault(s.var.id, []).append(placed)

    def arrays(self, e: Expr) -> set[Array]:
        """The pointer parameters' arrays that the value is read from."""
        found: set[Array] = set()
        seen: set[int] = set()
        pending = list(variables(e))
        while pending:
            var = pending.pop()
            if var.id in seen:
                continue
            seen.add(var.id)
            for placed in self.definitions.get(var.id, ()):
                s = placed.statement
                if isinstance(s, ir.Load):
                    found |= {a for a in self.facts.roots(s.pointer) if a.param is not None}
                else:
                    pending += (v for part in used(s) for v in variables(part))
        return found

    def solution(self, needed: Sequence[tuple[_Guard, Dim3]]) -> dict[str, float]:
        arrays = sorted({a for guard, _ in needed for a in self.arrays(guard.condition)}, key=lambda a: a.id)
        numbers = self._candidates(guard.condition for guard, _ in needed)
        choices = itertools.product(*(self._fitting(array, numbers) for array in arrays))
        found: dict[Array, float] = {}
        matters = False  # some choice is known to be wrong
        for values in itertools.islice(choices, budgets.MOST_CONTENTS_TRIED):
            self.fill = dict(zip(arrays, values, strict=True))
            held = [self._holds(*one) for one in needed]
            if False in held:
                matters = True
                continue
            found = found or self.fill
            if all(held):
                break
        return {a.param.name: v for a, v in found.items() if a.param is not None} if matters else {}

    def _fitting(self, array: Array, numbers: Iterable[float]) -> list[float]:
        element = array.element
        if isinstance(element, Int):
            whole = {int(n) for n in numbers if float(n).is_integer()}
            return sorted((n for n in whole if element.wrap(n) == n), key=abs)
        return sorted(numbers, key=abs) if isinstance(element, Float) else [0]

    def _candidates(self, conditions: Iterable[Expr]) -> list[float]:
        """Numbers near those that the conditions name, the smallest first."""
        found: set[float] = {0, 1}
        for e in conditions:
            for part in self._named(e):
                if math.isfinite(part):
                    found |= {part, part - 1, part + 1}
        return sorted(found, key=abs)[: budgets.MOST_CONTENTS_VALUES]

    def _named(self, e: Expr) -> Iterator[float]:
        pending, seen = [e], set[int]()
        while pending:
            part = pending.pop()
            if isinstance(part, ir.Const):
                yield part.value
            elif isinstance(part, Var):
                if part.name in self.arguments:
                    yield self.arguments[part.name]
                if part.id not in seen:
                    seen.add(part.id)
                    known = (d.statement for d in self.definitions.get(part.id, ()))
                    pending += (s.value for s in known if isinstance(s, ir.Assign))
            pending += operands(part)

    def _holds(self, guard: _Guard, thread: Dim3) -> bool | None:
        """Whether a guard has its outcome; None: more decides than what is known."""
        self.thread = thread
        try:
            return bool(self.value(guard.condition, guard.order)) is guard.outcome
        except (_NotKnown, ZeroDivisionError, OverflowError, ValueError):
            return None

    def value(self, e: Expr, order: int) -> Any:
        """What an expression is where the statement ``order`` stands. Raises _NotKnown."""
        if isinstance(e, ir.Const):
            return e.value
        if isinstance(e, ir.Builtin) and e.axis in THREAD_AXES:
            return self.thread[THREAD_AXES.index(e.axis)]
        if isinstance(e, Var):
            return self._variable(e, order)
        if isinstance(e, ir.Cast):
            inner = self.value(e.operand, order)
            return e.type.wrap(int(inner)) if isinstance(e.type, Int) else inner
        if isinstance(e, ir.Unary):
            inner = self.value(e.operand, order)
            return UNARY[e.op].python(inner, e.type) if isinstance(e.type, Int) else -inner
        if isinstance(e, ir.Select):
            return self.value(e.then if self.value(e.condition, order) else e.otherwise, order)
        if isinstance(e, ir.Binary):
            return self._binary(e, order)
        raise _NotKnown

    def _variable(self, var: Var, order: int) -> Any:
        if var.name in self.arguments and var in self.kernel.params:
            return self.arguments[var.name]
        for placed in reversed(self.definitions.get(var.id, ())):
            if placed.order >= order or not all(
                bool(self.value(g.condition, g.order)) is g.outcome for g in placed.guards
            ):
                continue
            s = placed.statement
            if isinstance(s, ir.Assign):
                return self.value(s.value, placed.order)
            known = [array for array in self.facts.roots(s.pointer) if array in self.fill]
            if len(known) == 1:
                return self.fill[known[0]]
            break
        raise _NotKnown

    def _binary(self, e: ir.Binary, order: int) -> Any:
        left = self.value(e.left, order)
        if e.op is BinaryOp.AND and not left:
            return 0
        if e.op is BinaryOp.OR and left:
            return 1
        right = self.value(e.right, order)
        kind = e.left.type
        if isinstance(kind, Int) and isinstance(left, int) and isinstance(right, int):
            value = BINARY[e.op].exact(left, right, kind)
            if value is None:
                raise _NotKnown
            return value
        if e.op not in _OF_FLOATS:
            raise _NotKnown
        return _OF_FLOATS[e.op](left, right)
