"""Floating-point numbers that are integers, rounded: ``int n = fminf(count - first, 64);``

Rounding keeps order: the lesser of two rounded integers is the lesser integer, rounded. Up to the type's
largest row of integers it changes none, so that what is converted back is the integer itself; what is beyond
stays beyond. Not where arithmetic of floating-point numbers comes between.
"""

from __future__ import annotations

from cuda_lsp.frontend.lowering.build import binary, cast, select
from cuda_lsp.frontend.lowering.output import Output
from cuda_lsp.ir.program import BinaryOp, Const, Expr, Unknown
from cuda_lsp.ir.types import INT64, Float, Int, Type

_EXACT = {32: 1 << 24, 64: 1 << 53}
"""Integers up to it have a number of their own, by the bits of the type."""

_ORDERED = (BinaryOp.MIN, BinaryOp.MAX)


def made_of_integer(low: Output, made: Expr, integer: Expr) -> Expr:
    """``made`` is this integer, rounded."""
    if isinstance(integer.type, Int) and isinstance(made, Unknown) and _limit(made.type):
        whole = cast(integer, INT64)
        if integer.type.maximum > INT64.maximum:  # what has no sign is large where it seems to have one
            below = binary(BinaryOp.LT, whole, Const(0, INT64))
            whole = select(below, Const(INT64.maximum, INT64), whole, INT64)
        low.integers[made.id] = whole
    return made


def of_both(low: Output, op: BinaryOp, made: Expr, a: Expr, b: Expr) -> Expr:
    """``made`` is the lesser, or the greater, of two numbers."""
    one, other = _integer_of(low, a), _integer_of(low, b)
    if op in _ORDERED and isinstance(made, Unknown) and one is not None and other is not None:
        low.integers[made.id] = binary(op, one, other)
    return made


def as_integer(low: Output, number: Expr, target: Type, made: Expr) -> Expr:
    """What a number is as an integer; ``made``: that as a value that nobody knows."""
    integer, limit = _integer_of(low, number), _limit(number.type)
    if integer is None or not isinstance(target, Int) or not isinstance(made, Unknown):
        return made
    least, most = max(-limit, target.minimum), min(limit, target.maximum)
    low_end, high_end = Const(least, target), Const(most, target)
    below = binary(BinaryOp.LT, integer, Const(least, INT64))
    above = binary(BinaryOp.LT, Const(most, INT64), integer)
    under = binary(BinaryOp.MIN, made, low_end) if least == -limit else made
    over = binary(BinaryOp.MAX, made, high_end) if most == limit else made
    return select(below, under, select(above, over, cast(integer, target), target), target)


def _integer_of(low: Output, number: Expr) -> Expr | None:
    if isinstance(number, Unknown):
        return low.integers.get(number.id)
    limit = _limit(number.type)
    if isinstance(number, Const) and abs(number.value) <= limit and number.value == int(number.value):
        return Const(int(number.value), INT64)
    return None


def _limit(type: Type) -> int:
    return _EXACT.get(type.bits, 0) if isinstance(type, Float) else 0
