"""Expressions of the kernel program as Python functions of one thread: exact integers, or not known.

Operators are those of the operation table; what C++ leaves undefined is not known, and stays it. Lanes
exchange what they offered at the barrier before (CUDA C++ Programming Guide, warp shuffle and vote).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda_lsp.ir import ops
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.exchanges import EXCHANGES, Exchange, value_of
from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.ir.types import INT64, Int, Pointer, Type
from cuda_lsp.ir.walk import subexpressions

Where = tuple[Array, int | None]
"""An address: the object, and the byte in it when that is known."""

Value = int | Where | None
Evaluate = Callable[[Any], Value]
"""A value for one thread, which has ``held`` (variables by slot), ``axes``, and ``offers`` (of its warp)."""


def evaluator(e: ir.Expr, slot_of: Callable[[ir.Var], int]) -> Evaluate:
    """The value of an expression for a thread; ``slot_of``: where the thread holds a variable."""
    match e:
        case ir.Const():
            value = e.value if isinstance(e.value, int) and isinstance(e.type, Int) else None
            return lambda t: value
        case ir.Var():
            slot = slot_of(e)
            return lambda t: t.held[slot]
        case ir.Builtin():
            axis: Axis = e.axis
            return lambda t: t.axes[axis]
        case ir.AddressOf():
            where = (e.array, 0)
            return lambda t: where
        case ir.Offset():
            return _offset(evaluator(e.pointer, slot_of), evaluator(e.bytes, slot_of))
        case ir.Select():
            return _select(*(evaluator(x, slot_of) for x in (e.condition, e.then, e.otherwise)))
        case ir.Cast():
            return _cast(evaluator(e.operand, slot_of), e.type)
        case ir.Unary():
            return _unary(evaluator(e.operand, slot_of), e)
        case ir.Binary():
            return _binary(evaluator(e.left, slot_of), evaluator(e.right, slot_of), e)
        case ir.Intrinsic():
            return _intrinsic(tuple(evaluator(o, slot_of) for o in e.operands), e)
        case ir.Unknown():
            return lambda t: None


def _offset(pointer: Evaluate, bytes: Evaluate) -> Evaluate:
    def moved(t: Any) -> Value:
        base = pointer(t)
        if not isinstance(base, tuple):
            return None
        by = bytes(t)
        return (base[0], base[1] + by) if isinstance(by, int) and base[1] is not None else (base[0], None)

    return moved


def _select(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    def selected(t: Any) -> Value:
        which = condition(t)
        if which is None:
            return None
        return then(t) if which else otherwise(t)

    return selected


def _cast(operand: Evaluate, type: Type) -> Evaluate:
    def converted(t: Any) -> Value:
        value = operand(t)
        if isinstance(value, tuple):
            return value if isinstance(type, Pointer) else None
        return type.wrap(value) if value is not None and isinstance(type, Int) else None

    return converted


def _unary(operand: Evaluate, e: ir.Unary) -> Evaluate:
    python, type = ops.UNARY[e.op].python, e.operand.type

    def result(t: Any) -> Value:
        value = operand(t)
        return python(value, type) if isinstance(value, int) and isinstance(type, Int) else None

    return result


def _binary(left: Evaluate, right: Evaluate, e: ir.Binary) -> Evaluate:
    exact, type, op = ops.BINARY[e.op].exact, e.left.type, e.op

    def result(t: Any) -> Value:
        a, b = left(t), right(t)
        if isinstance(a, int) and isinstance(b, int) and isinstance(type, Int):
            return exact(a, b, type)
        if op is ir.BinaryOp.AND and (a == 0 or b == 0):
            return 0
        if op is ir.BinaryOp.OR and ((isinstance(a, int) and a) or (isinstance(b, int) and b)):
            return 1
        if not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] is not b[0]:
            return None
        return exact(a[1], b[1], INT64) if a[1] is not None and b[1] is not None else None

    return result


def exchanges(e: ir.Expr) -> list[tuple[ir.Intrinsic, Exchange]]:
    """The exchanges in an expression whose participants wait for one another."""
    found = ((x, EXCHANGES.get(x.name)) for x in subexpressions((e,)) if isinstance(x, ir.Intrinsic))
    return [(x, row) for x, row in found if row is not None and row.synchronises]


def _intrinsic(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    type = e.operands[0].type if e.operands else None
    if e.name in EXCHANGES:
        return _exchange(operands, e)
    if not isinstance(type, Int):
        return lambda t: None
    function = ops.INTRINSICS.get(e.name)
    if function is None:
        return lambda t: None

    def result(t: Any) -> Value:
        values = tuple(operand(t) for operand in operands)
        known = [v for v in values if isinstance(v, int)]
        if len(known) != len(values):
            return None
        return function(known, type)

    return result


def _exchange(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    row, type = EXCHANGES[e.name], e.type

    def result(t: Any) -> Value:
        known = [operand(t) for operand in operands]
        return value_of(row, t.offers, t.axes[Axis.LANE], known, type) if isinstance(type, Int) else None

    return result if row.synchronises else lambda t: None
