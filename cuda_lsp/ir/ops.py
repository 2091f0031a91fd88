"""One table of operations: every operator of the kernel program, declared once with all its evaluators.

Semantics are C's on fixed-width two's complement numbers: division truncates, ``>>`` is arithmetic on
signed types.  Where C leaves the result undefined we follow the hardware (PTX ISA, integer
instructions): a shift count beyond the width is clamped, division by zero gives all ones.

Evaluators of one operation, all taking the *operand* type (for shifts: the left one's):

``python``  Python integers in the type's range → Python integer in the result's range
``numpy``   arrays of the type's dtype (or in-range Python integers beside an array) → array
``z3_int``  Z3 Ints, mathematical: no wraparound (the caller states that assumption)
``z3_bits`` Z3 bit-vectors of ``type.bits``; comparisons give Z3 Bools

Logical operations (``&& || !``) take Z3 Bools in both Z3 evaluators.  This module imports Z3 only when
a Z3 evaluator runs: the keystroke path never pays for it.  Floating point is data, never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.ir.program import (
    AddressOf,
    Binary,
    BinaryOp,
    Builtin,
    Cast,
    Const,
    Expr,
    Intrinsic,
    Offset,
    Select,
    Unary,
    UnaryOp,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import Int

Lanes = NDArray[Any]
"""Integers of one native dtype, one per lane (last axis: threads)."""

Z3 = Any
"""A Z3 expression; the library ships no types."""


class NotExpressible(Exception):
    """The operation has no meaning in this theory (bit operators over mathematical integers)."""


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


# -------------------------------------------------------------------------------- Python integers


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else a - b * _quotient(a, b)


def _count(b: int, type: Int) -> int:
    """The shift count as the hardware reads it: unsigned, clamped to the width."""
    return min(b, type.bits) if b >= 0 else type.bits


# ------------------------------------------------------------------------------------------ NumPy


def _np_rem(a: Lanes, b: Lanes, type: Int) -> Lanes:
    with np.errstate(divide="ignore"):
        remainder = np.fmod(a, b)  # truncates, as C does
    return np.where(np.equal(b, 0), a, remainder)


def _np_div(a: Lanes, b: Lanes, type: Int) -> Lanes:
    divisor = np.where(np.equal(b, 0), 1, b).astype(dtype_of(type))
    exact = a if not type.signed else np.subtract(a, np.fmod(a, divisor))
    with np.errstate(over="ignore"):  # INT_MIN / -1 wraps
        quotient = np.floor_divide(exact, divisor)
    return np.where(np.equal(b, 0), type.wrap(-1), quotient)


def _np_count(b: Lanes | int, type: Int) -> Lanes | int:
    if isinstance(b, int):
        return _count(b, type)
    return np.where((b < 0) | (b > type.bits), type.bits, b)


def _np_shl(a: Lanes, b: Lanes, type: Int) -> Lanes:
    return np.left_shift(a, np.asarray(_np_count(b, type)).astype(dtype_of(type)))


def _np_shr(a: Lanes, b: Lanes, type: Int) -> Lanes:
    return np.right_shift(a, np.asarray(_np_count(b, type)).astype(dtype_of(type)))


# --------------------------------------------------------------------------------------------- Z3


def _z3() -> Any:
    return import_module("z3")


def _literal(value: Z3) -> int | None:
    z3 = _z3()
    if isinstance(value, int):
        return value
    return value.as_long() if z3.is_int_value(value) else None


def _int_div(a: Z3, b: Z3, type: Int) -> Z3:
    # Z3 divides with a remainder >= 0; C truncates. They agree on a >= 0.
    return _z3().If(a >= 0, a / b, -((-a) / b)) if type.signed else a / b


def _int_rem(a: Z3, b: Z3, type: Int) -> Z3:
    return _z3().If(a >= 0, a % b, -((-a) % b)) if type.signed else a % b


def _power_of_two(b: Z3, what: str) -> int:
    count = _literal(b)
    if count is None or not 0 <= count < 64:
        raise NotExpressible(f"{what} by a variable amount")
    return 1 << count


def _int_shl(a: Z3, b: Z3, type: Int) -> Z3:
    base = _literal(a)
    if base is not None and _literal(b) is None:
        z3 = _z3()  # 1 << b: a table over the width, exact for every defined count
        result = z3.IntVal(0)
        for count in range(type.bits - 1 if type.signed else type.bits):
            result = z3.If(b == count, z3.IntVal(base << count), result)
        return result
    return a * _power_of_two(b, "shift")


def _int_shr(a: Z3, b: Z3, type: Int) -> Z3:
    return a / _power_of_two(b, "shift")  # divisor > 0: Z3's division is the floor


def _int_band(a: Z3, b: Z3, type: Int) -> Z3:
    for value, mask in ((a, _literal(b)), (b, _literal(a))):
        if mask is None or mask < 0:
            continue
        low = (mask & -mask).bit_length() - 1 if mask else 0
        run = mask >> low
        if run & (run + 1) == 0:  # one run of ones: a bit field
            return (value / (1 << low)) % (run + 1) * (1 << low)
    raise NotExpressible("bitwise and of two variables")


def _no_int(a: Z3, b: Z3, type: Int) -> Z3:
    raise NotExpressible("bit operator over integers")


def _by_sign(signed: Callable[[Any, Z3, Z3], Z3], unsigned: Callable[[Any, Z3, Z3], Z3]) -> BinaryZ3:
    def build(a: Z3, b: Z3, type: Int) -> Z3:
        return (signed if type.signed else unsigned)(_z3(), a, b)

    return build


def _bits_count(b: Z3, type: Int) -> Z3:
    """A shift count as wide as the left operand (counts beyond it shift everything out anyway)."""
    z3 = _z3()
    if b.size() == type.bits:
        return b
    if b.size() < type.bits:
        return z3.ZeroExt(type.bits - b.size(), b)
    limit = z3.BitVecVal(type.bits, b.size())
    return z3.Extract(type.bits - 1, 0, z3.If(z3.UGE(b, limit), limit, b))


# ------------------------------------------------------------------------------------------ table

BinaryPython = Callable[[int, int, Int], int]
BinaryNumpy = Callable[[Any, Any, Int], Lanes]
BinaryZ3 = Callable[[Z3, Z3, Int], Z3]


@frozen
class BinaryOperation:
    """One binary operation; ``precedence`` is C's (larger binds tighter), 0 for function notation."""

    op: BinaryOp
    precedence: int
    python: BinaryPython
    numpy: BinaryNumpy
    z3_int: BinaryZ3
    z3_bits: BinaryZ3
    comparison: bool = False
    logical: bool = False


