"""One table of operations: every operator of the kernel program, declared once with all its evaluators.

Semantics are C's on fixed-width two's complement numbers: division truncates, ``>>`` is arithmetic on
signed types, sums and products wrap. What C++ leaves undefined otherwise (a division by zero, a shift count
beyond the width) is not known: ``exact`` gives None, and who works with arrays asks ``defined`` first.

Evaluators of one operation, taking the *operand* type (for shifts: the left one's); the result is defined:

``python``  Python integers in the type's range → Python integer in the result's range
``numpy``   arrays of the type's dtype (or in-range Python integers beside an array) → array

The solver's encoder works on terms (``static/symbolic``). Floating point is data, never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.ir import packed
from cuda_lsp.ir.program import Binary, BinaryOp, Const, Expr, UnaryOp
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import subexpressions

Lanes = NDArray[Any]
"""Integers of one native dtype, one per lane (last axis: threads)."""

# ------------------------------------------------------------------------------------------ types

_DTYPES: Mapping[tuple[int, bool], np.dtype[Any]] = {
    (bits, signed): np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
}
_BOOL = np.dtype(np.bool_)


def dtype_of(type: Int) -> np.dtype[Any]:
    """The NumPy dtype whose arithmetic wraps as ``type`` does; 128-bit integers have none (KeyError)."""
    return _BOOL if type.boolean else _DTYPES[type.bits, type.signed]


def convert(value: Lanes, type: Int) -> Lanes:
    """``value`` cast to ``type`` as C does: modulo ``2**bits``; to bool: ``!= 0``."""
    return value != 0 if type.boolean else value.astype(dtype_of(type), copy=False)


# ------------------------------------------------------------------------------------------ table


def may_be_undefined(e: Expr) -> bool:
    """Some part of ``e`` is undefined for some values of its operands."""
    return any(
        isinstance(x, Binary)
        and BINARY[x.op].defined is not None
        and not (isinstance(x.right, Const) and isinstance(x.left.type, Int))
        for x in subexpressions((e,))
    )


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _np_div(a: Lanes, b: Lanes, type: Int) -> Lanes:
    divisor = np.asarray(b, dtype_of(type))
    divisor = np.where(divisor == 0, divisor.dtype.type(1), divisor)
    exact = a if not type.signed else np.subtract(a, np.fmod(a, divisor))
    with np.errstate(over="ignore"):  # INT_MIN / -1 wraps
        return np.floor_divide(exact, divisor)


def _np_rem(a: Lanes, b: Lanes, type: Int) -> Lanes:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.fmod(a, b)  # truncates, as C does


def _np_count(b: Lanes | int, type: Int) -> Lanes:
    return np.asarray(b & (type.bits - 1)).astype(dtype_of(type))


def _no_zero(b: Any, type: Int) -> Any:
    return b != 0


def _in_width(b: Any, type: Int) -> Any:
    return (b >= 0) & (b < type.bits)


BinaryPython = Callable[[int, int, Int], int]
BinaryNumpy = Callable[[Any, Any, Int], Lanes]


@frozen
class BinaryOperation:
    """One binary operation; ``precedence`` is C's (larger binds tighter), 0 for function notation.

    ``defined``: whether C++ says what comes out with ``b`` on the right, a bool, for an array one each; None:
    it always does.
    """

    op: BinaryOp
    precedence: int
    python: BinaryPython
    numpy: BinaryNumpy
    comparison: bool = False
    logical: bool = False
    defined: Callable[[Any, Int], Any] | None = None

    def exact(self, a: int, b: int, type: Int) -> int | None:
        """The result, in its range; None where C++ does not define it."""
        known = self.defined is None or self.defined(b, type)
        return self.python(a, b, type) if known else None


@frozen
class UnaryOperation:
    """One unary operation."""

    op: UnaryOp
    python: Callable[[int, Int], int]
    numpy: Callable[[Lanes, Int], Lanes]


_Op, _Row = BinaryOp, BinaryOperation
# fmt: off
BINARY: Mapping[BinaryOp, BinaryOperation] = {row.op: row for row in (
    _Row(_Op.ADD,  9,  lambda a, b, t: t.wrap(a + b),            lambda a, b, t: np.add(a, b)),
    _Row(_Op.SUB,  9,  lambda a, b, t: t.wrap(a - b),            lambda a, b, t: np.subtract(a, b)),
    _Row(_Op.MUL,  10, lambda a, b, t: t.wrap(a * b),            lambda a, b, t: np.multiply(a, b)),
    _Row(_Op.DIV,  10, lambda a, b, t: t.wrap(_quotient(a, b)),  _np_div, defined=_no_zero),
    _Row(_Op.REM,  10, lambda a, b, t: a - b * _quotient(a, b),  _np_rem, defined=_no_zero),
    _Row(_Op.SHL,  8,  lambda a, b, t: t.wrap(a << b), lambda a, b, t: np.left_shift(a, _np_count(b, t)),
         defined=_in_width),
    _Row(_Op.SHR,  8,  lambda a, b, t: a >> b,         lambda a, b, t: np.right_shift(a, _np_count(b, t)),
         defined=_in_width),
    _Row(_Op.BAND, 5,  lambda a, b, t: a & b,                    lambda a, b, t: np.bitwise_and(a, b)),
    _Row(_Op.BXOR, 4,  lambda a, b, t: a ^ b,                    lambda a, b, t: np.bitwise_xor(a, b)),
    _Row(_Op.BOR,  3,  lambda a, b, t: a | b,                    lambda a, b, t: np.bitwise_or(a, b)),
    _Row(_Op.AND,  2,  lambda a, b, t: int(bool(a) and bool(b)),
         lambda a, b, t: np.not_equal(a, 0) & np.not_equal(b, 0), logical=True),
    _Row(_Op.OR,   1,  lambda a, b, t: int(bool(a) or bool(b)),
         lambda a, b, t: np.not_equal(a, 0) | np.not_equal(b, 0), logical=True),
    _Row(_Op.LT,   7,  lambda a, b, t: int(a < b),   lambda a, b, t: np.less(a, b),          comparison=True),
    _Row(_Op.LE,   7,  lambda a, b, t: int(a <= b),  lambda a, b, t: np.less_equal(a, b),    comparison=True),
    _Row(_Op.GT,   7,  lambda a, b, t: int(a > b),   lambda a, b, t: np.greater(a, b),       comparison=True),
    _Row(_Op.GE,   7,  lambda a, b, t: int(a >= b),  lambda a, b, t: np.greater_equal(a, b), comparison=True),
    _Row(_Op.EQ,   6,  lambda a, b, t: int(a == b),  lambda a, b, t: np.equal(a, b),         comparison=True),
    _Row(_Op.NE,   6,  lambda a, b, t: int(a != b),  lambda a, b, t: np.not_equal(a, b),     comparison=True),
    _Row(_Op.MIN,  0,  lambda a, b, t: min(a, b),    lambda a, b, t: np.minimum(a, b)),
    _Row(_Op.MAX,  0,  lambda a, b, t: max(a, b),    lambda a, b, t: np.maximum(a, b)),
)}

UNARY: Mapping[UnaryOp, UnaryOperation] = {row.op: row for row in (
    UnaryOperation(UnaryOp.NEG, lambda a, t: t.wrap(-a), lambda a, t: np.negative(a)),
    UnaryOperation(UnaryOp.NOT, lambda a, t: int(not a), lambda a, t: np.logical_not(a)),
    UnaryOperation(UnaryOp.INV, lambda a, t: t.wrap(~a), lambda a, t: np.invert(a)),
)}
# fmt: on

# ------------------------------------------------------------------------------------- intrinsics


IntegerFunction = packed.Function
"""Operands in the types' ranges and the type of the first → a value in the result's range."""


def _bits(a: int, type: Int) -> int:
    return a & ((1 << type.bits) - 1)


def _low24(a: int, signed: bool) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if signed and a >> 23 else a


_ROWS: tuple[tuple[str, IntegerFunction], ...] = (
    ("abs labs llabs", lambda x, t: t.wrap(abs(x[0]))),
    ("__popc __popcll", lambda x, t: bin(_bits(x[0], t)).count("1")),
    ("__clz __clzll", lambda x, t: t.bits - _bits(x[0], t).bit_length()),
    ("__ffs __ffsll", lambda x, t: (x[0] & -x[0]).bit_length()),
    ("__brev __brevll", lambda x, t: t.wrap(int(f"{_bits(x[0], t):0{t.bits}b}"[::-1], 2))),
    ("__mul24 __umul24", lambda x, t: t.wrap(_low24(x[0], t.signed) * _low24(x[1], t.signed))),
    ("__mulhi __umulhi __mul64hi __umul64hi", lambda x, t: t.wrap(x[0] * x[1] >> t.bits)),
)
INTRINSICS: Mapping[str, IntegerFunction] = {
    **{name: function for names, function in _ROWS for name in names.split()},
    **packed.FUNCTIONS,
}
"""Pure integer functions by CUDA name (CUDA Math API, integer intrinsics)."""


def intrinsic_lanes(name: str, operands: Sequence[Lanes], type: Int, result: Int) -> Lanes:
    """``INTRINSICS[name]`` over lanes; ``operands`` broadcast, ``result`` is the returned array's type."""
    function = INTRINSICS[name]
    arrays = np.broadcast_arrays(*operands)
    rows = zip(*(a.ravel().tolist() for a in arrays), strict=True)
    flat = np.array([function(row, type) for row in rows], dtype_of(result))
    return np.reshape(flat, arrays[0].shape)
