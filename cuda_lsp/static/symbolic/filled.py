"""Arrays of the thread's own that a loop fills: ``for (i…) stride[i] = i * pitch;``.

Behind a loop whose every round ``i`` stores one element, the next one, the array is a function of its index,
which reads by other loops' counters then ask.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array
from cuda_lsp.ir.walk import inside
from cuda_lsp.model import Space
from cuda_lsp.static.points_to import PointsTo
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Term
from cuda_lsp.static.symbolic.values import Value


@frozen(eq=False)
class Filled:
    """The element of ``size`` bytes at ``base + size*i`` holds ``value``, where ``counter`` is ``i``.

    For 0 <= i < ``rounds``.
    """

    base: int
    size: int
    counter: Term
    rounds: Term
    value: Term

    def at(self, offset: Term, size: int) -> tuple[Term, Term] | None:
        """When an access there meets one of these elements, and what that holds; None: nobody knows."""
        distance = t.sub(offset, t.const(self.base))
        if size != self.size or t.content(distance) % size:
            return None
        index = t.from_monomials({m: c // size for m, c in t.monomials(distance).items()})
        within = t.and_(t.le(t.ZERO, index), t.lt(index, self.rounds))
        return within, t.substitute(self.value, {self.counter: index})


def filled_by(
    loop: ir.Loop, counter: Term, rounds: Term, pointers: PointsTo,
    stored: Mapping[Array, Mapping[Term, tuple[int, Value]]],
) -> dict[Array, Filled]:  # fmt: skip
    """The arrays that the loop fills; ``stored``: what its round ``counter`` surely leaves in them."""
    found: dict[Array, Filled] = {}
    for array, cells in stored.items():
        if array.space is not Space.LOCAL or len(cells) != 1 or _stores(loop, array, pointers) != 1:
            continue
        ((offset, (size, value)),) = cells.items()
        sums = dict(t.monomials(offset))
        if sums.pop((counter,), 0) == size and not sums.keys() - {()} and isinstance(value, Term):
            found[array] = Filled(sums.get((), 0), size, counter, rounds, value)
    return found


def _stores(loop: ir.Loop, array: Array, pointers: PointsTo) -> int:
    """Statements of the loop that may store to the array."""
    written = (pointers.written((s,)) for s in inside(loop) if not isinstance(s, (ir.If, ir.Loop, ir.Block)))
    return sum(arrays is None or array in arrays for arrays in written)
