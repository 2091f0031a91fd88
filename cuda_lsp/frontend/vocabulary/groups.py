"""Cooperative groups: which threads a group has is known from its static type and how it was made.

Source: CUDA C++ Programming Guide, "Cooperative Groups".  Collectives are lane exchanges preceded by
the synchronisation they imply.  A dynamic ``thread_group`` keeps what it was made from.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeGuard

from cuda_lsp.frontend.lowering import expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast, linear, linear_thread, product, zero
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Group,
    Place,
    StaticPlace,
    Value,
    is_expr,
)
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.frontend.vocabulary import clusters
from cuda_lsp.ir.exchanges import MEMBERS, TILE_REDUCTION
from cuda_lsp.ir.program import (
    BDIM,
    BID,
    GDIM,
    TID,
    Assign,
    Axis,
    Barrier,
    BarrierPhase,
    BarrierScope,
    BinaryOp,
    Builtin,
    Const,
    Expr,
    Intrinsic,
)
from cuda_lsp.ir.types import INT32, INT64, UINT32, Float, Int, Type
from cuda_lsp.model import WARP_SIZE

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

_TYPES = {
    "thread_block": BarrierScope.BLOCK,
    "grid_group": BarrierScope.GRID,
    "multi_grid_group": BarrierScope.GRID,
    "coalesced_group": BarrierScope.COALESCED,
    "cluster_group": BarrierScope.CLUSTER,
}
_TILE = re.compile(r"cooperative_groups::thread_block_tile<(\d+)U?(?:, |>)")
_MAKERS = frozenset(
    {
        "this_thread_block",
        "this_grid",
        "this_multi_grid",
        "coalesced_threads",
        "this_cluster",
        "this_thread",
        "tiled_partition",
        "binary_partition",
        "labeled_partition",
    }
)
_COLLECTIVES = frozenset(
    {
        "shfl",
        "shfl_down",
        "shfl_up",
        "shfl_xor",
        "ballot",
        "any",
        "all",
        "match_any",
        "match_all",
        "reduce",
        "inclusive_scan",
        "exclusive_scan",
    }
)
FULL_MASK = Const(0xFFFFFFFF, UINT32)
_BLOCK_INDEX = {
    "group_index": BID,
    "block_index": BID,
    "thread_index": TID,
    "group_dim": BDIM,
    "dim_threads": BDIM,
    "dim_blocks": GDIM,
}


def group_of_type(info: TypeInfo) -> Group | None:
    """The group that a type alone determines."""
    name = info.name.removeprefix("const ")
    if "cooperative_groups::" not in name:
        return None
    tile = _TILE.match(name)
    if tile is not None:
        size = int(tile.group(1))
        return Group(BarrierScope.TILE, size, within=_whole_of(size, name[tile.end() : -1]))
    scope = _TYPES.get(name.rsplit("::", 1)[-1])
    return Group(scope) if scope is not None else None


def _whole_of(size: int, parent: str) -> int | None:
    """What a tile is part of (``Group.within``), by the type of its parent; an empty one is not told."""
    if parent in ("", "void"):  # no longer known, but that only blocks have whole warps
        return 0 if size >= WARP_SIZE else None
    tile = _TILE.match(parent)
    return int(tile.group(1)) if tile is not None else 0


def group_of(call: Call, node: Node) -> Group | None:
    """The group that an argument is."""
    info = type_of(call.low.ast, node)
    if info.kind == "reference" and info.target is not None:
        info = info.target
    fixed = group_of_type(info)
    told = fixed is not None and (fixed.scope is not BarrierScope.TILE or fixed.within is not None)
    if fixed is not None and told and fixed.scope is not BarrierScope.COALESCED:
        return fixed
    if "cooperative_groups::" not in info.name:
        return None
    value = call.low.read(lvalues.place(call.low, node), None)
    return value if isinstance(value, Group) else fixed


def construct(call: Call) -> Value | None:
    """Copies and conversions of groups."""
    if "cooperative_groups::" not in call.info.name:
        return None
    if call.arguments:
        found = group_of(call, call.arguments[0])
        if found is not None:
            return found
    return group_of_type(call.info)


def lower(call: Call, declaration: Declaration, this: Place | None) -> Value | None:
    """A member or free function of cooperative groups; None when it is something else."""
    parent = declaration.ast.parent(declaration)
    owner = parent.name if parent is not None else ""
    if this is None and owner not in ("cooperative_groups", "experimental"):
        return None
    if this is not None:
        group = _group_of_place(this)
        if group is None:
            return None
        return _member(call, group)
    if call.name in _MAKERS:
        return _made(call)
    if not call.arguments:
        return None
    group = group_of(call, call.arguments[0])
    if group is None:
        return None
    if call.name in ("sync", "synchronize"):
        return synchronise(call, group)
    if call.name == "thread_rank" and group.scope is BarrierScope.CLUSTER:
        return clusters.member(call, call.name)
    if call.name in ("thread_rank", "group_size"):
        return rank(call, group) if call.name == "thread_rank" else size(call, group)
    if call.name in _COLLECTIVES:
        return _collective(call, group, call.arguments[1:])
    if call.name in ("memcpy_async", "wait", "wait_prior"):
        return None  # of ``asynchronous``
    for node in call.arguments[1:]:
        expressions.value(call.low, node)
    call.low.incomplete(
        f"cooperative_groups::{call.name}",
        "this operation of a group is not modelled",
        call.node,
        synchronises=True,
    )
    return call.unknown(f"the result of {call.name}")


def _group_of_place(place: Place) -> Group | None:
    if isinstance(place, StaticPlace) and isinstance(place.value, Group):
        return place.value
    return group_of_type(place.info)


def _made(call: Call) -> Value:
    fixed = group_of_type(call.info)
    if call.name == "tiled_partition" and fixed is None and len(call.arguments) > 1:
        extent = expressions.scalar(call.low, call.arguments[1])
        return Group(BarrierScope.TILE, int(extent.value) if isinstance(extent, Const) else None)
    if call.name == "this_thread":
        return Group(BarrierScope.TILE, 1)
    values = [expressions.value(call.low, node) for node in call.arguments[1:]]
    if fixed is not None and fixed.size:
        call.low.required["tile"] = max(fixed.size, call.low.required.get("tile", 0))
    if fixed is None or fixed.scope is BarrierScope.COALESCED:
        return Group(BarrierScope.COALESCED, mask=_members(call, values))
    return fixed


def _members(call: Call, labels: list[Value]) -> Expr | None:
    """The lanes that get into one group of coalesced threads."""
    if call.name == "coalesced_threads":
        return _exchanged(call, "__activemask", ())
    parent = group_of(call, call.arguments[0]) if call.arguments else None
    label = labels[0] if len(labels) == 1 else None
    if call.name not in ("binary_partition", "labeled_partition") or parent is None or not _is_integer(label):
        return None
    mask = parent.mask if parent.scope is BarrierScope.COALESCED else FULL_MASK if parent.size == 32 else None
    return _exchanged(call, "__match_any_sync", (mask, label)) if mask is not None else None


def _is_integer(value: Value | None) -> TypeGuard[Expr]:
    return isinstance(value, EXPR_TYPES) and isinstance(getattr(value, "type", None), Int)


def _exchanged(call: Call, name: str, operands: tuple[Expr, ...], type: Type = UINT32) -> Expr:
    """A lane exchange's result, in a variable: it is one value for all uses."""
    result = call.low.var("", type)
    call.low.emit(Assign(result, Intrinsic(name, operands, type), call.low.site(call.node)))
    return result


