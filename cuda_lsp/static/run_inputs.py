"""What a kernel asks of its buffers when it runs on its own: sizes, valid indices, contents for a condition.

Sizes come from an execution under the launch and its scalars (``enumerate``). Values that a kernel reads and
uses as indices are followed through its assignments as linear terms. For a finding under conditions on data,
one value for each array is searched that makes the conditions in front of both accesses true. All three are
proposals: a run shows whether they fit.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.ir.ops import BINARY, UNARY
from cuda_lsp.ir.program import (
    Array,
    Assign,
    Atomic,
    Axis,
    Binary,
    BinaryOp,
    Block,
    Builtin,
    Cast,
    Const,
    Copy,
    Expr,
    If,
    Kernel,
    Leave,
    Load,
    Loop,
    Offset,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.ir.walk import operands, pointers, subexpressions, used, variables, walk
from cuda_lsp.model import Dim3, Finding, GpuModel, LaunchConfig, Space
from cuda_lsp.static.execution.enumerate import execute, facts_of
from cuda_lsp.static.execution.trace import Budget, Trace, array_bytes, spread_out
from cuda_lsp.static.execution.values import Data
from cuda_lsp.static.slicing import Slice

_BUDGET = Budget(milliseconds=60.0)
_MOST_TRIED = 4000
_MOST_VALUES = 16
_ARITHMETIC: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul,
    BinaryOp.LT: operator.lt, BinaryOp.LE: operator.le, BinaryOp.GT: operator.gt, BinaryOp.GE: operator.ge,
    BinaryOp.EQ: operator.eq, BinaryOp.NE: operator.ne, BinaryOp.MIN: min, BinaryOp.MAX: max,
}  # fmt: skip

_TID = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z)

# ------------------------------------------------------------------------------------------ sizes


def buffer_bytes(
    kernel: Kernel, launch: LaunchConfig, arguments: Mapping[str, int], gpu: GpuModel
) -> dict[str, int]:
    """Bytes that accesses of the first and last block reach, by pointer parameter. The grid is known."""
    x, y, z = launch.grid or (1, 1, 1)
    blocks = tuple(dict.fromkeys([(0, 0, 0), (x - 1, y - 1, z - 1)]))
    needed: dict[str, int] = {}
    for array, end in _ends(execute(kernel, launch, arguments, gpu, _BUDGET, blocks=blocks)):
        if array.param is not None:
            needed[array.param.name] = max(end, needed.get(array.param.name, 0))
    return needed


def _ends(trace: Trace) -> Iterator[tuple[Array, int]]:
    for path in trace.paths:
        for access in path.accesses:
            yield access.array, _end(access.offset, access.size, access.may)
        for load, array, offset, flags in path.reads.values():
            yield array, _end(offset, load.type.size, flags)


def _end(offset: Any, size: int, lanes: Any) -> int:
    """The byte behind the furthest one of an access; 0: not known."""
    if isinstance(offset, Data):
        offset = offset.high
    if offset is None:
        return 0
    flags = np.asarray(lanes)
    reached = spread_out(offset, flags.shape)
    reached = reached[np.broadcast_to(flags, reached.shape)]
    return int(reached.max()) + size if reached.size else 0


# --------------------------------------------------------------------------- values used as indices


def index_limits(kernel: Kernel, launch: LaunchConfig) -> dict[str, int]:
    """Below what the elements of pointer parameters must stay to index arrays of known size, by parameter."""
    facts = facts_of(kernel)
    terms = _Terms(facts)
    for _ in range(2):  # twice: a loop may carry a value round
        for statement in walk(kernel.body):
            terms.take(statement)
    limits: dict[str, int] = {}
    for statement in walk(kernel.body):
        for pointer in pointers(statement):
            sizes = [array_bytes(a, launch) for a in facts.roots(pointer) if a.space is Space.SHARED]
            known = [size for size in sizes if size]
            for array, factor in terms.of(pointer).items() if known else ():
                if array.param is not None and factor:
                    limit = _limit(min(known) // abs(factor), launch.threads, pointer)
                    limits[array.param.name] = min(limit, limits.get(array.param.name, limit))
    return limits


def _limit(elements: int, threads: int, pointer: Expr) -> int:
    """``elements`` less what a thread's own number may add."""
    if any(isinstance(part, Builtin) for part in subexpressions((pointer,))):
        elements = elements - threads + 1 if elements >= threads else elements // 2
    return max(1, elements)


