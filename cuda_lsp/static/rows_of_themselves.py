"""Rows that are made of what stood there, and of nothing else: ``x[id[i]] = max(x[id[i]], 0.0f)``.

Who normalises, clamps or scales the rows that a list names has each of them once: twice would not be what
is meant, whatever the order. A count is no such row: it is what was there and a step
(``bins[key[i]] += 1``, ``min(bins[key[i]] + 1, 255)``), and the more threads come the more it is.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Axis, BinaryOp, Expr, Var
from cuda_lsp.ir.walk import assigned, operands, stripped
from cuda_lsp.static.data_flow import Accessed, DataFlow, Source

_CHOOSING = frozenset({BinaryOp.MIN, BinaryOp.MAX})


class _Kept(enum.IntEnum):
    """What of a row is in a value, as a term of a sum."""

    NOTHING = 0
    ALONE = 1
    STEPPED = 2


def of_themselves(flow: DataFlow, place: Sequence[Accessed]) -> bool:
    """Whether all that is stored at the place is made of what stood there, without a step added."""
    rows = frozenset(array for x in place for array in x.arrays)
    written = {x.site.range for x in place if x.mode.writes}
    stores = (s for s in flow.slice.statements if isinstance(s, ir.Store) and s.site.range in written)
    values = [s.value for s in stores]
    if not values or not all(_comes_of(flow.of(value), rows) for value in values):
        return False
    counts = _Counts(flow, rows)
    return all(counts.kept(value) < _Kept.STEPPED for value in values)


def _comes_of(sources: frozenset[Source], rows: frozenset[Array]) -> bool:
    """Of the rows and of no other array, nor of who stores."""
    others = any(isinstance(x, Axis) or (isinstance(x, Array) and x not in rows) for x in sources)
    return bool(sources & rows) and not others


class _Counts:
    """What values keep of the rows that they were loaded from; of loops, too, until nothing changes."""

    def __init__(self, flow: DataFlow, rows: frozenset[Array]) -> None:
        self._flow, self._rows = flow, rows
        self._known: dict[Var, _Kept] = {}
        while any(self._grows(s) for s in flow.slice.statements):
            pass

    def kept(self, e: Expr) -> _Kept:
        e = stripped(e)
        if isinstance(e, Var):
            return self._known.get(e, _Kept.NOTHING)
        if isinstance(e, ir.Unknown) or (isinstance(e, ir.Intrinsic) and e.name.startswith(ir.LOOP_SUM)):
            return _Kept.STEPPED
        most = max((self.kept(part) for part in operands(e)), default=_Kept.NOTHING)
        if not isinstance(e, ir.Binary) or e.op in _CHOOSING:
            return most
        if e.op is BinaryOp.MUL or (e.op is BinaryOp.DIV and self._flow.of(e.left) & self._rows):
            return _Kept.NOTHING
        alone = not all(self._flow.of(side) & self._rows for side in (e.left, e.right))
        return _Kept.STEPPED if most is _Kept.ALONE and alone else most

    def _grows(self, s: ir.Stmt) -> bool:
        """Whether the statement tells more of the variable that it sets."""
        if (var := assigned(s)) is None:
            return False
        before = self._known.get(var, _Kept.NOTHING)
        self._known[var] = max(before, self._given(s))
        return self._known[var] > before

    def _given(self, s: ir.Stmt) -> _Kept:
        if isinstance(s, ir.Load):
            return _Kept.ALONE if self._flow.slice.roots(s.pointer) & self._rows else _Kept.NOTHING
        return self.kept(s.value) if isinstance(s, ir.Assign) else _Kept.STEPPED
