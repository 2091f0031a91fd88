"""What is stored where the kernel reads as well, and hangs on nothing that it read there: no update.

``float4 v = x[id[i]]; v.x = f(i); x[id[i]] = v``: fields are put back as they were. As of any scatter, ids
may differ. An update puts back what it made of the old number, chooses by it (``if (!seen[v]) seen[v] = 1``),
or hands it on (``next[i] = head[k]; head[k] = i``). Values are those of the kernel with floats followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Stmt, Var
from cuda_lsp.ir.walk import accesses, assigned, inside, operands, stripped, subexpressions, used, variables
from cuda_lsp.model import Space
from cuda_lsp.static.data_flow import Accessed, DataFlow, Source, data_flow


def stored_over(flow: DataFlow, a: Accessed) -> bool:
    """Nothing that is stored at the place of ``a`` hangs on what was there, nor does anything else."""
    kernel = flow.slice.kernel
    seen = flow if kernel.followed is None else data_flow(kernel.followed)
    places = [x for x in seen.at(a.site.range) if x.mode is a.mode]
    addresses = {x.address for x in places}
    if len(addresses) != 1:
        return False
    arrays = frozenset(array for x in places for array in x.arrays)
    return _Followed(seen, arrays, addresses.pop()).goes_nowhere()


@define(eq=False)
class _Followed:
    """Where what stands at one place goes. ``kept``: variables that hold it as it was; ``made``: variables,
    and arrays of threads, that hang on it. ``read``: the place was read, so that values of which nothing is
    known may be made of it.
    """

    flow: DataFlow
    arrays: frozenset[Array]
    address: frozenset[Source]
    kept: set[Var] = field(factory=set[Var])
    made: set[Var | Array] = field(factory=set["Var | Array"])
    read: bool = False

    def goes_nowhere(self) -> bool:
        """It is put back, as it was, or dropped."""
        known = -1
        while known != len(self.kept) + len(self.made):
            known = len(self.kept) + len(self.made)
            self.read = False
            if not self._all(self.flow.slice.kernel.body, False):
                return False
        return True

    def _all(self, statements: Sequence[Stmt], chosen: bool) -> bool:
        """``chosen``: whether these are executed hangs on it."""
        return all(self._one(s, chosen) for s in statements)

    def _one(self, s: Stmt, chosen: bool) -> bool:
        match s:
            case ir.If():
                chosen = chosen or self._hangs(s.condition)
                leaves = chosen and any(isinstance(x, ir.Leave) for x in inside(s))
                return not leaves and self._all((*s.then, *s.otherwise), chosen)
            case ir.Loop():
                self.read |= any(isinstance(x, ir.Load) and self._is_here(x.pointer) for x in inside(s))
                chosen = chosen or self._hangs(s.condition)
                return self._all((*s.test, *s.body, *s.step), chosen)
            case ir.Block():
                return self._all(s.body, chosen)
            case ir.Load():
                return self._loads(s, chosen)
            case ir.Assign():
                self._assigns(s, chosen)
                return True
            case ir.Store():
                return self._stores(s, chosen)
            case ir.Incomplete():
                return s.harmless
            case _:
                return self._is_apart(s, chosen)

    def _loads(self, s: ir.Load, chosen: bool) -> bool:
        roots = self.flow.slice.roots(s.pointer)
        here = self._is_here(s.pointer)
        self.read |= here
        if s.var is not None and (chosen or self._hangs(s.pointer) or roots & self.made):
            self.made.add(s.var)
        elif s.var is not None and here:
            self.kept.add(s.var)
        return bool(roots)

    def _assigns(self, s: ir.Assign, chosen: bool) -> None:
        if not chosen and self._is_kept(s.value):
            self.kept.add(s.var)
        elif chosen or self._hangs(s.value):
            self.made.add(s.var)

    def _stores(self, s: ir.Store, chosen: bool) -> bool:
        roots = self.flow.slice.roots(s.pointer)
        if roots and all(array.space is Space.LOCAL for array in roots):
            if chosen or self._hangs(s.value) or self._hangs(s.pointer):
                self.made |= roots
            return True
        if chosen or self._hangs(s.pointer):
            return False
        if self._is_here(s.pointer):
            return all(self._is_kept(e) or not self._hangs(e) for e in _fields(s.value))
        return bool(roots) and not self._hangs(s.value)

    def _is_apart(self, s: Stmt, chosen: bool) -> bool:
        """Atomics, copies, barriers: none of it is here, and they know nothing of it."""
        elsewhere = not any(self.flow.slice.roots(p) & self.arrays for p, _, _ in accesses(s))
        own = not chosen and not any(map(self._hangs, used(s)))
        if chosen and (var := assigned(s)) is not None:
            self.made.add(var)
        return elsewhere and own

    def _is_here(self, pointer: Expr) -> bool:
        return bool(self.flow.slice.roots(pointer) & self.arrays) and self.flow.of(pointer) == self.address

    def _is_kept(self, e: Expr) -> bool:
        return (held := stripped(e)) in self.kept and held not in self.made

    def _hangs(self, e: Expr) -> bool:
        unknown = (x for x in subexpressions((e,)) if isinstance(x, ir.Unknown))
        if self.read and any(not x.inputs and not x.uniform for x in unknown):
            return True
        return any(v in self.kept or v in self.made for v in variables(e))


def _fields(value: Expr) -> Iterator[Expr]:
    """Of a record that is put together its fields."""
    whole = stripped(value)
    together = isinstance(whole, ir.Intrinsic) and whole.name.startswith("a record's value")
    yield from operands(whole) if together else (value,)
