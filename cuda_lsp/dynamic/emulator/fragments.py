"""Matrix fragments of a warp: which lane holds which element, and the product of matrices.

Source: PTX ISA 9.7.14.5 "Matrix fragments for mma" for ``mma``; all its layouts but one follow one rule (the
lane's group of four is a row, the lane in the group a run of neighbouring elements). ``mma.m8n8k4`` of f16
multiplies four matrices a warp at once. The layout of ``wmma`` fragments is not documented: here they are
made of the tiles of ``mma``. Sums are exact products added in double precision and rounded once, so they are
at least as accurate as the hardware's, and not equal to them bit by bit.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.emulator import floats
from cuda_lsp.dynamic.ptx.module import ELEMENT_BITS
from cuda_lsp.dynamic.runs import WARP

Array = Any

_GROUP, _IN_GROUP = np.arange(WARP) >> 2, np.arange(WARP) & 3


@frozen(eq=False)
class Fragment:
    """One operand of a warp. ``row``, ``column``: of each lane's elements, ``(32, elements)``.

    ``shape``: rows and columns; ``matrix``: which of the warp's ``matrices`` a lane has part in, ``(32,)``.
    ``along_row``: whether elements of one register are neighbours in a row (else in a column).
    """

    kind: str
    shape: tuple[int, int]
    row: Array
    column: Array
    along_row: bool
    matrix: Array
    matrices: int = 1

    @property
    def packed(self) -> int:
        """Elements of one register."""
        return max(1, 32 // ELEMENT_BITS[self.kind])

    @property
    def registers(self) -> int:
        """Registers with elements of their own; a longer operand repeats them."""
        return self.row.shape[1] // self.packed

    def places(self) -> Array:
        """Flat indices of all lanes' elements in the warp's matrices, ``(32, elements)``."""
        rows, columns = self.shape
        return (self.matrix[:, None] * rows + self.row) * columns + self.column


@cache
def fragment(role: str, kind: str, m: int, n: int, k: int) -> Fragment:
    """The layout of operand ``a``, ``b``, ``c`` or ``d`` of an m × n × k product."""
    run = max(1, 32 // ELEMENT_BITS[kind])
    if role == "a":
        row, column = _joined(_multiplicand(m, k, run, 16 if m > 8 else 8))
        return Fragment(kind, (m, k), row, column, True, np.zeros(WARP, np.int64))
    if role == "b":
        column, row = _joined(_multiplicand(n, k, run, 8))
        return Fragment(kind, (k, n), row, column, False, np.zeros(WARP, np.int64))
    row, column = _joined(_accumulator(m, n))
    return Fragment(kind, (m, n), row, column, True, np.zeros(WARP, np.int64))


def _joined(elements: Iterator[tuple[Array, Array]]) -> tuple[Array, Array]:
    row, column = zip(*elements, strict=True)
    return np.stack(row, axis=1), np.stack(column, axis=1)


def _multiplicand(rows: int, depth: int, run: int, tile: int) -> Iterator[tuple[Array, Array]]:
    """(row, position along the sum) of one lane's elements after another, each ``(32,)``."""
    for top in range(0, rows, tile):
        for start in range(0, depth, 4 * run):
            for half in range(0, tile, 8):
                for i in range(run):
                    yield top + half + _GROUP, start + _IN_GROUP * run + i


def _accumulator(m: int, n: int) -> Iterator[tuple[Array, Array]]:
    tile = 16 if m > 8 else 8
    for top in range(0, m, tile):
        for left in range(0, n, 8):
            for half in range(0, tile, 8):
                for i in range(2):
                    yield top + half + _GROUP, left + _IN_GROUP * 2 + i


@cache
def quad_pair(role: str, kind: str, along_depth: bool) -> Fragment:
    """The layouts of ``mma.m8n8k4`` with f16: lanes q, q + 1 … of both half-warps make one 8 × 8 × 4 product.

    ``along_depth``: A is row-major, or B column-major.
    """
    lane = np.arange(WARP)
    matrix, low, high = lane >> 2 & 3, lane & 3, lane >> 4
    i = np.arange(4)[None, :]
    if role in ("a", "b"):
        if along_depth:
            row, depth = np.broadcast_to((low + 4 * high)[:, None], (32, 4)), np.broadcast_to(i, (32, 4))
        else:
            row, depth = 4 * high[:, None] + i, np.broadcast_to(low[:, None], (32, 4))
        if role == "a":
            return Fragment(kind, (8, 4), row, depth, along_depth, matrix, 4)
        return Fragment(kind, (4, 8), depth, row, not along_depth, matrix, 4)
    i = np.arange(8)[None, :]
    if kind == "f16":
        row, column = np.broadcast_to((low + 4 * high)[:, None], (32, 8)), np.broadcast_to(i, (32, 8))
    else:
        row = ((low & 1) + 4 * high)[:, None] + (i & 2)
        column = (low & 2)[:, None] + (i & 1) + (i & 4)
    return Fragment(kind, (8, 8), row, column, True, matrix, 4)


