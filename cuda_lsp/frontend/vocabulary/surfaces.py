"""Surfaces: memory that reads and writes address by coordinates, x in bytes.

A surface object is a global array of its own; coordinates become one offset in which they do not mix, so two
accesses meet exactly when all coordinates do. Handles that are no parameters (loaded from memory) share
one array. Accesses with another boundary mode than the default are not modelled (``Incomplete``): clamped
coordinates meet where these do not. As pointers do, surface parameters name different surfaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, offset_by
from cuda_lsp.frontend.lowering.places import MemoryPlace, Value, is_expr
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import (
    AddressOf,
    Array,
    BinaryOp,
    Const,
    Expr,
    If,
    Load,
    Stmt,
    Store,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import BOOL, INT64, Int, Type
from cuda_lsp.ir.walk import stripped
from cuda_lsp.model import Space

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

_COORDINATES = {
    "surf1D": 1, "surf1DLayered": 2, "surf2D": 2, "surf2DLayered": 3, "surf3D": 3, "surfCubemap": 3,
    "surfCubemapLayered": 3,
}  # fmt: skip
_STRIDES = (1, 1 << 24, 1 << 44)
"""Of x (in bytes), y and z or layer: farther apart than any surface is large."""
_EXTENTS = (1 << 24, 1 << 20, 1 << 16)
"""Beyond them there is no surface: such accesses trap, or do nothing."""
_HARMLESS_MODES = (0, 2)  # cudaBoundaryModeZero, cudaBoundaryModeTrap


def surface(call: Call) -> Value:
    """``surf2Dwrite(value, surface, x, y)``, ``surf2Dread<T>(surface, x, y)`` and their kin."""
    low = call.low
    writes = call.name.endswith("write")
    count = _COORDINATES.get(call.name.removesuffix("write").removesuffix("read"))
    by_pointer = not writes and bool(call.arguments) and type_of(low.ast, call.arguments[0]).is_pointer
    first = 1 if writes or by_pointer else 0
    values = call.values()
    if len(values) == first + 2 + (count or 0) and _harmless(values[-1]):
        values.pop()
    if count is None or len(values) != first + 1 + count:
        reason = "surface memory with a boundary mode is not modelled"
        low.incomplete(call.name, reason, call.node, harmless=False)
        if by_pointer:
            _result(call, call.arguments[0], values[0])
        return call.unknown(f"the result of {call.name}")
    array = _array(call, values[first])
    site = low.site(call.node)
    offset: Expr = Const(0, INT64)
    inside: Expr = Const(1, BOOL)
    coordinates = call.arguments[first + 1 : first + 1 + count]
    for node, stride, extent in zip(coordinates, _STRIDES, _EXTENTS, strict=False):
        coordinate = conversions.converted(low, expressions.scalar(low, node), INT64)
        offset = binary(BinaryOp.ADD, offset, binary(BinaryOp.MUL, coordinate, Const(stride, INT64)))
        for op, bound in ((BinaryOp.GE, 0), (BinaryOp.LT, extent)):
            inside = binary(BinaryOp.AND, inside, binary(op, coordinate, Const(bound, INT64)))
    pointer = offset_by(AddressOf(array), offset)
    if writes:
        kind = type_of(low.ast, call.arguments[0]).ir
        access: Stmt = Store(pointer, Unknown("a surface element", kind, low.fresh()), kind, site)
    else:
        access = Load(None, pointer, _read(call, by_pointer), site)
    low.emit(If(inside, (access,), (), site))
    if by_pointer:
        _result(call, call.arguments[0], values[0])
    return call.nothing() if writes else call.unknown(f"the result of {call.name}", varies=True)


def _harmless(mode: Value) -> bool:
    plain = stripped(mode) if is_expr(mode) else None
    return isinstance(plain, Const) and plain.value in _HARMLESS_MODES


def _read(call: Call, by_pointer: bool) -> Type:
    info = type_of(call.low.ast, call.arguments[0]).target if by_pointer else call.info
    return (info or call.info).ir


def _result(call: Call, node: Node, pointer: Value) -> None:
    """What is read goes through a pointer to a local object, as a rule."""
    low = call.low
    info: TypeInfo | None = type_of(low.ast, node).target
    place = lvalues.pointed(low, pointer, info or call.info, node)
    if isinstance(place, MemoryPlace):
        kind = place.info.ir
        low.emit(Store(place.pointer, Unknown("a surface element", kind, low.fresh()), kind, low.site(node)))
    else:
        low.scramble(place)


def _array(call: Call, handle: Value) -> Array:
    handle = stripped(handle) if is_expr(handle) else handle
    name, key = "surface memory", "surface"
    if isinstance(handle, Var) and handle.id in call.low.parameters:
        name, key = handle.name, f"surface {handle.id}"
    byte = TypeInfo("scalar", "unsigned char", Int(8, signed=False), 1, 1)
    return call.low.array(key, name, Space.GLOBAL, byte, surface=True)
