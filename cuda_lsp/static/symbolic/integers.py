"""Integer operations of terms beyond sums and products: quotients, bit operators, shifts, wraparound.

Each simplifies what it can prove equal for every value in its operands' intervals: bit fields become
``//`` and ``mod``, disjoint ``|`` and ``^`` become sums, nothing wraps that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from cuda_lsp.ir.ops import BINARY, INTRINSICS
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import INT64
from cuda_lsp.static.symbolic.core import (
    INFINITY,
    ONE,
    ZERO,
    Op,
    Term,
    add,
    const,
    content,
    from_monomials,
    intern,
    monomials,
    scale,
    split_multiple,
    sub,
)


def floor_div(a: Term, divisor: int) -> Term:
    """``a // divisor`` for a positive constant."""
    if divisor == 1:
        return a
    whole, rest = split_multiple(a, divisor)
    if rest.lo >= 0 and rest.hi < divisor:
        return whole
    if rest.op is Op.FLOOR_DIV and whole is ZERO:
        return floor_div(rest.args[0], rest.args[1] * divisor)
    if rest.is_const:
        return add(whole, const(rest.value // divisor))
    index = _before_remainder(rest, Op.FLOOR_MOD, divisor)
    if index is not None:
        return add(whole, floor_div(index, divisor))
    common = math.gcd(content(rest), divisor)
    if common > 1:
        return add(whole, floor_div(_shared(rest, common), divisor // common))
    low = rest.lo // divisor if math.isfinite(rest.lo) else rest.lo
    high = rest.hi // divisor if math.isfinite(rest.hi) else rest.hi
    return add(whole, intern(Op.FLOOR_DIV, (rest, divisor), (rest,), low, high))


def _before_remainder(a: Term, op: Op, divisor: int | Term) -> Term | None:
    """``x`` of ``x - x % divisor``, which has the quotient of ``x``."""
    for atoms, factor in monomials(a).items():
        if factor == -1 and len(atoms) == 1 and atoms[0].op is op and atoms[0].args[1] == divisor:
            index = add(a, atoms[0])
            return index if index is atoms[0].args[0] else None
    return None


def _shared(a: Term, divisor: int) -> Term:
    """``a / divisor`` where every coefficient is a multiple."""
    return from_monomials({m: c // divisor for m, c in monomials(a).items()})


def floor_mod(a: Term, divisor: int) -> Term:
    """``a mod divisor`` in ``[0, divisor)`` for a positive constant."""
    _, rest = split_multiple(a, divisor)
    if rest.lo >= 0 and rest.hi < divisor:
        return rest
    if rest.is_const:
        return const(rest.value % divisor)
    common = math.gcd(content(rest), divisor)
    if common > 1:
        return scale(floor_mod(_shared(rest, common), divisor // common), common)
    return intern(Op.FLOOR_MOD, (rest, divisor), (rest,), 0, divisor - 1)


def divide(a: Term, b: Term) -> Term:
    """C's truncating quotient."""
    if a.is_const and b.is_const and b.value:
        return const(BINARY[BinaryOp.DIV].python(a.value, b.value, INT64))
    if b.is_const and b.value > 0 and a.lo >= 0:
        return floor_div(a, b.value)
    if b.is_const and b.value > 0 and content(a) % b.value == 0:
        return from_monomials({m: c // b.value for m, c in monomials(a).items()})
    if a is b and a.lo > 0:
        return ONE
    index = _before_remainder(a, Op.REM, b)
    if index is not None:
        return divide(index, b)
    reach = max(abs(a.lo), abs(a.hi))
    reach = reach // abs(b.value) if b.is_const and b.value and math.isfinite(reach) else reach
    # What is divided by 0 has no meaning.
    return intern(Op.DIV, (a, b), (a, b), 0 if a.lo >= 0 and b.lo >= 0 else -reach, reach)


def remainder(a: Term, b: Term) -> Term:
    """C's remainder, with the sign of ``a``."""
    if a.is_const and b.is_const and b.value:
        return const(BINARY[BinaryOp.REM].python(a.value, b.value, INT64))
    if b.is_const and b.value > 0 and a.lo >= 0:
        return floor_mod(a, b.value)
    if a.lo >= 0 and b.lo > 0 and a.hi < b.lo:
        return a
    if a.lo >= 0 and b.lo > 0:
        return intern(Op.REM, (a, b), (a, b), 0, min(a.hi, b.hi - 1))
    reach = max(abs(b.lo), abs(b.hi))
    return intern(Op.REM, (a, b), (a, b), 0 if a.lo >= 0 else -reach, reach)


def _low_zeros(term: Term) -> int:
    """Every value of ``term`` is a multiple of the power of two returned."""
    shared = content(term)
    return shared & -shared if shared else 1 << 62


def _runs_of_ones(mask: int) -> Iterable[tuple[int, int]]:
    """``(low bit, bit after)`` of each run of ones in a mask >= 0."""
    bit = 0
    while mask >> bit:
        if mask >> bit & 1:
            start = bit
            while mask >> bit & 1:
                bit += 1
            yield start, bit
        else:
            bit += 1


def bit_and(a: Term, b: Term) -> Term:
    """Two's complement and: bit fields become ``//`` and ``mod``, the rest stays a bit operation."""
    if a.is_const:
        a, b = b, a
    if b.is_const:
        mask = b.value
        if a.is_const:
            return const(a.value & mask)
        if mask < 0 and (-mask) & (-mask - 1) == 0:  # clears the low bits
            return sub(a, floor_mod(a, -mask))
        runs = list(_runs_of_ones(mask)) if mask >= 0 else []
        if mask >= 0 and len(runs) <= 2:
            fields = (scale(floor_mod(floor_div(a, 1 << lo), 1 << (hi - lo)), 1 << lo) for lo, hi in runs)
            return add(*fields)
    if a is b:
        return a
    high = min((x.hi for x in (a, b) if x.lo >= 0), default=INFINITY)
    return intern(Op.BAND, _ordered(a, b), (a, b), 0 if a.lo >= 0 or b.lo >= 0 else -INFINITY, high)


def bit_or(a: Term, b: Term) -> Term:
    """``a | b``, a sum where no bit is in both."""
    if a.is_const and b.is_const:
        return const(a.value | b.value)
    for x, y in ((a, b), (b, a)):
        if x.lo >= 0 and y.lo >= 0 and y.hi < _low_zeros(x):  # disjoint bits
            return add(x, y)
    return a if a is b else intern(Op.BOR, _ordered(a, b), (a, b), *_bit_range(a, b))


def bit_xor(a: Term, b: Term) -> Term:
    """``a ^ b``, a sum where no bit is in both."""
    if a.is_const and b.is_const:
        return const(a.value ^ b.value)
    if a is b:
        return ZERO
    for x, y in ((a, b), (b, a)):
        if x is ZERO:
            return y
        if x.is_const and x.value == -1:
            return sub(const(-1), y)
        if x.lo >= 0 and y.lo >= 0 and y.hi < _low_zeros(x):
            return add(x, y)
        if x.is_const and x.value > 0 and x.value & (x.value - 1) == 0 and y.lo >= 0:
            # one bit flipped: y + c when it was clear, y - c when it was set
            was = floor_mod(floor_div(y, x.value), 2)
            return add(y, x, scale(was, -2 * x.value))
    return intern(Op.BXOR, _ordered(a, b), (a, b), *_bit_range(a, b))


def _ordered(a: Term, b: Term) -> tuple[Term, Term]:
    return (a, b) if a.order <= b.order else (b, a)


def _bit_range(a: Term, b: Term) -> tuple[float, float]:
    if a.lo >= 0 and b.lo >= 0 and math.isfinite(a.hi) and math.isfinite(b.hi):
        return 0, (1 << int(max(a.hi, b.hi)).bit_length()) - 1
    return -INFINITY, INFINITY


def shift_left(a: Term, b: Term) -> Term:
    """``a << b``, not wrapped."""
    if b.is_const:
        return scale(a, 1 << min(max(b.value, 0), 64))
    if a.is_const and b.lo >= 0 and b.hi <= 63:
        return power(a, 2, b, growing=True)
    low = 0 if a.lo >= 0 and b.lo >= 0 else -INFINITY
    return intern(Op.SHL, (a, b), (a, b), low, INFINITY)


def shift_right(a: Term, b: Term) -> Term:
    """Arithmetic shift (of the mathematical value)."""
    if b.is_const:
        return floor_div(a, 1 << min(max(b.value, 0), 64))
    return intern(Op.SHR, (a, b), (a, b), min(a.lo, 0), max(a.hi, 0))


def power(start: Term, factor: int, exponent: Term, *, growing: bool) -> Term:
    """``start * factor**exponent`` or ``start // factor**exponent`` (start >= 0 then)."""
    if start is ZERO:
        return ZERO
    if exponent.is_const:
        amount = factor ** max(exponent.value, 0)
        return scale(start, amount) if growing else floor_div(start, amount)
    if growing:
        top = start.hi * factor**exponent.hi if exponent.hi <= 64 and start.hi > 0 else INFINITY
        lo, hi = (start.lo, top) if start.lo >= 0 else (-INFINITY, INFINITY)
    else:
        lo, hi = 0, start.hi
    return intern(Op.POWER, (start, factor, exponent, growing), (start, exponent), lo, hi)


def intrinsic(name: str, type: Any, operands: tuple[Term, ...], lo: float, hi: float) -> Term:
    """A pure function of ``ir.ops.INTRINSICS``; folded when its operands are constants."""
    if all(operand.is_const for operand in operands):
        return const(INTRINSICS[name](tuple(o.value for o in operands), type))
    return intern(Op.INTRINSIC, (name, type, operands), operands, lo, hi)


def wrap(a: Term, bits: int, signed: bool) -> Term:
    """``a`` reduced modulo ``2**bits`` into the type's range."""
    low = -(1 << (bits - 1)) if signed else 0
    high = low + (1 << bits) - 1
    if low <= a.lo and a.hi <= high:
        return a
    if a.is_const:
        return const((a.value - low) % (1 << bits) + low)
    return intern(Op.WRAP, (a, bits, signed), (a,), low, high)
