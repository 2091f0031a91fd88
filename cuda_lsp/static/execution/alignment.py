"""Numbers in groups of powers of two: what is alike in each warp though its lanes' numbers are not.

``for (i = threadIdx.x; i < n / 32 * 32; i += 128)``: the numbers of a warp are 32 that begin at a multiple of
32, and no multiple of 32 stands between them. They are all below the limit, or none is, whatever ``n`` is.

Known of a number are its last bits (congruences by powers of two: Granger 1989), and of a warp's numbers the
smallest *cell* that holds all of them: one group of ``cell`` numbers, a power of two, that begins at a
multiple of it. In binary they differ in their last bits only. So both survive what wraps, and what reads a
word as signed or not: a word has more bits than that, and all numbers of one cell share the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

import numpy as np
from attrs import evolve

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import Int
from cuda_lsp.static.execution.values import (
    NO_CELL,
    UNALIGNED,
    Aligned,
    Data,
    Flags,
    Lanes,
    Scalar,
    Spread,
    distinct,
    first_of_warp,
)

_WORD = 62  # bits; more of them nobody asks for


def tail_of(value: Scalar) -> tuple[int, int]:
    """``(bits, rest)``: so many of the last bits are known, and what they are, the same in all lanes."""
    if isinstance(value, int):
        return _WORD, value % (1 << _WORD)
    if isinstance(value, Data):
        return value.aligned.bits, value.aligned.rest
    if value.dtype == np.bool_ or not value.size:
        return 0, 0
    numbers = value.astype(np.int64)
    first = int(np.reshape(numbers, -1)[0])
    bits = min(_zeros(_set_in_some(numbers ^ first)), _WORD)
    return bits, first % (1 << bits)


def cell_of(value: Scalar, blocks: int) -> int:
    """The smallest cell of each warp's numbers; 1: all lanes of a warp have one. NO_CELL: none is known.

    Of rounds of a loop nothing is said: lanes need not be in one.
    """
    if isinstance(value, int):
        return 1
    if isinstance(value, Data):
        return 1 if value.spread >= Spread.WARP else value.aligned.cell
    if value.ndim > 1 and value.size > value.shape[-1]:
        return NO_CELL
    numbers = np.reshape(value, -1).astype(np.int64)
    if len(numbers) == 1:
        return 1
    apart = numbers ^ numbers[first_of_warp(len(numbers) // blocks, blocks)]
    widest = _set_in_some(apart)
    return 1 << widest.bit_length() if 0 <= widest < 1 << _WORD else NO_CELL


_OR: np.ufunc = np.bitwise_or


def _set_in_some(numbers: Lanes) -> int:
    """The bits that some of the numbers have."""
    return int(_OR.reduce(numbers, axis=None))


@functools.lru_cache(maxsize=64)
def _warps(threads: int, blocks: int) -> Lanes:
    """The first lane of every warp."""
    return distinct(first_of_warp(threads, blocks))


def by_warps(lanes: Flags, among: Flags, threads: int) -> bool:
    """In each warp these are all ``among`` which we look, or none of them."""
    starts = _warps(threads, among.shape[-1] // threads)
    some = np.logical_or.reduceat(lanes & among, starts, axis=-1)
    others = np.logical_or.reduceat(among & ~lanes, starts, axis=-1)
    return not (some & others).any()


def of(value: Scalar, blocks: int) -> Aligned:
    """How it lies."""
    return Aligned(*tail_of(value), cell_of(value, blocks))


# ------------------------------------------------------------------------------------ operations


def result(op: BinaryOp, a: Scalar, b: Scalar, operand: Int, blocks: int) -> Aligned:
    """What is known of the numbers, or truth values, that ``op`` makes of integers."""
    if BINARY[op].comparison:
        return Aligned(cell=1) if compared_alike(op, a, b, blocks) else UNALIGNED
    bits, rest = _tail(op, a, b)
    bits = min(bits, operand.bits)
    return Aligned(bits, rest % (1 << bits), _cell(op, a, b, operand, blocks))


def converted(value: Scalar, type: Int, blocks: int) -> Aligned:
    """What a cast leaves of it: the last bits, and what is less than a word."""
    if type.boolean:
        return UNALIGNED
    (bits, rest), cell = tail_of(value), cell_of(value, blocks)
    bits = min(bits, type.bits)
    return Aligned(bits, rest % (1 << bits), _within(cell, type))


def either(a: Scalar, b: Scalar, chooser: Scalar, blocks: int) -> Aligned:
    """One of two, in each lane as ``chooser`` says; where that is alike in a warp, all have the same one."""
    both = joined(of(a, blocks), of(b, blocks))
    return both if cell_of(chooser, blocks) == 1 else evolve(both, cell=NO_CELL)


def joined(a: Aligned, b: Aligned) -> Aligned:
    """What is known of a number, or of a warp's numbers, that is the one or the other."""
    bits = min(a.bits, b.bits, _zeros(a.rest ^ b.rest))
    return Aligned(bits, a.rest % (1 << bits), max(a.cell, b.cell))


