"""Expressions of the kernel program as Python functions of one thread: exact integers, or not known.

Operators are those of the operation table; what C++ leaves undefined is not known, and stays it. Lanes
exchange what they offered at the barrier before (CUDA C++ Programming Guide, warp shuffle and vote).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda_lsp.ir import ops
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.ir.types import INT64, Int, Pointer, Type

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


def _undefined(op: ir.BinaryOp, b: int, type: Int) -> bool:
    """C++ does not say what comes out."""
    if op in (ir.BinaryOp.DIV, ir.BinaryOp.REM):
        return b == 0
    return op in (ir.BinaryOp.SHL, ir.BinaryOp.SHR) and not 0 <= b < type.bits


def _binary(left: Evaluate, right: Evaluate, e: ir.Binary) -> Evaluate:
    python, type, op = ops.BINARY[e.op].python, e.left.type, e.op

    def result(t: Any) -> Value:
        a, b = left(t), right(t)
        if isinstance(a, int) and isinstance(b, int) and isinstance(type, Int):
            return None if _undefined(op, b, type) else python(a, b, type)
        if op is ir.BinaryOp.AND and (a == 0 or b == 0):
            return 0
        if op is ir.BinaryOp.OR and ((isinstance(a, int) and a) or (isinstance(b, int) and b)):
            return 1
        if not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] is not b[0]:
            return None
        return python(a[1], b[1], INT64) if a[1] is not None and b[1] is not None else None

    return result


# Lane exchanges: which operand lanes offer to one another, and what comes out.

OFFERED = {
    "__shfl_sync": 1, "__shfl_up_sync": 1, "__shfl_down_sync": 1, "__shfl_xor_sync": 1,
    "__ballot_sync": 1, "__any_sync": 1, "__all_sync": 1,
    "__syncthreads_count": 0, "__syncthreads_and": 0, "__syncthreads_or": 0,
}  # fmt: skip


def exchanges(e: Any) -> list[ir.Intrinsic]:
    """The lane exchanges in an expression."""
    if isinstance(e, ir.Intrinsic):
        return [e] if e.name in OFFERED else [x for o in e.operands for x in exchanges(o)]
    parts = [
        getattr(e, name, None) for name in ("operand", "left", "right", "condition", "then", "otherwise")
    ]
    return [x for part in parts if part is not None for x in exchanges(part)]


def _intrinsic(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    type = e.operands[0].type if e.operands else None
    if e.name in OFFERED:
        return _exchange(operands, e)
    if not isinstance(type, Int):
        return lambda t: None
    extreme = {"min": min, "umin": min, "max": max, "umax": max}.get(e.name)
    function = ops.INTRINSICS.get(e.name)
    if function is None and extreme is None:
        return lambda t: None

    def result(t: Any) -> Value:
        values = tuple(operand(t) for operand in operands)
        known = [v for v in values if isinstance(v, int)]
        if len(known) != len(values):
            return None
        return extreme(known) if extreme is not None else function(known, type) if function else None

    return result


def _exchange(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    name = e.name

    def vote(t: Any) -> Value:
        offers: dict[int, Value] = t.offers
        if not offers or any(not isinstance(v, int) for v in offers.values()):
            return None
        if name == "__ballot_sync":
            return sum(1 << lane for lane, v in offers.items() if v)
        if name.endswith("count"):
            return sum(1 for v in offers.values() if v)
        return int((all if name in ("__all_sync", "__syncthreads_and") else any)(offers.values()))

    def shuffle(t: Any) -> Value:
        by = operands[2](t)
        width = operands[3](t) if len(operands) > 3 else 32
        if not isinstance(by, int) or not isinstance(width, int) or width not in (1, 2, 4, 8, 16, 32):
            return None
        lane: int = t.axes[Axis.LANE]
        first = lane // width * width
        source = {
            "__shfl_sync": first + by % width,
            "__shfl_up_sync": lane - by,
            "__shfl_down_sync": lane + by,
            "__shfl_xor_sync": lane ^ by,
        }[name]
        if not first <= source < first + width:
            source = lane
        return t.offers.get(source)

    return shuffle if name.startswith("__shfl") else vote
