"""wmma's loads and stores, by what the programming guide promises of them.

A warp reads or writes a whole tile: rows (or columns) of contiguous elements, ``ldm`` elements apart, each
element once. Which lane touches which element is not specified. So one lane, the same in every warp and
otherwise unknown, stands for the warp: between warps the tile is what counts, and within the warp any lane
but the one that wrote may be the one that reads. All lanes arrive at the call; whether it orders the
memory accesses around it is up to the hardware (its barriers are not ``assured``).

Elements of less than a byte and layouts chosen at run time are not modelled (``Incomplete``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from cuda_lsp.frontend.lowering import conversions, expressions
from cuda_lsp.frontend.lowering.build import binary, offset_by
from cuda_lsp.frontend.lowering.places import Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.frontend.vocabulary.collectives import template_arguments
from cuda_lsp.ir.program import (
    Assign,
    Axis,
    Barrier,
    BarrierScope,
    Binary,
    BinaryOp,
    Builtin,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Stmt,
    Store,
    Unknown,
)
from cuda_lsp.ir.types import INT64, UINT32, Opaque

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

_SHAPES = {"matrix_a": (0, 2), "matrix_b": (2, 1), "accumulator": (0, 1)}
"""Rows and columns of a fragment, as positions in m, n, k."""
_PACKED = ("u4", "s4", "b1")


@frozen
class _Tile:
    """``count`` runs of ``length`` contiguous elements."""

    count: int
    length: int


def lower_matrix(call: Call) -> Value:
    """A free function of ``nvcuda::wmma``."""
    if call.name in ("load_matrix_sync", "store_matrix_sync"):
        _move(call, call.name.startswith("store"))
    else:
        for node in call.arguments:
            if type_of(call.low.ast, node).is_int:
                expressions.value(call.low, node)
    return call.unknown(f"the result of {call.name}")


def _move(call: Call, stores: bool) -> None:
    low = call.low
    fragment, memory = (call.arguments[1], call.arguments[0]) if stores else call.arguments[:2]
    pointer = low.pointer(expressions.value(low, memory))
    pitch = conversions.converted(low, expressions.scalar(low, call.arguments[2]), INT64)
    tile = _tile(low, fragment, call.arguments[3:])
    target = type_of(low.ast, memory).target
    if tile is None or target is None or not target.size:
        reason = "the shape of its tile, or the order of its elements, is not known"
        low.incomplete(f"wmma::{call.name}", reason, call.node, [pointer])
        return
    site = low.site(call.node)
    row = Opaque("row of a tile", tile.length * target.size)
    index = low.var("", INT64)
    bytes_apart = Binary(BinaryOp.MUL, pitch, Const(target.size, INT64), INT64)
    place = offset_by(pointer, Binary(BinaryOp.MUL, index, bytes_apart, INT64))
    content = Unknown(f"what {call.name} stores", row, low.fresh())
    access: Stmt = Store(place, content, row, site) if stores else Load(None, place, row, site)
    step = (Assign(index, Binary(BinaryOp.ADD, index, Const(1, INT64), INT64)),)
    bound = binary(BinaryOp.LT, index, Const(tile.count, INT64))
    rows = Loop(low.fresh(), low.fresh(), (), bound, (access,), step, site)
    lane: Expr = Builtin(Axis.LANE, UINT32)
    elected = Unknown(f"which lane does the work of {call.name}", UINT32, low.fresh(), uniform=True)
    barrier = Barrier(BarrierScope.WARP, site, implied=True, assured=False)
    low.emit(barrier)
    work = (Assign(index, Const(0, INT64)), rows)
    low.emit(If(binary(BinaryOp.EQ, lane, elected), work, (), site))
    low.emit(barrier)


def _tile(low: Lowering, fragment: Node, layout: list[Node]) -> _Tile | None:
    """The tile that a fragment is loaded from or stored to; None: not known."""
    arguments = template_arguments(type_of(low.ast, fragment).name)
    if len(arguments) < 5 or arguments[4].endswith(_PACKED):
        return None
    use = arguments[0].split("::")[-1]
    if use not in _SHAPES or not all(a.isdigit() for a in arguments[1:4]):
        return None
    extents = [int(a) for a in arguments[1:4]]
    rows, columns = (extents[i] for i in _SHAPES[use])
    by_rows = _by_rows(low, arguments[5:], layout)
    if by_rows is None:
        return None
    return _Tile(rows, columns) if by_rows else _Tile(columns, rows)


def _by_rows(low: Lowering, of_type: list[str], told: list[Node]) -> bool | None:
    """Whether rows are contiguous, from the fragment's type or the last argument of the call."""
    if told:
        chosen = expressions.scalar(low, told[0])
        return chosen.value == 0 if isinstance(chosen, Const) else None
    name = of_type[0].split("::")[-1] if of_type else ""
    return {"row_major": True, "col_major": False}.get(name)