def compared_alike(op: BinaryOp, a: Scalar, b: Scalar, blocks: int) -> bool:
    """Whether all lanes of a warp find the same, though their numbers differ.

    Where the numbers ``i`` of a warp share a cell of ``m``, ``i / m`` rounded down is one number ``g``. A
    limit that is alike in the warp and a multiple of ``m`` is ``m * q``: ``i < m * q`` exactly if ``g < q``,
    and else ``i >= m * q``. ``i <= b`` is ``i < b + 1`` of whole numbers (where ``b`` is the largest of
    its type, all are), and ``i > b`` its opposite. Equality tells lanes of one cell apart: nothing is said.
    """
    for lanes, limit, side in ((a, b, op), (b, a, _TURNED.get(op))):
        cell, behind = cell_of(lanes, blocks), _BEHIND.get(side) if side is not None else None
        if behind is not None and cell < NO_CELL and cell_of(limit, blocks) == 1:
            bits, rest = tail_of(limit)
            if cell <= 1 << bits and (rest + behind) % cell == 0:
                return True
    return False


_BEHIND = {BinaryOp.LT: 0, BinaryOp.GE: 0, BinaryOp.LE: 1, BinaryOp.GT: 1}
"""What is added to the limit so that it is the first number on its other side."""
_TURNED = {
    BinaryOp.LT: BinaryOp.GT, BinaryOp.GT: BinaryOp.LT, BinaryOp.LE: BinaryOp.GE, BinaryOp.GE: BinaryOp.LE
}  # fmt: skip


def _zeros(number: int) -> int:
    """How many of the last bits are 0."""
    return (number & -number).bit_length() - 1 if number else _WORD


def _tail(op: BinaryOp, a: Scalar, b: Scalar) -> tuple[int, int]:
    (bits, rest), (more, other) = tail_of(a), tail_of(b)
    exact = _EXACT.get(op)
    zeros, other_zeros = min(_zeros(rest), bits), min(_zeros(other), more)
    ones, other_ones = min(_zeros(~rest), bits), min(_zeros(~other), more)
    if op is BinaryOp.SUB and _remainder_by(a, b) is not None:
        return _zeros(_remainder_by(a, b) or 0), 0
    if op is BinaryOp.MUL:
        known = min(bits + other_zeros, more + zeros, _WORD)
        return known, rest * other % (1 << known)
    if op is BinaryOp.BAND and max(zeros, other_zeros) > min(bits, more):
        return max(zeros, other_zeros), 0
    if op is BinaryOp.BOR and max(ones, other_ones) > min(bits, more):
        return max(ones, other_ones), -1
    if exact is not None:
        known = min(bits, more)
        return known, exact(rest, other) % (1 << known)
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        known = min(bits, more, _zeros(rest ^ other))
        return known, rest % (1 << known)
    if op is BinaryOp.REM:
        return min(zeros, other_zeros), 0
    if op is BinaryOp.SHL and isinstance(b, int) and 0 <= b < _WORD:
        return min(bits + b, _WORD), rest << b
    if op is BinaryOp.SHR and isinstance(b, int) and 0 <= b < _WORD:
        return max(bits - b, 0), rest >> b
    return 0, 0


_EXACT: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.BAND: lambda a, b: a & b,
    BinaryOp.BOR: lambda a, b: a | b,
    BinaryOp.BXOR: lambda a, b: a ^ b,
}
"""Operations whose last bits are made of the last bits of the operands."""


def _remainder_by(a: Scalar, b: Scalar) -> int | None:
    """``m`` where ``b`` is ``a % m``, or ``a & (m - 1)``: then ``a - b`` is a multiple of it."""
    if not isinstance(b, Data) or b.made is None or len(b.made[1]) != 2 or not isinstance(b.made[0], tuple):
        return None
    operation: object = cast("tuple[object, ...]", b.made[0])[0]
    index, by = b.made[1]
    if index is not a or not isinstance(by, int):
        return None
    if operation is BinaryOp.REM and by:
        return by
    return by + 1 if operation is BinaryOp.BAND and by > 0 and by & (by + 1) == 0 else None


def _cell(op: BinaryOp, a: Scalar, b: Scalar, operand: Int, blocks: int) -> int:
    """The cell of a result: moved by multiples of it, or with its last bits cut off."""
    for lanes, by in ((a, b), (b, a)) if op is BinaryOp.ADD else ((a, b),):
        cell = cell_of(lanes, blocks)
        if op in (BinaryOp.ADD, BinaryOp.SUB) and cell < NO_CELL and cell_of(by, blocks) == 1:
            bits, rest = tail_of(by)
            if cell <= 1 << bits and rest % cell == 0:
                return _within(cell, operand)
    if op is BinaryOp.SHR and isinstance(b, int) and 0 <= b < _WORD and cell_of(a, blocks) < NO_CELL:
        return max(cell_of(a, blocks) >> b, 1)
    return NO_CELL


def _within(cell: int, type: Int) -> int:
    """It is told from others by bits that a number of this type has: two of them, or more, are in a word."""
    return cell if cell < 1 << type.bits else NO_CELL
