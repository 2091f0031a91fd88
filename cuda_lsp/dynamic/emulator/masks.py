"""Lane masks of generated code: None means that every thread of the launch is active."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from typing import Any

import numpy as np

from cuda_lsp.dynamic.emulator import floats, rounding

Array = Any


def keep(mask: Array, new: Array, old: Array) -> Array:
    """``new`` in active lanes, ``old`` in the others."""
    return new if mask is None else np.where(mask, new, old)


def both(mask: Array, condition: Array, services: Any) -> Array:
    """Active lanes for which ``condition`` holds, ``(n,)``."""
    if np.ndim(condition) == 0:
        condition = np.full(services.threads, bool(condition))
    return condition if mask is None else mask & condition


def select(condition: Array, x: Array, y: Array) -> Array:
    """``x`` where the condition holds, ``y`` elsewhere; a scalar where all three are."""
    return np.where(condition, x, y)


def value_f16(bits: Array) -> Array:
    """f16 bits (u16) → f32."""
    return np.asarray(bits).view(np.float16).astype(np.float32)


def half_f16(function: Any, *bits: Array) -> Array:
    """A function of f16 values, computed in f32 or wider."""
    return np.asarray(function(*map(value_f16, bits)).astype(np.float16)).view(np.uint16)


def half_bf16(function: Any, *bits: Array) -> Array:
    """A function of bf16 values (u16 bits), rounded once from f32, or from f64 by way of an odd f32."""
    result = np.asarray(function(*map(floats.from_bf16, bits)))
    return floats.to_bf16(rounding.odd_single(result) if result.dtype == np.float64 else result)


def _split(function: Any, single: Any, bits: tuple[Array, ...]) -> Array:
    low = single(function, *((np.asarray(b) & np.uint32(0xFFFF)).astype(np.uint16) for b in bits))
    high = single(function, *((np.asarray(b) >> np.uint32(16)).astype(np.uint16) for b in bits))
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def half_f16x2(function: Any, *bits: Array) -> Array:
    """``half_f16`` of the two halves of each word, u32."""
    return _split(function, half_f16, bits)


def half_bf16x2(function: Any, *bits: Array) -> Array:
    """``half_bf16`` of the two halves of each word, u32."""
    return _split(function, half_bf16, bits)


def part_16(word: Array, k: int) -> Array:
    """The low or the high half of a word, u16."""
    return (np.asarray(word) >> np.uint32(16 * k) & np.uint32(0xFFFF)).astype(np.uint16)


def words_16(function: Any, kind: Any, *words: Array) -> Array:
    """A function of the 16-bit integers in some words."""
    low, high = (np.asarray(function(*(part_16(w, k).view(kind) for w in words))) for k in range(2))
    return pack(np.dtype(np.uint32), *(v.astype(kind).view(np.uint16) for v in (low, high)))


def to_f16x2(low: Array, high: Array, mode: str) -> Array:
    """Two f32 values rounded to f16, in one word. ``mode``: ``rn`` or ``rz``."""
    return pack(np.dtype(np.uint32), *(rounding.narrow(v, "f2", mode).view(np.uint16) for v in (low, high)))


def to_bf16x2(low: Array, high: Array, mode: str) -> Array:
    """As ``to_f16x2``, to bf16."""
    return pack(np.dtype(np.uint32), *(floats.to_bf16(v, mode) for v in (low, high)))


def pack(kind: Any, *parts: Array) -> Array:
    """Parts, lowest first, → one wider unsigned integer."""
    size = kind.itemsize * 8 // len(parts)
    result = np.asarray(parts[0]).astype(kind)
    for k, part in enumerate(parts[1:], 1):
        result = result | np.asarray(part).astype(kind) << kind.type(size * k)
    return result


def clz_amount(position: Array, width: int) -> Array:
    """``bfind.shiftamt``: how far to shift left so that the found bit becomes the top one."""
    return np.where(position == 0xFFFFFFFF, position, np.uint32(width - 1) - position).astype(np.uint32)