def _row(
    op: BinaryOp,
    precedence: int,
    python: BinaryPython,
    numpy: BinaryNumpy,
    z3_int: BinaryZ3,
    z3_bits: BinaryZ3 | None = None,
    *,
    comparison: bool = False,
    logical: bool = False,
) -> BinaryOperation:
    return BinaryOperation(op, precedence, python, numpy, z3_int, z3_bits or z3_int, comparison, logical)


# fmt: off  (one row an operation, read as a table)
BINARY: Mapping[BinaryOp, BinaryOperation] = {
    row.op: row
    for row in (
        _row(
            BinaryOp.ADD,
            9,
            lambda a, b, t: t.wrap(a + b),
            lambda a, b, t: np.add(a, b),
            lambda a, b, t: a + b,
        ),
        _row(
            BinaryOp.SUB,
            9,
            lambda a, b, t: t.wrap(a - b),
            lambda a, b, t: np.subtract(a, b),
            lambda a, b, t: a - b,
        ),
        _row(
            BinaryOp.MUL,
            10,
            lambda a, b, t: t.wrap(a * b),
            lambda a, b, t: np.multiply(a, b),
            lambda a, b, t: a * b,
        ),
        _row(
            BinaryOp.DIV,
            10,
            lambda a, b, t: t.wrap(_quotient(a, b)),
            _np_div,
            _int_div,
            _by_sign(lambda z, a, b: a / b, lambda z, a, b: z.UDiv(a, b)),
        ),
        _row(
            BinaryOp.REM,
            10,
            lambda a, b, t: _remainder(a, b),
            _np_rem,
            _int_rem,
            _by_sign(lambda z, a, b: z.SRem(a, b), lambda z, a, b: z.URem(a, b)),
        ),
        _row(
            BinaryOp.SHL,
            8,
            lambda a, b, t: t.wrap(a << _count(b, t)),
            _np_shl,
            _int_shl,
            lambda a, b, t: a << _bits_count(b, t),
        ),
        _row(
            BinaryOp.SHR,
            8,
            lambda a, b, t: a >> _count(b, t),
            _np_shr,
            _int_shr,
            lambda a, b, t: a >> _bits_count(b, t) if t.signed else _z3().LShR(a, _bits_count(b, t)),
        ),
        _row(
            BinaryOp.BAND,
            5,
            lambda a, b, t: a & b,
            lambda a, b, t: np.bitwise_and(a, b),
            _int_band,
            lambda a, b, t: a & b,
        ),
        _row(
            BinaryOp.BXOR,
            4,
            lambda a, b, t: a ^ b,
            lambda a, b, t: np.bitwise_xor(a, b),
            _no_int,
            lambda a, b, t: a ^ b,
        ),
        _row(
            BinaryOp.BOR,
            3,
            lambda a, b, t: a | b,
            lambda a, b, t: np.bitwise_or(a, b),
            _no_int,
            lambda a, b, t: a | b,
        ),
        _row(
            BinaryOp.AND,
            2,
            lambda a, b, t: int(bool(a) and bool(b)),
            lambda a, b, t: np.not_equal(a, 0) & np.not_equal(b, 0),
            lambda a, b, t: _z3().And(a, b),
            logical=True,
        ),
        _row(
            BinaryOp.OR,
            1,
            lambda a, b, t: int(bool(a) or bool(b)),
            lambda a, b, t: np.not_equal(a, 0) | np.not_equal(b, 0),
            lambda a, b, t: _z3().Or(a, b),
            logical=True,
        ),
        _row(
            BinaryOp.LT,
            7,
            lambda a, b, t: int(a < b),
            lambda a, b, t: np.less(a, b),
            lambda a, b, t: a < b,
            _by_sign(lambda z, a, b: a < b, lambda z, a, b: z.ULT(a, b)),
            comparison=True,
        ),
        _row(
            BinaryOp.LE,
            7,
            lambda a, b, t: int(a <= b),
            lambda a, b, t: np.less_equal(a, b),
            lambda a, b, t: a <= b,
            _by_sign(lambda z, a, b: a <= b, lambda z, a, b: z.ULE(a, b)),
            comparison=True,
        ),
        _row(
            BinaryOp.GT,
            7,
            lambda a, b, t: int(a > b),
            lambda a, b, t: np.greater(a, b),
            lambda a, b, t: a > b,
            _by_sign(lambda z, a, b: a > b, lambda z, a, b: z.UGT(a, b)),
            comparison=True,
        ),
        _row(
            BinaryOp.GE,
            7,
            lambda a, b, t: int(a >= b),
            lambda a, b, t: np.greater_equal(a, b),
            lambda a, b, t: a >= b,
            _by_sign(lambda z, a, b: a >= b, lambda z, a, b: z.UGE(a, b)),
            comparison=True,
        ),
        _row(
            BinaryOp.EQ,
            6,
            lambda a, b, t: int(a == b),
            lambda a, b, t: np.equal(a, b),
            lambda a, b, t: a == b,
            comparison=True,
        ),
        _row(
            BinaryOp.NE,
            6,
            lambda a, b, t: int(a != b),
            lambda a, b, t: np.not_equal(a, b),
            lambda a, b, t: a != b,
            comparison=True,
        ),
        _row(
            BinaryOp.MIN,
            0,
            lambda a, b, t: min(a, b),
            lambda a, b, t: np.minimum(a, b),
            lambda a, b, t: _z3().If(a <= b, a, b),
            _by_sign(
                lambda z, a, b: z.If(a <= b, a, b),
                lambda z, a, b: z.If(z.ULE(a, b), a, b),
            ),
        ),
        _row(
            BinaryOp.MAX,
            0,
            lambda a, b, t: max(a, b),
            lambda a, b, t: np.maximum(a, b),
            lambda a, b, t: _z3().If(a >= b, a, b),
            _by_sign(
                lambda z, a, b: z.If(a >= b, a, b),
                lambda z, a, b: z.If(z.UGE(a, b), a, b),
            ),
        ),
    )
}