@define
class _Terms:
    """For variables and expressions: the arrays whose elements they are linear in, with factors."""

    facts: Slice
    known: dict[int, dict[Array, int]] = field(factory=dict[int, dict[Array, int]])

    def take(self, s: Stmt) -> None:
        if isinstance(s, Load) and s.var is not None:
            roots = self.facts.roots(s.pointer)
            if len(roots) == 1:
                self._add(s.var, dict.fromkeys(roots, 1))
        elif isinstance(s, Assign):
            self._add(s.var, self.of(s.value))

    def _add(self, var: Var, terms: Mapping[Array, int]) -> None:
        mine = self.known.setdefault(var.id, {})
        for array, factor in terms.items():
            mine[array] = max(factor, mine.get(array, factor), key=abs)

    def of(self, e: Expr) -> Mapping[Array, int]:
        if isinstance(e, Var):
            return self.known.get(e.id, {})
        if isinstance(e, Cast):
            return self.of(e.operand)
        if isinstance(e, Select):
            return {**self.of(e.otherwise), **self.of(e.then)}
        if isinstance(e, Offset):
            return _sum(self.of(e.pointer), self.of(e.bytes), 1)
        if not isinstance(e, Binary):
            return {}
        left, right = self.of(e.left), self.of(e.right)
        if e.op in (BinaryOp.ADD, BinaryOp.SUB):
            return _sum(left, right, 1 if e.op is BinaryOp.ADD else -1)
        if e.op is BinaryOp.MUL and isinstance(e.right, Const):
            return {array: factor * int(e.right.value) for array, factor in left.items()}
        if e.op is BinaryOp.MUL and isinstance(e.left, Const):
            return {array: factor * int(e.left.value) for array, factor in right.items()}
        if e.op is BinaryOp.SHL and isinstance(e.right, Const):
            return {array: factor << int(e.right.value) for array, factor in left.items()}
        return {}  # masks and remainders keep the value small by themselves


def _sum(a: Mapping[Array, int], b: Mapping[Array, int], sign: int) -> dict[Array, int]:
    return {array: a.get(array, 0) + sign * b.get(array, 0) for array in {**a, **b}}


# ------------------------------------------------------------------------ contents for a condition


class _NotKnown(Exception):
    """The value depends on more than arrays, scalars and the thread."""


def contents_for(kernel: Kernel, finding: Finding, arguments: Mapping[str, int]) -> dict[str, float]:
    """One value for all elements of each array that the conditions in front of a race read.

    Empty: there are no such conditions, or none that a value for each array fulfils. Arrays that the accesses
    are indexed by are left out: equal indices would make a race of every scatter.
    """
    search = _Search(kernel, facts_of(kernel), arguments)
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
        if isinstance(s, If):
            yield from _placed(s.then, (*held, _Guard(s.condition, True, order)), orders)
            yield from _placed(s.otherwise, (*held, _Guard(s.condition, False, order)), orders)
            if _leaves(s.then) or _leaves(s.otherwise):
                held = (*held, _Guard(s.condition, not _leaves(s.then), order))
        elif isinstance(s, Loop):
            yield from _placed((*s.test, *s.body, *s.step), (*held, _Guard(s.condition, True, order)), orders)
        elif isinstance(s, Block):
            yield from _placed(s.body, held, orders)


def _leaves(statements: Sequence[Stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], Leave)


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
            if isinstance(s, (Load, Store, Atomic, Copy)):
                self.accesses.append(placed)
            if isinstance(s, (Assign, Load)) and s.var is not None:
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
                if isinstance(s, Load):
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
        for values in itertools.islice(choices, _MOST_TRIED):
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
        return sorted(found, key=abs)[:_MOST_VALUES]

    def _named(self, e: Expr) -> Iterator[float]:
        pending, seen = [e], set[int]()
        while pending:
            part = pending.pop()
            if isinstance(part, Const):
                yield part.value
            elif isinstance(part, Var):
                if part.name in self.arguments:
                    yield self.arguments[part.name]
                if part.id not in seen:
                    seen.add(part.id)
                    known = (d.statement for d in self.definitions.get(part.id, ()))
                    pending += (s.value for s in known if isinstance(s, Assign))
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
        if isinstance(e, Const):
            return e.value
        if isinstance(e, Builtin) and e.axis in _TID:
            return self.thread[_TID.index(e.axis)]
        if isinstance(e, Var):
            return self._variable(e, order)
        if isinstance(e, Cast):
            inner = self.value(e.operand, order)
            return e.type.wrap(int(inner)) if isinstance(e.type, Int) else inner
        if isinstance(e, Unary):
            inner = self.value(e.operand, order)
            return UNARY[e.op].python(inner, e.type) if isinstance(e.type, Int) else -inner
        if isinstance(e, Select):
            return self.value(e.then if self.value(e.condition, order) else e.otherwise, order)
        if isinstance(e, Binary):
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
            if isinstance(s, Assign):
                return self.value(s.value, placed.order)
            known = [array for array in self.facts.roots(s.pointer) if array in self.fill]
            if len(known) == 1:
                return self.fill[known[0]]
            break
        raise _NotKnown

    def _binary(self, e: Binary, order: int) -> Any:
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
        if e.op not in _ARITHMETIC:
            raise _NotKnown
        return _ARITHMETIC[e.op](left, right)
