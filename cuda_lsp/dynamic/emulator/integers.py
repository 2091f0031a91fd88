"""Integer instructions that NumPy has no single operator for, exact on whole arrays.

Source: PTX ISA 9.7.1 "Integer arithmetic", 9.7.8 "Logic and shift". Arguments are unsigned or signed NumPy
arrays or scalars of the instruction's type; results have that type unless said otherwise.
"""

# NumPy's stubs leave views and mixed arithmetic unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Array = Any  # an array or a NumPy scalar; generated code passes either


def idiv(x: Array, y: Array) -> Array:
    """Division towards zero; a zero divisor gives all ones (PTX leaves it open)."""
    zero = y == 0
    divisor = np.where(zero, np.ones_like(y), y)
    quotient = (x - np.fmod(x, divisor)) // divisor
    return np.where(zero, np.invert(np.zeros_like(quotient)), quotient).astype(x.dtype)


def irem(x: Array, y: Array) -> Array:
    """Remainder with the dividend's sign; a zero divisor gives the dividend."""
    zero = y == 0
    return np.where(zero, x, np.fmod(x, np.where(zero, np.ones_like(y), y))).astype(x.dtype)


def shl(x: Array, amount: Array) -> Array:
    """Left shift; amounts clamp at the width (everything is shifted out)."""
    width = x.dtype.itemsize * 8
    shifted = np.left_shift(x, np.minimum(amount, width - 1).astype(x.dtype))
    return np.where(amount >= width, np.zeros_like(shifted), shifted)


def shr(x: Array, amount: Array) -> Array:
    """Right shift, arithmetic for signed types; amounts clamp at the width."""
    width = x.dtype.itemsize * 8
    shifted = np.right_shift(x, np.minimum(amount, width - 1).astype(x.dtype))
    if x.dtype.kind == "i":
        return shifted
    return np.where(amount >= width, np.zeros_like(shifted), shifted)


