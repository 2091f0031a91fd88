"""Bounds of unknown values: what a mask, a remainder or a narrow type says of data.

Intervals in the usual arithmetic (Moore 1966), per lane where an operand is; no
wraparound is assumed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import Int
from cuda_lsp.static.execution.values import Data, Lanes, Scalar, bounds_of


def fits_type(low: int | Lanes | None, high: int | Lanes | None, type: Int) -> bool:
    """Whether all values between the bounds are in the range of ``type``."""
    if low is None or high is None:
        return False
    return bool(np.all(np.greater_equal(low, type.minimum)) and np.all(np.less_equal(high, type.maximum)))


def result_bounds(op: BinaryOp, a: Scalar, b: Scalar) -> tuple[Any, Any]:
    """Sound bounds of an unknown result, where cheap (no wraparound assumed)."""
    if BINARY[op].logical:
        return _logical_bounds(op, a, b)
    if BINARY[op].comparison:
        return 0, 1
    if isinstance(b, int) and b >= 0 and op is BinaryOp.BAND:
        return 0, b
    if isinstance(a, int) and a >= 0 and op is BinaryOp.BAND:
        return 0, a
    (al, ah), (bl, bh) = bounds_of(a), bounds_of(b)
    if op is BinaryOp.REM and isinstance(b, int) and b > 0:
        return (0, b - 1) if al is not None and np.all(np.greater_equal(al, 0)) else (1 - b, b - 1)
    if al is None or ah is None or bl is None or bh is None or not _fit_lanes(al, ah, bl, bh):
        return None, None
    if op is BinaryOp.ADD:
        return al + bl, ah + bh
    if op is BinaryOp.SUB:
        return al - bh, ah - bl
    for factor, low, high in ((b, al, ah), (a, bl, bh)):
        if (
            op is BinaryOp.MUL
            and isinstance(factor, int)
            and _fit_lanes(low, high, limit=_WORD // (abs(factor) + 1))
        ):
            return (low * factor, high * factor) if factor >= 0 else (high * factor, low * factor)
    if op is BinaryOp.MIN:
        return np.minimum(al, bl), np.minimum(ah, bh)
    if op is BinaryOp.MAX:
        return np.maximum(al, bl), np.maximum(ah, bh)
    if isinstance(b, int) and 0 <= b < 63 and op is BinaryOp.SHR:
        return np.right_shift(al, b), np.right_shift(ah, b)
    return None, None


_WORD = 1 << 62


def _fit_lanes(*bounds: int | Lanes, limit: int = _WORD) -> bool:
    """Bounds per lane are words of the machine: whether these stay so under one sum or product."""
    if all(isinstance(bound, int) for bound in bounds):
        return True
    return all(
        abs(bound) < limit if isinstance(bound, int) else bool(np.all((bound < limit) & (bound > -limit)))
        for bound in bounds
    )


def _logical_bounds(op: BinaryOp, a: Scalar, b: Scalar) -> tuple[Any, Any]:
    """Per lane 0 or 1 where one operand decides."""
    (al, ah), (bl, bh) = truth_bounds(a), truth_bounds(b)
    if op is BinaryOp.AND:
        return np.minimum(al, bl), np.minimum(ah, bh)
    return np.maximum(al, bl), np.maximum(ah, bh)


def truth_bounds(value: Scalar) -> tuple[Any, Any]:
    """Bounds of ``value != 0``: numbers 0 and 1, or lanes of them."""
    if not isinstance(value, Data):
        known = np.not_equal(value, 0).astype(np.int64)
        return known, known
    low, high = value.low, value.high
    if low is None or high is None:
        return 0, 1
    zero = np.equal(low, 0) & np.equal(high, 0)
    return (np.greater(low, 0) | np.less(high, 0)).astype(np.int64), (~zero).astype(np.int64)


_DECIDES = {BinaryOp.AND: False, BinaryOp.OR: True}
"""The operand that decides a logical operation whatever the other is."""

_OF_EQUALS = {
    **dict.fromkeys((BinaryOp.EQ, BinaryOp.LE, BinaryOp.GE), 1),
    **dict.fromkeys((BinaryOp.NE, BinaryOp.LT, BinaryOp.GT, BinaryOp.SUB, BinaryOp.BXOR), 0),
}
"""What an operation gives for two integers that are one."""


def settled(op: BinaryOp, a: Scalar, b: Scalar, integers: bool) -> Scalar | None:
    """What an operation with unknown operands gives though they are unknown; None: that hangs on them."""
    decides = _DECIDES.get(op)
    if decides is not None:
        for known, other in ((a, b), (b, a)):
            if type(known) is int:
                return int(decides) if bool(known) == decides else other
    if a is b and integers and op in _OF_EQUALS:
        return _OF_EQUALS[op]
    return _outcome_by_bounds(op, a, b)


def _outcome_by_bounds(op: BinaryOp, a: Scalar, b: Scalar) -> int | None:
    """The outcome of a comparison that bounds already decide."""
    if op not in (BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE):
        return None
    if op in (BinaryOp.GT, BinaryOp.GE):
        a, b, op = b, a, (BinaryOp.LT if op is BinaryOp.GT else BinaryOp.LE)
    (al, ah), (bl, bh) = bounds_of(a), bounds_of(b)
    below = np.less if op is BinaryOp.LT else np.less_equal
    above = np.greater_equal if op is BinaryOp.LT else np.greater
    if ah is not None and bl is not None and np.all(below(ah, bl)):
        return 1
    if al is not None and bh is not None and np.all(above(al, bh)):
        return 0
    return None