def _barrier(call: Call, group: Group, implied: bool, phase: BarrierPhase = BarrierPhase.SYNC) -> None:
    low, site = call.low, call.low.site(call.node)
    if group.scope is BarrierScope.TILE and group.size is None:
        low.incomplete("thread_group.sync", "the group's size is not known", call.node, synchronises=True)
    elif group.scope is BarrierScope.TILE and group.size == 1:
        return
    elif group.scope is BarrierScope.COALESCED:
        if group.mask is None:
            low.incomplete("coalesced_group.sync", "which lanes are in the group is not known", call.node,
                           synchronises=True)  # fmt: skip
        else:
            low.emit(Barrier(BarrierScope.WARP, site, phase, mask=group.mask, implied=implied))
    else:
        low.emit(Barrier(group.scope, site, phase, size=group.size, implied=implied))


def synchronise(call: Call, group: Group) -> Value:
    """``group.sync()``."""
    _barrier(call, group, implied=False)
    return call.nothing()


def _member(call: Call, group: Group) -> Value | None:
    name = call.name
    if name in ("sync", "synchronize"):
        return synchronise(call, group)
    if name == "barrier_arrive":
        _barrier(call, group, False, BarrierPhase.ARRIVE)
        return call.unknown("arrival token")
    if name == "barrier_wait":
        _barrier(call, group, False, BarrierPhase.WAIT)
        return call.nothing()
    if group.scope is BarrierScope.CLUSTER and name in clusters.MEMBERS:
        return clusters.member(call, name)
    if name in ("thread_rank", "grid_rank"):
        return rank(call, group)
    if name in ("size", "num_threads"):
        return size(call, group)
    if name in _BLOCK_INDEX:
        return call.record(tuple(Builtin(axis) for axis in _BLOCK_INDEX[name]))
    if name == "block_rank" and group.scope is BarrierScope.GRID:
        return cast(linear(BID, (Axis.GDIM_X, Axis.GDIM_Y)), call.info.ir)
    if name == "num_blocks" and group.scope is BarrierScope.GRID:
        return cast(product(GDIM), call.info.ir)
    if name == "meta_group_rank" and group.size and group.within is not None:
        among = linear_thread()
        if group.within:
            among = binary(BinaryOp.REM, among, Const(group.within, UINT32))
        return cast(binary(BinaryOp.DIV, among, Const(group.size, UINT32)), call.info.ir)
    if name == "meta_group_size" and group.size and group.within is not None:
        threads = Const(group.within, UINT32) if group.within else product(BDIM)
        up = binary(BinaryOp.ADD, threads, Const(group.size - 1, UINT32))
        return cast(binary(BinaryOp.DIV, up, Const(group.size, UINT32)), call.info.ir)
    if name in _COLLECTIVES:
        return _collective(call, group, call.arguments)
    if name.startswith("operator"):
        return group
    return call.unknown(f"the result of {name}", varies=True)


