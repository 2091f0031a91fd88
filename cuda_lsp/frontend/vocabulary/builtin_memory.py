"""Built-ins that touch memory: atomics, cached loads and stores, copies, fills.

Source: CUDA C++ Programming Guide, "Atomic Functions", "Read-Only Data Cache Load Function", "Load Functions
Using Cache Hints". What a copy or fill of a local object means is decided while lowering.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary, cast, offset_by
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Address,
    MemoryPlace,
    Place,
    Value,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.frontend.vocabulary.builtin_call import Call, Handler
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Assign,
    Atomic,
    Binary,
    BinaryOp,
    Const,
    Copy,
    Expr,
    Load,
    Loop,
    Store,
)
from cuda_lsp.ir.types import INT64, Float, Int
from cuda_lsp.ir.walk import stripped
from cuda_lsp.model import Scope

# ----------------------------------------------------------------------------------------- memory


def pointee_of(low: Lowering, node: Node) -> tuple[Place, TypeInfo]:
    """The object behind a pointer argument, and its type."""
    info = type_of(low.ast, node)
    target = info.target or info
    value = expressions.value(low, node)
    return lvalues.pointed(low, value, target, node), target


def access_node(low: Lowering, node: Node) -> Node:
    """The expression a message should underline for ``&x[i]`` passed to a built-in: ``x[i]``."""
    inner = node
    while inner.kind in (K.UNEXPOSED, K.PAREN, *K.CASTS) and inner.children:
        inner = inner.children[-1]
    if inner.kind == K.UNARY and low.ast.operator(inner) == K.ADDRESS_OF:
        return inner.children[-1]
    return node


def atomic(op: AtomicOp, scope: Scope) -> Handler:
    """``atomicAdd(address, value)`` and its kin: an atomic where the object is in memory."""

    def lower(call: Call) -> Value:
        low = call.low
        place, target = pointee_of(low, call.arguments[0])
        operands: list[Expr] = []
        for node in call.arguments[1:]:
            operand = expressions.scalar(low, node)
            operands.append(conversions.converted(low, operand, target.ir) if target.scalar else operand)
        if not isinstance(place, MemoryPlace):  # an atomic on a local: an ordinary update
            old = low.read(place, None)
            low.write(place, low.unknown(f"the result of {call.name}", target.ir), None)
            return old if isinstance(old, EXPR_TYPES) else call.unknown(f"the result of {call.name}")
        return emit_atomic(low, op, scope, place.pointer, tuple(operands), target, call.node)

    return lower


def emit_atomic(
    low: Lowering,
    op: AtomicOp,
    scope: Scope,
    pointer: Expr,
    operands: tuple[Expr, ...],
    target: TypeInfo,
    node: Node,
    releases: bool = False,
) -> Value:
    """The statement of one atomic operation, and the old value."""
    site = low.site(node)
    if not isinstance(target.ir, (Int, Float) if low.computed else Int):
        low.emit(Atomic(None, op, pointer, operands, target.ir, scope, site, releases))
        return low.unknown("old value of an atomic", target.ir, varies=True)
    var = low.var("", target.ir)
    low.emit(Atomic(var, op, pointer, operands, target.ir, scope, site, releases))
    return var


def load_through(call: Call) -> Value:
    """``__ldg(pointer)``, ``__ldcs`` …: a read; that of ``__ldg`` is of data that nobody writes."""
    low = call.low
    place, _ = pointee_of(low, call.arguments[0])
    before = len(low.out)
    value = low.read(place, call.node)
    if call.name == "__ldg":
        low.out[before:] = [evolve(s, readonly=True) if isinstance(s, Load) else s for s in low.out[before:]]
    return value


def store_through(call: Call) -> Value:
    """``__stcs(pointer, value)`` …: a write."""
    place, _ = pointee_of(call.low, call.arguments[0])
    value = conversions.convert(call.low, call.value(1), place.info)
    call.low.write(place, value, call.node)
    return call.nothing()


def copy(asynchronous: str = "") -> Handler:
    """``memcpy(to, from, bytes)``; ``asynchronous``: by what it is awaited, "" for nothing."""

    def lower(call: Call) -> Value:
        low = call.low
        first, second = call.value(0), call.value(1)
        size = cast(call.scalar(2), INT64)
        if isinstance(first, Address) and isinstance(second, EXPR_TYPES) and isinstance(size, Const):
            place = MemoryPlace(first.place.info, low.pointer(second))
            if place.info.size == size.value:  # memcpy into a local object: a read of its size
                low.write(first.place, low.read(place, call.arguments[1]), None)
                return first
        if isinstance(second, Address) and isinstance(first, EXPR_TYPES) and isinstance(size, Const):
            place = MemoryPlace(second.place.info, low.pointer(first))
            if place.info.size == size.value:
                low.write(place, low.read(second.place, None), call.node)
                return first
        if isinstance(first, Address) and isinstance(second, Address) and first.place.info.scalar:
            low.write(first.place, low.unknown("copied bits", first.place.info.ir), None)
            return first
        low.emit(
            Copy(
                low.pointer(first),
                low.pointer(second),
                size,
                low.site(call.node),
                bool(asynchronous),
                asynchronous,
            )
        )
        return first

    return lower


def fill(call: Call) -> Value:
    """``memset``: stores of the widest units that the size allows, in a loop."""
    low = call.low
    first, byte, size = call.value(0), call.scalar(1), cast(call.scalar(2), INT64)
    if isinstance(first, Address):
        low.scramble(first.place)
        return first
    pointer = low.pointer(first)
    width = 4 if (isinstance(size, Const) and int(size.value) % 4 == 0) or _multiple_of_4(size) else 1
    type = Int(8 * width, signed=False)
    value: Expr = (
        Const(int(byte.value) % 256 * (0x01010101 if width == 4 else 1), type)
        if isinstance(byte, Const)
        else low.unknown("filled byte", type)
    )
    index, label, around = low.var("", INT64), low.fresh(), low.fresh()
    site = low.site(call.node)
    low.emit(Assign(index, Const(0, INT64)))
    body = (Store(offset_by(pointer, index), value, type, site),)
    step = (Assign(index, Binary(BinaryOp.ADD, index, Const(width, INT64), INT64)),)
    low.emit(Loop(label, around, (), binary(BinaryOp.LT, index, size), body, step, site))
    return pointer


def _multiple_of_4(size: Expr) -> bool:
    size = stripped(size)
    if isinstance(size, Const):
        return int(size.value) % 4 == 0
    return (
        isinstance(size, Binary)
        and size.op is BinaryOp.MUL
        and (_multiple_of_4(size.left) or _multiple_of_4(size.right))
    )
