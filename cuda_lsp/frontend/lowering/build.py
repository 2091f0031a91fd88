"""Expressions built with C's conversions explicit and constants folded, so that conditions stay readable."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import (
    TID,
    Axis,
    Binary,
    BinaryOp,
    Builtin,
    Cast,
    Const,
    Expr,
    Offset,
    Select,
    Unary,
    UnaryOp,
    Unknown,
)
from cuda_lsp.ir.types import BOOL, INT64, Float, Int, Opaque, Pointer, Type

COMPARISONS = frozenset({BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE})


def zero(type: Type) -> Const:
    """The number 0 of a type."""
    return Const(0.0 if isinstance(type, Float) else 0, type)


def cast(value: Expr, type: Type) -> Expr:
    """``value`` converted; the identity when it has the type already."""
    source = value.type
    if source == type or isinstance(type, Opaque):
        return value
    if isinstance(value, Const):
        if isinstance(type, Int):
            return Const(type.wrap(int(value.value)) if value.value == value.value else 0, type)
        if isinstance(type, Float):
            return Const(float(value.value), type)
        return Const(value.value, type)
    if isinstance(source, Pointer) and isinstance(type, Pointer):
        return value
    if isinstance(value, Unknown):
        return evolve(value, type=type)
    if isinstance(value, Cast) and isinstance(type, Int) and type == BOOL and value.operand.type == BOOL:
        return value.operand
    return Cast(value, type)


def unary(op: UnaryOp, value: Expr) -> Expr:
    """``op value``, folded when the value is known; what ``!`` takes and gives is of type BOOL."""
    if op is UnaryOp.NOT:
        value = cast(value, BOOL)
        if isinstance(value, Const):
            return Const(int(not value.value), BOOL)
        return Unary(op, value, BOOL)
    if isinstance(value, Const):
        if op is UnaryOp.NEG:
            return Const(
                value.type.wrap(-int(value.value)) if isinstance(value.type, Int) else -value.value,
                value.type,
            )
        if isinstance(value.type, Int):
            return Const(value.type.wrap(~int(value.value)), value.type)
    return Unary(op, value, value.type)


def binary(op: BinaryOp, left: Expr, right: Expr, type: Type | None = None) -> Expr:
    """``left op right``; both of one type (shifts: the left one's)."""
    result = (
        BOOL
        if op in COMPARISONS or op in (BinaryOp.AND, BinaryOp.OR)
        else left.type
        if type is None
        else type
    )
    if isinstance(left, Const) and isinstance(right, Const) and isinstance(left.type, Int):
        a, b = int(left.value), int(right.value)
        value = BINARY[op].exact(a, b, left.type)
        if value is not None:
            return Const(result.wrap(value) if isinstance(result, Int) else value, result)
    if op is BinaryOp.AND:
        for a, b in ((left, right), (right, left)):
            if isinstance(a, Const):
                return b if a.value else Const(0, BOOL)
    if op is BinaryOp.OR:
        for a, b in ((left, right), (right, left)):
            if isinstance(a, Const):
                return Const(1, BOOL) if a.value else b
    if (
        isinstance(right, Const)
        and right.value == 0
        and op in (BinaryOp.ADD, BinaryOp.SUB)
        and result == left.type
    ):
        return left
    if isinstance(left, Const) and left.value == 0 and op is BinaryOp.ADD and result == right.type:
        return right
    if op is BinaryOp.MUL and result == left.type == right.type:
        if isinstance(right, Const) and right.value == 1:
            return left
        if isinstance(left, Const) and left.value == 1:
            return right
    return Binary(op, left, right, result)


def select(condition: Expr, then: Expr, otherwise: Expr, type: Type) -> Expr:
    """``condition ? then : otherwise``, both of ``type``; the one chosen when the condition is known."""
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    return Select(condition, then, otherwise, type)


def offset_by(pointer: Expr, bytes: int | Expr) -> Expr:
    """``pointer`` moved, nested offsets merged."""
    amount: Expr = Const(bytes, INT64) if isinstance(bytes, int) else bytes
    if isinstance(amount, Const) and amount.value == 0:
        return pointer
    if isinstance(pointer, Offset):
        return Offset(pointer.pointer, binary(BinaryOp.ADD, pointer.bytes, amount), pointer.type)
    return Offset(pointer, amount, pointer.type if isinstance(pointer.type, Pointer) else Pointer())


def element(pointer: Expr, index: Expr, size: int, negative: bool = False) -> Expr:
    """``pointer + index`` in elements of ``size`` bytes."""
    scaled = binary(BinaryOp.MUL, cast(index, INT64), Const(-size if negative else size, INT64))
    return offset_by(pointer, scaled)


def pointer_inside(expr: Expr) -> Expr | None:
    """The pointer that an integer was computed from by adding to an address; None: not evidently one."""
    if isinstance(expr, Cast):
        return expr.operand if isinstance(expr.operand.type, Pointer) else pointer_inside(expr.operand)
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.SUB):
        base = pointer_inside(expr.left)
        if base is not None:
            return element(base, expr.right, 1, expr.op is BinaryOp.SUB)
        base = pointer_inside(expr.right) if expr.op is BinaryOp.ADD else None
        return element(base, expr.left, 1) if base is not None else None
    return None


def linear(index: tuple[Axis, Axis, Axis], extent: tuple[Axis, Axis]) -> Expr:
    """The number of a place among built-ins, x fastest."""
    x, y, z = (Builtin(a) for a in index)
    dx, dy = (Builtin(a) for a in extent)
    plane = binary(BinaryOp.MUL, binary(BinaryOp.ADD, binary(BinaryOp.MUL, z, dy), y), dx)
    return binary(BinaryOp.ADD, plane, x)


def linear_thread() -> Expr:
    """The number of a thread in its block."""
    return linear(TID, (Axis.BDIM_X, Axis.BDIM_Y))


def product(axes: tuple[Axis, Axis, Axis]) -> Expr:
    """Of three built-ins."""
    x, y, z = (Builtin(a) for a in axes)
    return binary(BinaryOp.MUL, binary(BinaryOp.MUL, x, y), z)