@frozen
class UnaryOperation:
    op: UnaryOp
    python: Callable[[int, Int], int]
    numpy: Callable[[Lanes, Int], Lanes]
    z3_int: Callable[[Z3, Int], Z3]
    z3_bits: Callable[[Z3, Int], Z3]


UNARY: Mapping[UnaryOp, UnaryOperation] = {
    row.op: row
    for row in (
        UnaryOperation(
            UnaryOp.NEG,
            lambda a, t: t.wrap(-a),
            lambda a, t: np.negative(a),
            lambda a, t: -a,
            lambda a, t: -a,
        ),
        UnaryOperation(
            UnaryOp.NOT,
            lambda a, t: int(not a),
            lambda a, t: np.logical_not(a),
            lambda a, t: _z3().Not(a),
            lambda a, t: _z3().Not(a),
        ),
        UnaryOperation(
            UnaryOp.INV,
            lambda a, t: t.wrap(~a),
            lambda a, t: np.invert(a),
            lambda a, t: -a - 1 if t.signed else t.maximum - a,
            lambda a, t: ~a,
        ),
    )
}


# fmt: on

# ------------------------------------------------------------------------------------- intrinsics


IntegerFunction = Callable[[Sequence[int], Int], int]
"""Operands in the type's range and the *operand* type → a value in the result's range."""


