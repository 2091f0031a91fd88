"""What the elements that a kernel reads have to be for it to make sense: indices, offsets, forests, counters.

Values that a kernel reads and uses as indices are followed through its assignments as linear terms.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Kernel, Var
from cuda_lsp.ir.walk import pointers, subexpressions, walk
from cuda_lsp.model import LaunchConfig, Space
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.execution.trace import array_bytes
from cuda_lsp.static.linear import linear
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
        found: dict[Array, int] = {}
        for part, factor in linear(e).items():  # masks and remainders keep the value small by themselves
            if isinstance(part, ir.Select):
                known = {**self.of(part.otherwise), **self.of(part.then)}
            else:
                known = self.known.get(part, {}) if isinstance(part, Var) else {}
            for array, times in known.items():
                found[array] = found.get(array, 0) + factor * times
        return found
