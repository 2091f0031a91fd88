"""What reaches something that counts: followed back through definitions, and through what memory holds.

Many ask, one for each loop with a barrier, so what a variable and an array hang on is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Stmt
from cuda_lsp.ir.walk import assigned, variables
from cuda_lsp.model import Space

_DEFINING = (ir.Assign, ir.Load, ir.Store, ir.Atomic)

Behind = tuple[Set[int], Set[int]]
"""Ids of variables and of arrays: what a value is made of, and in what it is kept."""


@define(eq=False)
class Needs:
    """Who defines what of a kernel.

    ``roots``: the arrays that a pointer may point into. ``reached``: those that others may store in, too.
    """

    roots: Callable[[Expr], Set[Array]]
    reached: Set[Array]
    _assigning: dict[int, list[Stmt]] = field(factory=dict[int, "list[Stmt]"])
    _storing: dict[int, list[ir.Store | ir.Atomic]] = field(factory=dict[int, "list[ir.Store | ir.Atomic]"])
    _named: dict[int, tuple[int, ...]] = field(factory=dict[int, "tuple[int, ...]"])  # by id() of expressions
    _behind: dict[int, Behind] = field(factory=dict[int, Behind])
    _stored: dict[int, set[int]] = field(factory=dict[int, "set[int]"])

    @staticmethod
    def of(statements: Iterable[Stmt], roots: Callable[[Expr], Set[Array]], reached: Set[Array]) -> Needs:
        """Those of all statements of a kernel."""
        needs = Needs(roots, reached)
        for s in statements:
            var = assigned(s)
            if var is not None and isinstance(s, _DEFINING):
                needs._assigning.setdefault(var.id, []).append(s)
            if isinstance(s, (ir.Store, ir.Atomic)):
                for array in roots(s.pointer) - reached:
                    needs._storing.setdefault(array.id, []).append(s)
        return needs

    def named(self, e: Expr) -> tuple[int, ...]:
        """The ids of the variables in an expression."""
        known = self._named.get(id(e))
        if known is None:
            known = self._named[id(e)] = tuple({v.id for v in variables(e)})
        return known

    def followed(self, wanted: Iterable[int], contents: Iterable[Array]) -> tuple[set[int], set[int]]:
        """All variables that these variables and contents of arrays hang on, and the arrays whose contents
        have part in that.
        """
        relevant, modelled = set(wanted), {a.id for a in contents}
        pending = [*relevant]
        for array in modelled:
            _add(self._kept(array), relevant, pending)
        while pending:
            named, held = self._made_of(pending.pop())
            _add(named, relevant, pending)
            for array in held - modelled:
                modelled.add(array)
                _add(self._kept(array), relevant, pending)
        return relevant, modelled

    def _made_of(self, var: int) -> Behind:
        known = self._behind.get(var)
        if known is None:
            named, held = set[int](), set[int]()
            for s in self._assigning.get(var, ()):
                if isinstance(s, ir.Assign):
                    named.update(self.named(s.value))
                elif isinstance(s, (ir.Load, ir.Store, ir.Atomic)):
                    named.update(self.named(s.pointer))
                if isinstance(s, ir.Load):
                    own = self.roots(s.pointer) - self.reached
                    held |= {a.id for a in own if a.space in (Space.SHARED, Space.LOCAL)}
            known = self._behind[var] = named, held
        return known

    def _kept(self, array: int) -> Set[int]:
        """The variables of all values that are stored in an array."""
        known = self._stored.get(array)
        if known is None:
            values = (
                (s.value,) if isinstance(s, ir.Store) else s.operands for s in self._storing.get(array, ())
            )
            known = self._stored[array] = {v for each in values for e in each for v in self.named(e)}
        return known


def _add(more: Set[int], to: set[int], pending: list[int]) -> None:
    new = more - to
    to |= new
    pending += new