def _bits(a: int, type: Int) -> int:
    return a & ((1 << type.bits) - 1)


def _popc(x: Sequence[int], type: Int) -> int:
    return bin(_bits(x[0], type)).count("1")


def _clz(x: Sequence[int], type: Int) -> int:
    return type.bits - _bits(x[0], type).bit_length()


def _ffs(x: Sequence[int], type: Int) -> int:
    return (x[0] & -x[0]).bit_length()


def _brev(x: Sequence[int], type: Int) -> int:
    return type.wrap(int(f"{_bits(x[0], type):0{type.bits}b}"[::-1], 2))


def _abs(x: Sequence[int], type: Int) -> int:
    return type.wrap(abs(x[0]))


def _low24(a: int, signed: bool) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if signed and a >> 23 else a


def _mul24(x: Sequence[int], type: Int) -> int:
    return type.wrap(_low24(x[0], type.signed) * _low24(x[1], type.signed))


def _mulhi(x: Sequence[int], type: Int) -> int:
    return type.wrap(x[0] * x[1] >> type.bits)


INTRINSICS: Mapping[str, IntegerFunction] = {
    **dict.fromkeys(("abs", "labs", "llabs"), _abs),
    **dict.fromkeys(("__popc", "__popcll"), _popc),
    **dict.fromkeys(("__clz", "__clzll"), _clz),
    **dict.fromkeys(("__ffs", "__ffsll"), _ffs),
    **dict.fromkeys(("__brev", "__brevll"), _brev),
    **dict.fromkeys(("__mul24", "__umul24"), _mul24),
    **dict.fromkeys(("__mulhi", "__umulhi", "__mul64hi", "__umul64hi"), _mulhi),
}
"""Pure integer functions by CUDA name (CUDA Math API, integer intrinsics)."""


def intrinsic_lanes(name: str, operands: Sequence[Lanes], type: Int, result: Int) -> Lanes:
    """``INTRINSICS[name]`` over lanes; ``operands`` broadcast, ``result`` is the returned array's type."""
    function = INTRINSICS[name]
    arrays = np.broadcast_arrays(*operands)
    rows = zip(*(a.ravel().tolist() for a in arrays), strict=True)
    flat = np.array([function(row, type) for row in rows], dtype_of(result))
    return np.reshape(flat, arrays[0].shape)


# ---------------------------------------------------------------------------------------- C text

_UNARY_PRECEDENCE = 11
_SELECT_PRECEDENCE = 0
_ATOM = 12


def pretty(expression: Expr, names: Callable[[Var], str] | None = None) -> str:
    """``expression`` as C text with as few parentheses as C needs; implicit casts are left out."""
    return _pretty(expression, names or (lambda var: var.name or f"t{var.id}"))[0]


def _pretty(e: Expr, names: Callable[[Var], str]) -> tuple[str, int]:
    """The text and the precedence of its outermost operator."""
    match e:
        case Const():
            return (f"({e.value})" if e.value < 0 else str(e.value)), _ATOM
        case Var():
            return names(e), _ATOM
        case Builtin():
            return e.axis.value, _ATOM
        case Unary():
            return f"{e.op.value}{_inside(e.operand, names, _UNARY_PRECEDENCE)}", _UNARY_PRECEDENCE
        case Binary():
            return _pretty_binary(e, names)
        case Select():
            arms = [_inside(part, names, 1) for part in (e.condition, e.then, e.otherwise)]
            return f"{arms[0]} ? {arms[1]} : {arms[2]}", _SELECT_PRECEDENCE
        case Cast():
            return _pretty(e.operand, names)
        case Intrinsic():
            return f"{e.name}({', '.join(_pretty(o, names)[0] for o in e.operands)})", _ATOM
        case Unknown():
            return "?", _ATOM
        case AddressOf():
            return f"&{e.array.name}", _UNARY_PRECEDENCE
        case Offset():
            return f"{_inside(e.pointer, names, 9)} + {_inside(e.bytes, names, 10)} B", 9


def _pretty_binary(e: Binary, names: Callable[[Var], str]) -> tuple[str, int]:
    precedence = BINARY[e.op].precedence
    if precedence == 0:
        return f"{e.op.value}({_pretty(e.left, names)[0]}, {_pretty(e.right, names)[0]})", _ATOM
    left, right = _inside(e.left, names, precedence), _inside(e.right, names, precedence + 1)
    return f"{left} {e.op.value} {right}", precedence


def _inside(e: Expr, names: Callable[[Var], str], needed: int) -> str:
    text, precedence = _pretty(e, names)
    return text if precedence >= needed else f"({text})"
