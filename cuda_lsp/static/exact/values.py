"""Expressions of the kernel program as Python functions of one thread: exact integers, or not known.

Operators are those of the operation table; what C++ leaves undefined is not known, and stays it. Lanes
exchange what they offered at the barrier before (CUDA C++ Programming Guide, warp shuffle and vote). Floats
are data and not known, unless they are asked for (``ir.reals``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cuda_lsp.ir import ops, reals
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.exchanges import EXCHANGES, Exchange, value_of
from cuda_lsp.ir.program import Array, Axis, BinaryOp
from cuda_lsp.ir.types import INT64, Float, Int, Pointer, Type
from cuda_lsp.ir.walk import subexpressions

Where = tuple[Array, int | None]
"""An address: the object, and the byte in it when that is known."""

Value = int | float | Where | None
Evaluate = Callable[[Any], Value]
"""A value for one thread, which has ``held`` (variables by slot), ``axes``, and ``offers`` (of its warp)."""

_PARTIAL = (BinaryOp.DIV, BinaryOp.REM, BinaryOp.SHL, BinaryOp.SHR)


def evaluator(
    e: ir.Expr,
    slot_of: Callable[[ir.Var], Any],
    floats: bool = False,
    chosen: Mapping[int, int] = MappingProxyType({}),
) -> Evaluate:
    """The value of an expression for a thread; ``slot_of``: where the thread holds a variable.

    ``floats``: they are numbers like others. ``chosen``: values of unknown ones, by
    their ids, that inputs make what they like. Raises ``RecursionError`` when the
    expression nests too deeply.
    """

    def of(part: ir.Expr) -> Evaluate:
        return evaluator(part, slot_of, floats, chosen)

    match e:
        case ir.Const():
            value = e.value if floats or (isinstance(e.value, int) and isinstance(e.type, Int)) else None
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
            return _offset(of(e.pointer), of(e.bytes))
        case ir.Select():
            return _select(of(e.condition), of(e.then), of(e.otherwise))
        case ir.Cast():
            return _cast(of(e.operand), e.type, floats)
        case ir.Unary():
            return _unary(of(e.operand), e)
        case ir.Binary():
            return _binary(of(e.left), of(e.right), e)
        case ir.Intrinsic():
            return _intrinsic(tuple(map(of, e.operands)), e)
        case ir.Unknown():
            known = chosen.get(e.id)
            return lambda t: known


def _offset(pointer: Evaluate, bytes: Evaluate) -> Evaluate:
    def moved(t: Any) -> Value:
        base = pointer(t)
        if not isinstance(base, tuple):
            return None
        (array, start), by = base, bytes(t)
        return (array, start + by) if isinstance(by, int) and start is not None else (array, None)

    return moved


def _select(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    def selected(t: Any) -> Value:
        which = condition(t)
        if which is None:
            return None
        return then(t) if which else otherwise(t)

    return selected


def _cast(operand: Evaluate, type: Type, floats: bool) -> Evaluate:
    def converted(t: Any) -> Value:
        value = operand(t)
        if isinstance(value, tuple):
            return value if isinstance(type, Pointer) else None
        if value is None or not isinstance(type, Int):
            if not floats or not isinstance(type, Float) or value is None:
                return None
            return type.rounded(float(value))
        if type.boolean:
            return type.wrap(value != 0)
        if isinstance(value, float) and not type.minimum <= value <= type.maximum:  # also infinity, and none
            return None
        return type.wrap(int(value))

    if not isinstance(type, Int) or floats:
        return converted
    least, most, wrap = type.minimum, type.maximum, type.wrap

    def to_integer(t: Any) -> Value:
        value = operand(t)
        if not isinstance(value, int):
            return None
        return value if least <= value <= most else wrap(value)

    return to_integer


def _unary(operand: Evaluate, e: ir.Unary) -> Evaluate:
    python, type = ops.UNARY[e.op].python, e.operand.type

    def result(t: Any) -> Value:
        value = operand(t)
        if isinstance(value, int) and isinstance(type, Int):
            return python(value, type)
        return (-value if e.op is ir.UnaryOp.NEG else int(not value)) if isinstance(value, float) else None

    return result


def _binary(left: Evaluate, right: Evaluate, e: ir.Binary) -> Evaluate:
    row, type, op = ops.BINARY[e.op], e.left.type, e.op
    python = row.python if op not in _PARTIAL else row.exact
    integers = type if isinstance(type, Int) else None

    def result(t: Any) -> Value:
        return of(left(t), right(t))

    def of(a: Value, b: Value) -> Value:
        if integers is not None and isinstance(a, int) and isinstance(b, int):
            return python(a, b, integers)
        if op is BinaryOp.AND and (a == 0 or b == 0):
            return 0
        if op is BinaryOp.OR and ((a and not isinstance(a, tuple)) or (b and not isinstance(b, tuple))):
            return 1
        if isinstance(a, tuple) or isinstance(b, tuple) or a is None or b is None:
            return between(a, b)
        if row.comparison:
            return reals.compared(op, a, b)
        if row.logical:
            return int(bool(a) and bool(b)) if op is BinaryOp.AND else int(bool(a) or bool(b))
        return reals.computed(op, a, b, type) if isinstance(type, Float) else None

    def between(a: Value, b: Value) -> Value:
        """Two addresses compared, or their distance."""
        if not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] is not b[0]:
            return None
        return python(a[1], b[1], INT64) if a[1] is not None and b[1] is not None else None

    if integers is None:
        return result
    return _exactly(op, left, right, integers, of) or result


_PLAIN: Mapping[BinaryOp, Callable[[Any, Any], int]] = {
    BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul,
    BinaryOp.LT: operator.lt, BinaryOp.LE: operator.le, BinaryOp.GT: operator.gt, BinaryOp.GE: operator.ge,
    BinaryOp.EQ: operator.eq, BinaryOp.NE: operator.ne,
}  # fmt: skip


def _exactly(
    op: BinaryOp, left: Evaluate, right: Evaluate, type: Int, otherwise: Callable[[Value, Value], Value]
) -> Evaluate | None:
    """What threads compute most, of two numbers as Python does it; ``otherwise``: where one is none.

    None: as the table of operations says.
    """
    plain = _PLAIN.get(op)
    if plain is None:
        return None
    least, most, wrap = type.minimum, type.maximum, type.wrap

    def compared(t: Any) -> Value:
        a, b = left(t), right(t)
        if isinstance(a, int) and isinstance(b, int):
            return 1 if plain(a, b) else 0
        return otherwise(a, b)

    def computed(t: Any) -> Value:
        a, b = left(t), right(t)
        if isinstance(a, int) and isinstance(b, int):
            value = plain(a, b)
            return value if least <= value <= most else wrap(value)
        return otherwise(a, b)

    return compared if ops.BINARY[op].comparison else computed


def exchanges(e: ir.Expr) -> list[tuple[ir.Intrinsic, Exchange]]:
    """The exchanges in an expression whose participants wait for one another."""
    found = ((x, EXCHANGES.get(x.name)) for x in subexpressions((e,)) if isinstance(x, ir.Intrinsic))
    return [(x, row) for x, row in found if row is not None and row.synchronises]


def _intrinsic(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    type = e.operands[0].type if e.operands else None
    if e.name in EXCHANGES:
        return _exchange(operands, e)
    function = ops.INTRINSICS.get(e.name)
    if function is None or not isinstance(type, Int):
        return _real(operands, e)

    def result(t: Any) -> Value:
        values = tuple(operand(t) for operand in operands)
        known = [v for v in values if isinstance(v, int)]
        return function(known, type) if len(known) == len(values) else None

    return result


def _real(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    name, type = e.name, e.type
    if name not in reals.FUNCTIONS:
        return lambda t: None

    def result(t: Any) -> Value:
        values = [operand(t) for operand in operands]
        known = [float(v) for v in values if isinstance(v, (int, float))]
        return reals.result_of(name, known, type) if len(known) == len(values) else None

    return result


def _exchange(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    row, type = EXCHANGES[e.name], e.type

    def result(t: Any) -> Value:
        known = [operand(t) for operand in operands]
        if not isinstance(type, Int) and row.source is None:
            return None
        return value_of(row, t.offers, t.axes[Axis.LANE], known, type)

    return result if row.synchronises else lambda t: None
