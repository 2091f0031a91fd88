"""Values converted from one C++ type to another, and to truth values."""

from __future__ import annotations

from cuda_lsp.frontend.lowering.build import binary, cast, pointer_inside, select, unary, zero
from cuda_lsp.frontend.lowering.float_reasons import CONDITION, INTEGER, UNTYPED
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.places import EXPR_TYPES, Address, MemoryRecord, RecordValue, Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.lowering.whole_floats import as_integer, made_of_integer
from cuda_lsp.ir.program import (
    FALSE,
    TRUE,
    AddressOf,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Offset,
    Select,
    UnaryOp,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import BOOL, Float, Opaque, Pointer, Type
from cuda_lsp.model import Space


def truth(low: Lowering, operand: Value) -> Expr:
    """A value as a truth value; of what is not understood, an unknown one."""
    if isinstance(operand, Address):
        return TRUE
    if not isinstance(operand, EXPR_TYPES):
        return low.unknown("condition", BOOL)
    assert not isinstance(operand, RecordValue | MemoryRecord)
    expr: Expr = operand  # type: ignore[assignment]
    if isinstance(expr.type, Pointer):
        return unary(UnaryOp.NOT, null(low, expr))
    if isinstance(expr.type, Float | Opaque):
        if isinstance(expr, Const):
            return Const(int(expr.value != 0), BOOL)
        reason = CONDITION if isinstance(expr.type, Float) else UNTYPED
        return low.real(lambda: _is_not_zero(expr), reason, BOOL, [expr])
    return cast(expr, BOOL)


def _is_not_zero(expr: Expr) -> Expr:
    if not isinstance(expr.type, Float):
        return Cast(expr, BOOL)
    return Binary(BinaryOp.NE, expr, zero(expr.type), BOOL)


def null(low: Lowering, pointer: Expr) -> Expr:
    """Whether a pointer is null: one unknown per parameter, false for objects.

    A pointer is moved from where it points to an object: none that is null is moved.
    """
    if isinstance(pointer, Const):
        return Const(int(pointer.value == 0), BOOL)
    if (known := low.kept_pointers.null(pointer)) is not None:
        return known
    if isinstance(pointer, Offset):
        return null(low, pointer.pointer)
    if isinstance(pointer, Cast) and isinstance(pointer.operand.type, Pointer):
        return null(low, pointer.operand)
    if isinstance(pointer, Select):
        return select(pointer.condition, null(low, pointer.then), null(low, pointer.otherwise), BOOL)
    if isinstance(pointer, AddressOf):
        array = pointer.array
        if array.param is None and array.space is not Space.GLOBAL:
            return FALSE
        identity = low.nulls.setdefault(array.id, low.fresh())
        return Unknown(f"whether {array.name} is null", BOOL, identity, array.param is not None)
    if isinstance(pointer, Var):  # it may have been set to several things
        return binary(BinaryOp.EQ, pointer, Const(0, pointer.type), BOOL)
    return low.unknown("whether a pointer is null", BOOL, [pointer])


def convert(low: Lowering, operand: Value, target: TypeInfo) -> Value:
    """An implicit or explicit conversion to ``target``."""
    if not isinstance(operand, EXPR_TYPES):
        if target.ir == BOOL and isinstance(operand, Address):
            return TRUE
        if isinstance(operand, RecordValue) and target.scalar:
            return low.unknown("conversion of a record", target.ir)
        return operand
    expr: Expr = operand  # type: ignore[assignment]
    if not target.scalar:
        return expr
    return converted(low, expr, target.ir)


def converted(low: Lowering, expr: Expr, target: Type) -> Expr:
    """``convert`` for a scalar. Raises ``Untranslatable`` for integers that no pointer is inside of."""
    source = expr.type
    if source == target:
        return expr
    if target == BOOL:
        return truth(low, expr)
    if isinstance(target, Pointer):
        if isinstance(source, Pointer):
            return expr
        if isinstance(expr, Const):
            return Const(expr.value, target)
        return _integer_as_pointer(expr)
    if isinstance(expr, Const) and not isinstance(source, Pointer):
        return cast(expr, target)
    if isinstance(target, Float) or isinstance(source, Float):
        reason = "floating-point value" if isinstance(target, Float) else INTEGER
        made = low.real(lambda: Cast(expr, target), reason, target, [expr])
        if isinstance(source, Float):
            return as_integer(low, expr, target, made)
        return made_of_integer(low, made, expr)
    if isinstance(source, Pointer):
        return Cast(expr, target)
    return cast(expr, target)


def _integer_as_pointer(expr: Expr) -> Expr:
    """``(T*)((uintptr_t)p + k)``: the pointer inside the integer, moved."""
    found = pointer_inside(expr)
    if found is None:
        raise Untranslatable("integer converted to a pointer", "what it points to is not known")
    return found