def mulhi(x: Array, y: Array) -> Array:
    """The upper half of the full product."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{kind}{size * 2}")
        return (x.astype(wide) * y.astype(wide) >> wide.type(size * 8)).astype(x.dtype)
    if kind == "i":
        high = mulhi(x.astype(np.uint64), y.astype(np.uint64)).astype(np.int64)
        return high - np.where(x < 0, y, np.int64(0)) - np.where(y < 0, x, np.int64(0))
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = x >> half, x & low, y >> half, y & low
    middle = (b * d >> half) + (a * d & low) + (b * c & low)
    return a * c + (a * d >> half) + (b * c >> half) + (middle >> half)


def with_carry(x: Array, y: Array, carry: Array, minus: bool) -> tuple[Array, Array]:
    """x + y + carry or x - y - borrow, unsigned, and the carry or borrow out."""
    step = np.asarray(carry).astype(x.dtype)
    if minus:
        first = x - y
        return first - step, (x < y) | (first < step)
    first = x + y
    total = first + step
    return total, (first < x) | (total < first)


def mulwide(x: Array, y: Array) -> Array:
    """The whole product, in an integer of twice the width."""
    wide = np.dtype(f"{x.dtype.kind}{x.dtype.itemsize * 2}")
    return np.multiply(x.astype(wide), y.astype(wide))


def mul24(x: Array, y: Array, high: bool) -> Array:
    """Product of the low 24 bits: its low 32 bits, or bits 16 to 47."""
    if x.dtype.kind == "i":
        a, b = (v.astype(np.int64) << 40 >> 40 for v in (x, y))
    else:
        a, b = (v.astype(np.int64) & 0xFFFFFF for v in (x, y))
    product = a * b
    return (product >> 16 if high else product).astype(x.dtype)


def sad(x: Array, y: Array, z: Array) -> Array:
    """``z`` and the distance of ``x`` and ``y``."""
    return z + np.where(x > y, x - y, y - x).astype(z.dtype)


def popc(x: Array) -> Array:
    """Number of set bits, u32."""
    bits = np.asarray(x)
    shape = bits.shape
    spread = np.unpackbits(np.ascontiguousarray(bits).reshape(-1, 1).view(np.uint8), axis=1)
    return spread.sum(axis=1, dtype=np.uint32).reshape(shape)


def bfind(x: Array) -> Array:
    """Position of the most significant bit that is not the sign, u32; all ones when there is none."""
    if x.dtype.kind == "i":
        x = np.where(x < 0, np.invert(x), x).astype(x.dtype)
    value = np.asarray(x).astype(np.uint64)
    found = np.full(value.shape, 0xFFFFFFFF, np.uint32)
    for bit in range(x.dtype.itemsize * 8):
        found = np.where(value >> np.uint64(bit) != 0, np.uint32(bit), found)
    return found


def clz(x: Array) -> Array:
    """Number of zeros above the highest set bit, u32."""
    return (np.uint32(x.dtype.itemsize * 8 - 1) - bfind(x)).astype(np.uint32)


def fns(mask: Array, base: Array, offset: Array) -> Array:
    """Where the n-th set bit is, from ``base`` on (downwards for negative n; n = 0: ``base`` itself), u32."""
    bits, start, n = (
        np.asarray(v).astype(np.int64) for v in (mask.view("u4"), base.view("u4"), offset.view("i4"))
    )
    bits, start, n = np.broadcast_arrays(bits, start, n)
    left = np.maximum(np.abs(n), 1)
    found = np.full(bits.shape, 0xFFFFFFFF, np.uint32)
    for k in range(32):
        at = start + np.where(n < 0, -k, k)
        held = (at >= 0) & (at < 32) & ((n != 0) | (k == 0)) & (bits >> np.clip(at, 0, 31) & 1 != 0)
        left = left - held
        found = np.where(held & (left == 0), at, found).astype(np.uint32)
    return found


def brev(x: Array) -> Array:
    """Bits in reverse order."""
    bits = np.asarray(x)
    size = bits.dtype.itemsize
    raw = np.ascontiguousarray(bits).reshape(-1, 1).view(np.uint8)
    spread = np.unpackbits(raw, axis=1, bitorder="little")
    packed = np.packbits(spread[:, ::-1], axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(f"u{size}").reshape(bits.shape)


def _ones(count: Array) -> Array:
    """The lowest ``count`` bits of 64, set."""
    some = (np.uint64(1) << np.clip(count, 0, 63).astype(np.uint64)) - np.uint64(1)
    return np.where(count >= 64, ~np.uint64(0), some)


def _field(start: Array, length: Array) -> tuple[Array, Array]:
    first, count = (np.asarray(v & 0xFF).astype(np.int64) for v in (start, length))
    return first, count


def bfe(x: Array, start: Array, length: Array) -> Array:
    """Extract a bit field; what lies beyond it takes its sign (the value's top bit at most)."""
    width = x.dtype.itemsize * 8
    first, count = _field(start, length)
    raw = np.asarray(x).astype(np.int64).astype(np.uint64) & _ones(np.int64(width))
    present = _ones(np.minimum(count, np.maximum(width - first, 0)))
    field = raw >> np.clip(first, 0, 63).astype(np.uint64) & present
    if x.dtype.kind == "i":
        top = np.clip(first + count - 1, 0, width - 1).astype(np.uint64)
        negative = (count > 0) & (raw >> top & np.uint64(1) != 0)
        field = np.where(negative, field | ~present, field)
    return np.asarray(field.astype(f"u{x.dtype.itemsize}")).view(x.dtype)


def bfi(source: Array, target: Array, start: Array, length: Array) -> Array:
    """Insert the low bits of ``source`` into ``target``."""
    width = target.dtype.itemsize * 8
    first, count = _field(start, length)
    shift = np.clip(first, 0, 63).astype(np.uint64)
    kept = _ones(np.minimum(count, np.maximum(width - first, 0)))
    mask = np.where(first < width, kept << shift, np.uint64(0))
    moved = np.asarray(source).astype(np.uint64) << shift
    return (np.asarray(target).astype(np.uint64) & ~mask | moved & mask).astype(target.dtype)


def prmt(a: Array, b: Array, selector: Array) -> Array:
    """Pick four of eight bytes; bit 3 of a nibble replicates the byte's sign instead."""
    both = np.asarray(a).astype(np.uint64) | np.asarray(b).astype(np.uint64) << np.uint64(32)
    result = np.zeros(np.broadcast(both, selector).shape, np.uint32)
    for k in range(4):
        nibble = np.asarray(selector).astype(np.uint64) >> np.uint64(4 * k) & np.uint64(15)
        byte = both >> ((nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        chosen = np.where(nibble & np.uint64(8), sign, byte).astype(np.uint32)
        result = result | chosen << np.uint32(8 * k)
    return result


def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Any function of three bits, by its truth table."""
    result: Array = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            terms = [v if row & bit else np.invert(v) for v, bit in ((a, 4), (b, 2), (c, 1))]
            result = result | (terms[0] & terms[1] & terms[2])
    return result


def shf(low: Array, high: Array, amount: Array, left: bool, wrap: bool) -> Array:
    """Funnel shift of the 64-bit value ``high:low``: its upper (left) or lower (right) word."""
    count = (amount & 31 if wrap else np.minimum(amount, 32)).astype(np.uint64)
    both = np.asarray(low).astype(np.uint64) | np.asarray(high).astype(np.uint64) << np.uint64(32)
    shifted = both << count >> np.uint64(32) if left else both >> count
    return (shifted & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def dot4(a: Array, b: Array, c: Array, signed: tuple[bool, bool]) -> Array:
    """dp4a: four products of bytes, added to ``c``."""
    return _dot(zip(_parts(a, 8, signed[0]), _parts(b, 8, signed[1]), strict=True), c)


def dot2_lo(a: Array, b: Array, c: Array, signed: tuple[bool, bool]) -> Array:
    """dp2a: two 16-bit numbers times the low two bytes, added to ``c``."""
    return _dot(zip(_parts(a, 16, signed[0]), _parts(b, 8, signed[1])[:2], strict=True), c)


def dot2_hi(a: Array, b: Array, c: Array, signed: tuple[bool, bool]) -> Array:
    """As ``dot2_lo``, with the high two bytes."""
    return _dot(zip(_parts(a, 16, signed[0]), _parts(b, 8, signed[1])[2:], strict=True), c)


def _parts(word: Array, bits: int, signed: bool) -> list[Array]:
    """The numbers in a word, lowest first, i64."""
    kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    return [
        (np.asarray(word) >> np.uint32(at)).astype(f"u{bits // 8}").view(kind).astype(np.int64)
        for at in range(0, 32, bits)
    ]


def _dot(pairs: Iterable[tuple[Array, Array]], c: Array) -> Array:
    total: Array = np.asarray(c).astype(np.int64)
    for x, y in pairs:
        total = total + x * y
    return total.astype(np.uint32)


def distances(a: Array, b: Array, c: Array, bits: int, signed: tuple[bool, bool], add: bool) -> Array:
    """vabsdiff: of each part of two words; ``add``: their sum and ``c``, otherwise the parts of a word."""
    found = [
        np.abs(x - y) for x, y in zip(_parts(a, bits, signed[0]), _parts(b, bits, signed[1]), strict=True)
    ]
    if add:
        return (sum(found) + np.asarray(c).astype(np.int64)).astype(np.uint32)
    mask = (1 << bits) - 1
    total: Array = np.int64(0)
    for k, v in enumerate(found):
        total = total | (v & mask) << bits * k
    return total.astype(np.uint32)


_BYTES: Mapping[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def byte_order(mode: str, selector: Array) -> Array:
    """The selector that ``prmt`` with a mode stands for."""
    return np.array(_BYTES[mode], np.uint32)[np.asarray(selector) & np.uint32(3)]


def bmsk(at: Array, count: Array, wrap: bool) -> Array:
    """A field of ones."""
    start, n = (np.asarray(v).astype(np.uint64) for v in (at, count))
    start, n = (v & np.uint64(31) if wrap else np.minimum(v, np.uint64(32)) for v in (start, n))
    return ((_ones(n.astype(np.int64)) << start) & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def szext(x: Array, count: Array, wrap: bool) -> Array:
    """The low bits, the last of them being the sign of a signed type."""
    n = np.asarray(count).astype(np.int64)
    n = n & 31 if wrap else np.minimum(n, 32)
    zero, up = np.zeros_like(x), np.clip(32 - n, 0, 31).astype(x.dtype)
    return np.where(n == 0, zero, x << up >> up)
