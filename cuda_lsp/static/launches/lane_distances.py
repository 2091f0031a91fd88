"""Which parameters say how far apart the lanes of a warp access memory.

In ``a[row * pitch + threadIdx.x * step]`` it is ``step``, and ``pitch`` only if rows differ between lanes:
what is added for all alike moves all alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import TID, Axis, BinaryOp, Expr, Kernel, Stmt, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import accesses, children, operands
from cuda_lsp.model import WARP_SIZE, Dim3, Site

_OF_THREADS = frozenset({*TID, Axis.LANE})
_SUMS = frozenset({BinaryOp.ADD, BinaryOp.SUB})
_CUTTING = frozenset({BinaryOp.DIV, BinaryOp.REM, BinaryOp.SHR, BinaryOp.BAND})


@frozen
class _Part:
    """Of an expression: whether lanes differ in it, its parameters, and those that say by how much.

    ``divisors``: those among the latter that cut what lanes differ in: they say which lanes lie in one row.
    """

    varies: bool = False
    parameters: frozenset[str] = frozenset()
    factors: frozenset[str] = frozenset()
    divisors: frozenset[str] = frozenset()

    def __or__(self, other: _Part) -> _Part:
        return _Part(
            self.varies or other.varies,
            self.parameters | other.parameters,
            self.factors | other.factors,
            self.divisors | other.divisors,
        )


def between_lanes(
    kernel: Kernel, site: Site, block: Dim3 | None = None
) -> tuple[frozenset[str], frozenset[str]]:
    """The integer parameters that addresses at a place are multiplied by, or cut with, lane by lane.

    All of them, and those that cut. ``block``: a warp is part of one of its rows where these are as long.
    """
    found = _Values()
    found.collect(kernel.body, site, ())
    named = {p: p.name for p in kernel.params if isinstance(p.type, Int)}
    reader = _Reader(found.made, named, _varying(block))
    parts = [reader.part(pointer) for pointer in found.pointers]
    nothing = frozenset[str]()
    return nothing.union(*(part.factors for part in parts)), nothing.union(*(part.divisors for part in parts))


def _varying(block: Dim3 | None) -> frozenset[Axis]:
    """Coordinates in which the lanes of a warp differ."""
    if block is None:
        return _OF_THREADS
    along = (TID[i] for i in range(3) if i == 0 or math.prod(block[:i]) % WARP_SIZE)
    return frozenset((*along, Axis.LANE))


def counters_between_lanes(kernel: Kernel, site: Site, counters: Collection[str]) -> frozenset[str]:
    """The counters of loops that do so, or that say which lanes come to the place."""
    found = _Values(with_conditions=True)
    found.collect(kernel.body, site, ())
    named = {var: var.name for var in found.made if var.name in counters}
    reader = _Reader(found.made, named)
    return frozenset[str]().union(*(reader.part(e).factors for e in (*found.pointers, *found.conditions)))


@define
class _Values:
    """What variables are made of, and where a place is; with the conditions that decide of both, if asked."""

    with_conditions: bool = False
    made: dict[Var, list[Expr]] = field(factory=dict[Var, list[Expr]])
    pointers: list[Expr] = field(factory=list[Expr])
    conditions: list[Expr] = field(factory=list[Expr])

    def collect(self, body: Sequence[Stmt], site: Site, around: tuple[Expr, ...]) -> None:
        for s in body:
            if isinstance(s, ir.Assign):
                self.made.setdefault(s.var, []).extend((s.value, *around))
            if isinstance(s, ir.Leave):
                self.conditions += around  # who leaves does not come to what follows
            found = [pointer for pointer, _, at in accesses(s) if at.range == site.range]
            self.pointers += found
            self.conditions += around if found else ()
            within = (
                (*around, s.condition) if self.with_conditions and isinstance(s, ir.If | ir.Loop) else around
            )
            for inner in children(s):
                self.collect(inner, site, within)


@frozen(eq=False)
class _Reader:
    made: Mapping[Var, Sequence[Expr]]
    names: Mapping[Var, str]
    varying: frozenset[Axis] = _OF_THREADS
    known: dict[Var, _Part] = field(factory=dict[Var, _Part])

    def part(self, e: Expr) -> _Part:
        if isinstance(e, Var):
            return self._variable(e)
        if isinstance(e, ir.Builtin):
            return _Part(varies=e.axis in self.varying)
        total = _Part()
        parts = [self.part(part) for part in operands(e)]
        for part in parts:
            total |= part
        if isinstance(e, ir.Select) and total.varies:
            return total | _Part(factors=self.part(e.condition).parameters)
        if not isinstance(e, ir.Binary) or e.op in _SUMS or not total.varies:
            return total
        one, other = parts
        beside = frozenset[str]()
        if one.varies:
            beside |= other.parameters
        if other.varies:
            beside |= one.parameters
        cuts = e.op in _CUTTING and one.varies
        return total | _Part(factors=beside, divisors=other.parameters if cuts else frozenset())

    def _variable(self, var: Var) -> _Part:
        if var not in self.known:
            named = frozenset({self.names[var]}) if var in self.names else frozenset[str]()
            self.known[var] = total = _Part(
                parameters=named
            )  # what it brings from round to round adds nothing
            for value in self.made.get(var, ()):
                total |= self.part(value)
            self.known[var] = total
        return self.known[var]
