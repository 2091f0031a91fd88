"""Ids beside which bounds of a stretch stand: ``for (j = at[i]; j < at[i + 1]; j++) … y[id[i]] += …``.

A list of the rows that have something, each with a stretch of its own (doubly compressed rows, those of one
level), names each of them once. The id stands where the stretch does: of ids that stand in it
(``y[id[j]] += …``) nothing of that kind is known, these are edges.
"""

from __future__ import annotations

from fractions import Fraction

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr
from cuda_lsp.ir.types import Pointer
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import DataFlow
from cuda_lsp.static.linear import linear
from cuda_lsp.static.offset_arrays import bounding_arrays
from cuda_lsp.static.rewrites.values import substituted
from cuda_lsp.static.slicing import assigned_once

_Place = frozenset[tuple[Expr | None, Fraction]]
"""Of an element, as a sum, in elements."""


def name_segments(flow: DataFlow, ids: frozenset[Array]) -> bool:
    """Each id that is read stands where the bounds of a loop's stretch are read, begin and end."""
    bounds = flow.rows & bounding_arrays(flow.slice.kernel)
    places = _places(flow, ids)
    if len(places) != 1 or ids & bounds:
        return False
    (place,) = places
    behind = _moved(place, 1)
    return any({place, behind} <= _places(flow, frozenset({array})) for array in bounds)


def _places(flow: DataFlow, arrays: frozenset[Array]) -> set[_Place]:
    """Where elements of these are read."""
    once = assigned_once(flow.slice.statements)
    return {
        _elements(substituted(s.pointer, once, 2 * budgets.MOST_SUBSTITUTIONS), array)
        for s in flow.slice.statements
        if isinstance(s, ir.Load)
        for array in flow.slice.roots(s.pointer) & arrays
    }


def _elements(pointer: Expr, array: Array) -> _Place:
    size = array.element.size
    return frozenset((part, Fraction(n, size)) for part, n in linear(pointer).items() if not _is_begin(part))


def _is_begin(part: Expr | None) -> bool:
    """Where the array begins."""
    return isinstance(part, ir.AddressOf) or isinstance(getattr(part, "type", None), Pointer)


def _moved(place: _Place, by: int) -> _Place:
    sums = dict(place)
    sums[None] = sums.get(None, Fraction(0)) + by
    return frozenset((part, n) for part, n in sums.items() if n)
