"""What the elements that a kernel reads have to be for it to make sense: indices, offsets, forests, counters.

Values that a kernel reads and uses as indices are followed through its assignments as linear terms.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, BinaryOp, Expr, Kernel, Var
from cuda_lsp.ir.walk import pointers, subexpressions, walk
from cuda_lsp.model import LaunchConfig, Space
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.execution.trace import array_bytes
from cuda_lsp.static.offset_arrays import offset_arrays
from cuda_lsp.static.slicing import Slice


@frozen
class Elements:
    """What a pointer parameter's integers have to be. ``below``: indices into an array of known size.

    ``ascending``: they bound stretches. ``forest``: they lead from one element to another, and never back.
    ``counter``: a program sets them to zero before the kernel runs.
    """

    below: int | None = None
    ascending: bool = False
    forest: bool = False
    counter: bool = False


def elements_of(kernel: Kernel, launch: LaunchConfig) -> Mapping[str, Elements]:
    """Every pointer parameter's elements, by its name."""
    flow = data_flow(kernel)
    limits, offsets = _index_limits(flow.slice, launch), offset_arrays(kernel)
    return {
        a.param.name: Elements(limits.get(a), a.param.name in offsets, a in flow.forests, a in flow.drawn)
        for a in kernel.arrays
        if a.param is not None
    }


def _index_limits(facts: Slice, launch: LaunchConfig) -> dict[Array, int]:
    """Below what elements must stay to index shared arrays of known size."""
    body = facts.kernel.body
    terms = _Terms(facts)
    for _ in range(2):  # twice: a loop may carry a value round
        for statement in walk(body):
            terms.take(statement)
    limits: dict[Array, int] = {}
    for pointer in (pointer for statement in walk(body) for pointer in pointers(statement)):
        sizes = [array_bytes(a, launch) for a in facts.roots(pointer) if a.space is Space.SHARED]
        known = [size for size in sizes if size]
        for array, factor in terms.of(pointer).items() if known else ():
            if factor:
                limit = _limit(min(known) // abs(factor), launch.threads, pointer)
                limits[array] = min(limit, limits.get(array, limit))
    return limits


def _limit(elements: int, threads: int, pointer: Expr) -> int:
    """``elements`` less what a thread's own number may add."""
    if any(isinstance(part, ir.Builtin) for part in subexpressions((pointer,))):
        elements = elements - threads + 1 if elements >= threads else elements // 2
    return max(1, elements)


@define
class _Terms:
    """For variables and expressions: the arrays whose elements they are linear in, with factors."""

    facts: Slice
    known: dict[Var, dict[Array, int]] = field(factory=dict[Var, dict[Array, int]])

    def take(self, s: ir.Stmt) -> None:
        if isinstance(s, ir.Load) and s.var is not None:
            roots = self.facts.roots(s.pointer)
            if len(roots) == 1:
                self._add(s.var, dict.fromkeys(roots, 1))
        elif isinstance(s, ir.Assign):
            self._add(s.var, self.of(s.value))

    def _add(self, var: Var, terms: Mapping[Array, int]) -> None:
        mine = self.known.setdefault(var, {})
        for array, factor in terms.items():
            mine[array] = max(factor, mine.get(array, factor), key=abs)

    def of(self, e: Expr) -> Mapping[Array, int]:
        if isinstance(e, Var):
            return self.known.get(e, {})
        if isinstance(e, ir.Cast):
            return self.of(e.operand)
        if isinstance(e, ir.Select):
            return {**self.of(e.otherwise), **self.of(e.then)}
        if isinstance(e, ir.Offset):
            return _sum(self.of(e.pointer), self.of(e.bytes), 1)
        return self._of_binary(e) if isinstance(e, ir.Binary) else {}

    def _of_binary(self, e: ir.Binary) -> Mapping[Array, int]:
        left, right = self.of(e.left), self.of(e.right)
        if e.op in (BinaryOp.ADD, BinaryOp.SUB):
            return _sum(left, right, 1 if e.op is BinaryOp.ADD else -1)
        if e.op is BinaryOp.MUL and isinstance(e.right, ir.Const):
            return _scaled(left, int(e.right.value))
        if e.op is BinaryOp.MUL and isinstance(e.left, ir.Const):
            return _scaled(right, int(e.left.value))
        if e.op is BinaryOp.SHL and isinstance(e.right, ir.Const):
            return _scaled(left, 1 << int(e.right.value))
        return {}  # masks and remainders keep the value small by themselves


def _sum(a: Mapping[Array, int], b: Mapping[Array, int], sign: int) -> Mapping[Array, int]:
    return {array: a.get(array, 0) + sign * b.get(array, 0) for array in {**a, **b}}


def _scaled(terms: Mapping[Array, int], factor: int) -> Mapping[Array, int]:
    return {array: known * factor for array, known in terms.items()}
