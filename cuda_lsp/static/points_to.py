"""Into which arrays each pointer of a kernel may point, every way that it is set included.

Independent of the order of statements. A table of pointers that a thread keeps for itself holds what is
stored into it; of any other memory, nobody knows what pointers it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Kernel, Stmt, Var
from cuda_lsp.ir.types import Pointer
from cuda_lsp.ir.walk import assigned, destinations, walk
from cuda_lsp.model import Space
from cuda_lsp.static import budgets

Pointees = frozenset[Array] | None
"""The arrays that a pointer may point into; None: nobody knows."""

_NONE: frozenset[Array] = frozenset()


@lru_cache(maxsize=budgets.KEPT_FACTS)  # as ``facts_of``
def points_to(kernel: Kernel) -> PointsTo:
    """Of one kernel; a few passes over its statements."""
    result = PointsTo(kernel.arrays, dict.fromkeys(kernel.params))
    result.variables |= {array.param: frozenset({array}) for array in kernel.arrays if array.param}
    statements = [s for s in walk(kernel.body) if _sets_pointers(s)]
    before = -1
    while before != (before := result.known):
        for s in statements:
            result.take(s)
    return result


@define(eq=False)
class PointsTo:
    """``arrays``: of the kernel. ``variables``: of pointer variables. ``tables``: of what the thread's own
    arrays hold.

    ``anywhere``: something is written that may lie in such an array as well.
    """

    arrays: tuple[Array, ...]
    variables: dict[Var, Pointees]
    tables: dict[Array, Pointees] = field(factory=dict[Array, Pointees])
    anywhere: bool = False

    @property
    def known(self) -> int:
        """Grows with everything that is found."""
        every = (*self.variables.values(), *self.tables.values())
        return self.anywhere + sum(1 + (len(x) if x is not None else 1 << 32) for x in every)

    def of(self, pointer: Expr) -> Pointees:
        """Where a pointer may point."""
        match pointer:
            case ir.AddressOf():
                return frozenset({pointer.array})
            case Var():
                return self.variables.get(pointer, _NONE)
            case ir.Offset():
                return self.of(pointer.pointer)
            case ir.Cast() if isinstance(pointer.operand.type, Pointer):
                return self.of(pointer.operand)
            case ir.Select():
                return _either(self.of(pointer.then), self.of(pointer.otherwise))
            case ir.Const(value=0):
                return _NONE
            case _:
                return None

    def written(self, statements: Iterable[Stmt]) -> Pointees:
        """The arrays that stores, atomics and copies may write, and those that may overlap them."""
        found: Pointees = _NONE
        for s in walk(statements):
            for pointer in destinations(s):
                found = _either(found, self.of(pointer))
        if found is None:
            return None
        groups = {array.may_alias for array in found} - {None}
        return found | {array for array in self.arrays if array.may_alias in groups}

    def take(self, s: Stmt) -> None:
        """What one statement sets pointers to."""
        var = assigned(s)
        if var is not None and isinstance(var.type, Pointer):
            self.variables[var] = _either(self.variables.get(var, _NONE), self._given(s))
        for pointer in destinations(s):
            places = self.of(pointer)
            self.anywhere = self.anywhere or places is None
            for array in places or _NONE:
                if array.space is Space.LOCAL:
                    self.tables[array] = _either(self.tables.get(array, _NONE), self._stored(s))

    def _given(self, s: Stmt) -> Pointees:
        if isinstance(s, ir.Assign):
            return self.of(s.value)
        return self._held(self.of(s.pointer)) if isinstance(s, ir.Load) else None

    def _held(self, where: Pointees) -> Pointees:
        """What pointers in these arrays point to."""
        if where is None or self.anywhere or any(array.space is not Space.LOCAL for array in where):
            return None
        found: Pointees = _NONE
        for array in where:
            found = _either(found, self.tables.get(array, _NONE))
        return found

    def _stored(self, s: Stmt) -> Pointees:
        if isinstance(s, ir.Store):
            if isinstance(s.value.type, Pointer):
                return self.of(s.value)
            # Numbers beside pointers, in a record: none of them is one.
            return _NONE if s.type.size < Pointer().size else None
        return None


def _sets_pointers(s: Stmt) -> bool:
    return assigned(s) is not None or bool(destinations(s))


def _either(a: Pointees, b: Pointees) -> Pointees:
    return None if a is None or b is None else a | b
