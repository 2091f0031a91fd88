"""Rows of a sparse matrix that a block takes one after the other, its threads an entry each.

``for (e = first[r] + threadIdx.x; e < first[r + 1]; e += blockDim.x) x[column[e]] -= d * v[e];``, and then a
barrier: the columns of one row differ. It is a row where what is added to each column is the entry times what
the row has, a number that is read for the row (elimination, products of sparse matrices); weights that are
summed up by keys have none. Not where threads share entries, or go on to the next row without a barrier.
Two blocks have different rows, whose columns may be the same (``y[column[e]] += x[r] * v[e]``); not where the
row's number is one of those that are updated (``d = x[r]``): what other blocks did there would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BDIM, TID, Array, Axis, BarrierPhase, BarrierScope, BinaryOp, Expr, Stmt, Var
from cuda_lsp.ir.walk import assigned, children, inside, stripped, subexpressions
from cuda_lsp.static.data_flow import Accessed, DataFlow
from cuda_lsp.static.linear import linear
from cuda_lsp.static.slicing import givers

_OWN = frozenset({*TID, Axis.LANE})
_UNSET = "an uninitialised variable"

_Around = tuple[ir.Loop, ...]
"""The loops around a statement, the outermost first."""


def along_one_row(flow: DataFlow, a: Accessed, b: Accessed, ids: frozenset[Array], same_block: bool) -> bool:
    """Two threads of one block that are at both accesses at once have different entries of one row.

    Of two blocks: neither works on what the other's rows are made of.
    """
    places = {a.site.range, b.site.range}
    found = list(_with_loops(flow.slice.kernel.body, ()))
    reads = [(s, loops) for s, loops in found if isinstance(s, ir.Load) and flow.slice.roots(s.pointer) & ids]
    there = [(s, loops) for s, loops in found if isinstance(s, ir.Load | ir.Store) and s.site.range in places]
    around = {tuple(map(id, loops)): loops for _, loops in (*reads, *there)}
    if len(around) != 1 or not reads:
        return False
    (loops,) = around.values()
    if not loops or not all(_has_barrier(loop) for loop in loops[:-1]):
        return False
    row, own = _Row(flow, loops[-1]), None if same_block else a.arrays
    return (
        row.is_shared_out()
        and all(row.is_entry(s.pointer) for s, _ in reads)
        and all(row.scales_entry(s.value, own) for s, _ in there if isinstance(s, ir.Store))
    )


def _with_loops(statements: Sequence[Stmt], around: _Around) -> Iterator[tuple[Stmt, _Around]]:
    for s in statements:
        yield s, around
        for part in children(s):
            yield from _with_loops(part, (*around, s) if isinstance(s, ir.Loop) else around)


def _has_barrier(loop: ir.Loop) -> bool:
    """The block meets in each of its rounds."""
    barriers = (s for s in loop.body if isinstance(s, ir.Barrier))
    return any(s.scope is BarrierScope.BLOCK and s.phase is BarrierPhase.SYNC for s in barriers)


@define
class _Row:
    """A loop over the entries of a row."""

    flow: DataFlow
    loop: ir.Loop
    _alike: dict[Var, bool] = field(factory=dict[Var, bool])

    @property
    def _counter(self) -> Var | None:
        condition = self.loop.condition
        if isinstance(condition, ir.Binary) and condition.op is BinaryOp.LT:
            counter = stripped(condition.left)
            return counter if isinstance(counter, Var) else None
        return None

    def is_shared_out(self) -> bool:
        """Threads begin side by side, step by the block, and end where the row does."""
        counter, condition = self._counter, self.loop.condition
        if counter is None or not isinstance(condition, ir.Binary) or not self._is_alike(condition.right):
            return False
        bounds = self.flow.arrays_in(self.flow.of(condition.right))
        steps = [s for s in inside(self.loop) if assigned(s) == counter]
        begins = [s for s in self._given(counter) if all(s is not x for x in steps)]
        return (
            bool(bounds & self.flow.rows)
            and len(steps) == 1
            and _sum_of(steps[0]) == {counter: 1, BDIM[0]: 1}
            and bool(begins)
            and all(self._is_begin(s) for s in begins)
        )

    def _is_begin(self, s: Stmt) -> bool:
        sums = _sum_of(s)
        return sums.pop(TID[0], 0) == 1 and all(
            isinstance(part, Var) and self._is_alike(part) for part in sums if part is not None
        )

    def is_entry(self, pointer: Expr) -> bool:
        """It is the counter that says which element stands there, and what all threads share."""
        sums = {part: n for part, n in linear(pointer).items() if isinstance(part, Var)}
        sizes = {array.element.size for array in self.flow.slice.roots(pointer)}
        counter = self._counter
        own = [part for part in sums if not self._is_alike(part)]
        return counter is not None and own == [counter] and {sums[counter]} == sizes

    def scales_entry(self, value: Expr, of: frozenset[Array] | None) -> bool:
        """What stood there, and a product, one factor of which the row has, read in one ``of`` these."""
        value = stripped(value)
        if not isinstance(value, ir.Binary) or value.op not in (BinaryOp.ADD, BinaryOp.SUB):
            return False
        product = stripped(value.right)
        if not isinstance(product, ir.Binary) or product.op is not BinaryOp.MUL:
            return False
        factors = [stripped(side) for side in (product.left, product.right)]
        alike = [x for x in factors if isinstance(x, Var) and self._is_alike(x)]
        read = [self.flow.arrays_in(self.flow.of(x)) for x in alike]
        return len(read) == 1 and bool(read[0] if of is None else read[0] & of)

    def _given(self, var: Var) -> Sequence[Stmt]:
        return givers(self.flow.slice.statements).get(var, ())

    def _is_alike(self, e: Expr) -> bool:
        """All threads of the block have one value of it, in a round."""
        return all(self._part_is_alike(part) for part in subexpressions((e,)))

    def _part_is_alike(self, part: Expr) -> bool:
        if isinstance(part, ir.Unknown):
            return part.reason == _UNSET
        if isinstance(part, ir.Builtin):
            return part.axis not in _OWN
        if not isinstance(part, Var):
            return True
        if part not in self._alike:
            self._alike[part] = True  # until another value of it is not
            self._alike[part] = all(self._gives_alike(s) for s in self._given(part))
        return self._alike[part]

    def _gives_alike(self, s: Stmt) -> bool:
        if isinstance(s, ir.Assign):
            return self._is_alike(s.value)
        return isinstance(s, ir.Load) and self._is_alike(s.pointer)


def _sum_of(s: Stmt) -> dict[Expr | Axis | None, int]:
    """What is assigned, coordinates by their axes."""
    if not isinstance(s, ir.Assign):
        return {}
    sums = linear(s.value)
    return {part.axis if isinstance(part, ir.Builtin) else part: n for part, n in sums.items() if n}