# ------------------------------------------------------------------------------------------ values


def matrices(held: Fragment, registers: Array) -> Array:
    """The f64 matrices that registers hold: ``(warps, 32, registers)`` → ``(…, rows, columns)``."""
    warps = len(registers)
    elements = _values(held.kind, np.ascontiguousarray(registers[:, :, : held.registers]))
    rows, columns = held.shape
    flat = np.empty((warps, held.matrices * rows * columns), np.float64)
    flat[:, held.places().ravel()] = elements.reshape(warps, -1)
    return flat.reshape(warps * held.matrices, rows, columns)


def registers_of(held: Fragment, values: Array, saturate: bool) -> Array:
    """What each lane holds of some matrices, ``(warps, 32, registers)`` in the type of its registers."""
    rows, columns = held.shape
    elements = values.reshape(-1, held.matrices * rows * columns)[:, held.places()]
    if held.kind == "f16":
        return np.ascontiguousarray(elements.astype(np.float16)).view(np.uint32)
    if held.kind == "s32":
        if saturate:
            elements = np.clip(elements, -(2.0**31), 2.0**31 - 1)
        return elements.astype(np.int64).astype(np.int32)
    return elements.astype(np.float32 if held.kind == "f32" else np.float64)


def product(a: Array, b: Array, c: Array, bitwise: str | None) -> Array:
    """a · b + c of many matrices. ``bitwise``: ``xor`` or ``and`` of single bits, whose ones are counted."""
    together = a @ b
    if bitwise == "xor":
        together = a.sum(axis=2, keepdims=True) + b.sum(axis=1, keepdims=True) - 2 * together
    return together + c


def _values(kind: str, registers: Array) -> Array:
    """The numbers in packed registers; the last axis grows."""
    match kind:
        case "f16":
            return registers.view(np.float16)
        case "bf16":
            return floats.from_bf16(registers.view(np.uint16))
        case "tf32":  # the lower bits of a number are not looked at
            return (registers & np.uint32(0xFFFFE000)).view(np.float32)
        case "s8" | "u8":
            return registers.view(np.int8 if kind == "s8" else np.uint8)
        case "s4" | "u4":
            whole = registers.view(np.uint8)
            parts = np.stack([whole & 15, whole >> 4], axis=-1).reshape(*whole.shape[:-1], -1)
            return parts if kind == "u4" else (parts ^ 8).astype(np.int8) - 8
        case "b1":
            return np.unpackbits(registers.view(np.uint8), axis=-1, bitorder="little")
        case "e4m3" | "e5m2":
            return _byte_floats(kind)[registers.view(np.uint8)]
        case "s32":
            return registers.view(np.int32)
        case _:
            return registers.view(np.float64 if kind == "f64" else np.float32)


@cache
def _byte_floats(kind: str) -> Array:
    """The 256 numbers of an 8-bit format (OCP OFP8)."""
    bits = np.arange(256)
    if kind == "e5m2":  # the upper byte of an f16
        return (bits << 8).astype(np.uint16).view(np.float16).astype(np.float64)
    exponent, mantissa = bits >> 3 & 15, bits & 7
    normal = (8 + mantissa) * 2.0 ** (exponent - 10.0)
    value = np.where(exponent == 0, mantissa * 2.0**-9, normal)
    value = np.where(bits & 127 == 127, np.nan, value)
    return np.where(bits & 128, -value, value)


def stacked(rows: Sequence[Array]) -> Array:
    """Registers of a warp side by side: ``(warps, 32)`` each → ``(warps, 32, registers)``."""
    return np.stack(rows, axis=2)


@frozen(eq=False)
class Product:
    """Operands of one multiplication. ``bitwise``: of single bits."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    saturate: bool
    bitwise: str | None
