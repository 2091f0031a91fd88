"""C++'s built-in operators on values: integers after the usual conversions, pointers in bytes."""

from __future__ import annotations

from cuda_lsp.frontend.lowering.build import binary, cast, element, unary
from cuda_lsp.frontend.lowering.conversions import null
from cuda_lsp.frontend.lowering.float_reasons import COMPARISON
from cuda_lsp.frontend.lowering.places import Address, Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, common, promote
from cuda_lsp.ir.program import FALSE, TRUE, Binary, BinaryOp, Const, Expr, UnaryOp
from cuda_lsp.ir.types import BOOL, INT64, Float, Int, Opaque, Pointer, Type


def arithmetic(
    low: Lowering, op: BinaryOp, a: Value, b: Value, left: TypeInfo, right: TypeInfo, result: TypeInfo
) -> Value:
    """A built-in binary operator on values of the given C++ types."""
    if isinstance(a, Address) or isinstance(b, Address):
        if (isinstance(a, Address) and isinstance(b, Const)) or (
            isinstance(b, Address) and isinstance(a, Const)
        ):
            if op is BinaryOp.EQ:
                return FALSE
            if op is BinaryOp.NE:
                return TRUE
            if isinstance(b, Const) and b.value == 0:
                return a
        a = low.pointer(a) if isinstance(a, Address) else a
        b = low.pointer(b) if isinstance(b, Address) else b
    x, y = low.scalar(a, left), low.scalar(b, right)
    if isinstance(x.type, Pointer) or isinstance(y.type, Pointer):
        return _pointer_arithmetic(low, op, x, y, left, right, result)
    if isinstance(x.type, Float | Opaque) or isinstance(y.type, Float | Opaque):
        if result.ir == BOOL:
            return low.real(lambda: Binary(op, x, y, BOOL), COMPARISON, BOOL, [x, y])
        return low.floating(op, result.ir, x, y)
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        assert isinstance(x.type, Int)
        wide = promote(x.type)
        return cast(binary(op, cast(x, wide), y, wide), result.ir)
    wide = common(x.type, y.type)
    return _result(binary(op, cast(x, wide), cast(y, wide)), result.ir)


def _result(expr: Expr, type: Type) -> Expr:
    return cast(expr, type) if isinstance(type, Int) else expr


def _pointer_arithmetic(
    low: Lowering, op: BinaryOp, x: Expr, y: Expr, left: TypeInfo, right: TypeInfo, result: TypeInfo
) -> Value:
    if op in (BinaryOp.ADD, BinaryOp.SUB) and not (
        isinstance(x.type, Pointer) and isinstance(y.type, Pointer)
    ):
        if isinstance(x.type, Pointer):
            return element(x, y, left.pointee_size, op is BinaryOp.SUB)
        return element(y, x, right.pointee_size)
    if op is BinaryOp.SUB:
        bytes = binary(BinaryOp.SUB, x, y, INT64)
        return binary(BinaryOp.DIV, bytes, Const(left.pointee_size, INT64))
    if op in (BinaryOp.EQ, BinaryOp.NE):
        for a, b in ((x, y), (y, x)):
            if isinstance(b, Const) and b.value == 0:
                is_null = null(low, a)
                return is_null if op is BinaryOp.EQ else unary(UnaryOp.NOT, is_null)
    if isinstance(x.type, Pointer) and isinstance(y.type, Pointer):
        return binary(op, x, y, BOOL)
    return low.unknown("pointer arithmetic", result.ir, [x, y])


def stepped(low: Lowering, old: Expr, info: TypeInfo, up: bool) -> Expr:
    """The value after ``++`` (``up``) or ``--``."""
    if info.is_pointer:
        return element(old, Const(1, INT64), info.pointee_size, not up)
    if not isinstance(info.ir, Int):
        one = Const(1.0, info.ir)
        return low.floating(BinaryOp.ADD if up else BinaryOp.SUB, info.ir, old, one)
    wide = promote(info.ir)
    return cast(binary(BinaryOp.ADD if up else BinaryOp.SUB, cast(old, wide), Const(1, wide)), info.ir)
