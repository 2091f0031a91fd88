"""Which parameters say how far apart the lanes of a warp access memory.

In ``a[row * pitch + threadIdx.x * step]`` it is ``step``, and ``pitch`` only if rows differ between lanes:
what is added for all alike moves all alike.
"""

from __future__ import annotations

from attrs import field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import TID, Axis, BinaryOp, Expr, Kernel, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import accesses, operands, walk
from cuda_lsp.model import Site

_OF_THREADS = frozenset({*TID, Axis.LANE})
_SUMS = frozenset({BinaryOp.ADD, BinaryOp.SUB})


@frozen
class _Part:
    """Of an expression: whether lanes differ in it, its parameters, and those that say by how much."""

    varies: bool = False
    parameters: frozenset[str] = frozenset()
    factors: frozenset[str] = frozenset()

    def __or__(self, other: _Part) -> _Part:
        return _Part(
            self.varies or other.varies, self.parameters | other.parameters, self.factors | other.factors
        )


def between_lanes(kernel: Kernel, site: Site) -> frozenset[str]:
    """The integer parameters that addresses at a place are multiplied by, or cut with, lane by lane."""
    made: dict[Var, list[Expr]] = {}
    pointers: list[Expr] = []
    for s in walk(kernel.body):
        if isinstance(s, ir.Assign):
            made.setdefault(s.var, []).append(s.value)
        pointers += [pointer for pointer, _, at in accesses(s) if at.range == site.range]
    names = {p: p.name for p in kernel.params if isinstance(p.type, Int)}
    reader = _Reader(made, names)
    return frozenset[str]().union(*(reader.part(pointer).factors for pointer in pointers))


@frozen(eq=False)
class _Reader:
    made: dict[Var, list[Expr]]
    names: dict[Var, str]
    known: dict[Var, _Part] = field(factory=dict[Var, _Part])

    def part(self, e: Expr) -> _Part:
        if isinstance(e, Var):
            return self._variable(e)
        if isinstance(e, ir.Builtin):
            return _Part(varies=e.axis in _OF_THREADS)
        total = _Part()
        parts = [self.part(part) for part in operands(e)]
        for part in parts:
            total |= part
        multiplies = isinstance(e, ir.Binary) and e.op not in _SUMS
        if not multiplies or not total.varies:
            return total
        one, other = parts
        beside = frozenset[str]()
        if one.varies:
            beside |= other.parameters
        if other.varies:
            beside |= one.parameters
        return total | _Part(factors=beside)

    def _variable(self, var: Var) -> _Part:
        if var in self.names:
            return _Part(parameters=frozenset({self.names[var]}))
        if var not in self.known:
            self.known[var] = _Part()  # what it brings from round to round adds nothing
            total = _Part()
            for value in self.made.get(var, ()):
                total |= self.part(value)
            self.known[var] = total
        return self.known[var]