def _collective(call: Call, group: Group, arguments: list[Node]) -> Value:
    values = [expressions.value(call.low, node) for node in arguments]
    _barrier(call, group, implied=True)
    known = None
    if call.low.valued and isinstance(call.info.ir, Float) and group.scope is BarrierScope.TILE:
        known = _of_floats(call, group.size, values)
    elif not isinstance(call.info.ir, Int) or not values or not all(map(_is_integer, values)):
        pass
    elif group.mask is not None:
        known = _of_leader(call, group.mask, values)
    elif group.scope is BarrierScope.TILE and group.size in (2, 4, 8, 16, 32):
        known = _of_tile(call, group.size, values)
    return (
        call.unknown(f"the result of {call.name}", varies=True)
        if known is None
        else cast(known, call.info.ir)
    )


def _of_floats(call: Call, size: int | None, values: list[Value]) -> Expr | None:
    """A collective of a tile on floating-point numbers, where their values are followed."""
    row = MEMBERS.get(call.name)
    if size not in (2, 4, 8, 16, 32) or not values or not is_expr(values[0]):
        return None
    if call.name == "reduce":
        return _exchanged(call, TILE_REDUCTION, (values[0], Const(size, INT32)), call.info.ir)
    if row is None or row.source is None or len(values) != 2:
        return None
    return _shuffled(call, row.name, FULL_MASK, values[0], values[1], size)


def _of_leader(call: Call, mask: Expr, values: list[Value]) -> Expr | None:
    """``shfl(value, 0)`` of a part of a warp: of other ranks it is not told which lane has them."""
    if call.name != "shfl" or len(values) != 2 or not isinstance(rank := values[1], Const) or rank.value != 0:
        return None
    lane = binary(BinaryOp.SUB, Intrinsic("__ffs", (mask,), INT32), Const(1, INT32))
    return _shuffled(call, "__shfl_sync", mask, values[0], lane, 32)


def _of_tile(call: Call, size: int, values: list[Value]) -> Expr | None:
    """A collective of a tile as the exchange between lanes that it is; votes are told of whole warps."""
    row = MEMBERS.get(call.name)
    if row is None:
        return None
    if row.source is not None:
        return _shuffled(call, row.name, FULL_MASK, values[0], values[1], size) if len(values) == 2 else None
    value = values[0]
    if size != 32 or len(values) != 1 or not is_expr(value):
        return None
    return _exchanged(call, row.name, (FULL_MASK, value), UINT32 if call.info.ir == UINT32 else INT32)


def _shuffled(call: Call, name: str, mask: Expr, value: Value, by: Value, width: int) -> Expr | None:
    kinds = (Int, Float) if call.low.valued else Int
    if not is_expr(value) or not is_expr(by) or not isinstance(value.type, kinds):
        return None
    return _exchanged(call, name, (mask, value, cast(by, INT32), Const(width, INT32)), value.type)


def rank(call: Call, group: Group) -> Value:
    result = call.info.ir if isinstance(call.info.ir, Int) else UINT32
    if group.scope is BarrierScope.BLOCK:
        return cast(linear_thread(), result)
    if group.scope is BarrierScope.TILE and group.size:
        return cast(binary(BinaryOp.REM, linear_thread(), Const(group.size, UINT32)), result)
    if group.scope is BarrierScope.GRID:
        block = cast(linear(BID, (Axis.GDIM_X, Axis.GDIM_Y)), INT64)
        threads = cast(product(BDIM), INT64)
        total = binary(BinaryOp.ADD, binary(BinaryOp.MUL, block, threads), cast(linear_thread(), INT64))
        return cast(total, result)
    if group.mask is not None:
        lane = cast(Builtin(Axis.LANE), UINT32)
        below = binary(BinaryOp.SUB, binary(BinaryOp.SHL, Const(1, UINT32), lane), Const(1, UINT32))
        return cast(_count(binary(BinaryOp.BAND, group.mask, below)), result)
    return call.unknown("rank in a group", varies=True)


def _count(lanes: Expr) -> Expr:
    return Intrinsic("__popc", (lanes,), INT32)


def size(call: Call, group: Group) -> Value:
    result = call.info.ir if isinstance(call.info.ir, Int) else UINT32
    if group.scope is BarrierScope.TILE and group.size:
        return Const(group.size, result)
    if group.scope is BarrierScope.BLOCK:
        return cast(product(BDIM), result)
    if group.scope is BarrierScope.GRID:
        threads = cast(product(BDIM), INT64)
        blocks = cast(product(GDIM), INT64)
        return cast(binary(BinaryOp.MUL, threads, blocks), result)
    if group.mask is not None:
        return cast(_count(group.mask), result)
    return call.unknown("size of a group", varies=True)


__all__ = ["EXPR_TYPES", "construct", "group_of_type", "lower", "zero"]
