"""Floating-point instructions that need more than one NumPy operator.

Source: PTX ISA 9.7.3 and 9.7.4 "Floating point", 9.7.9.21 "cvt". Rounding of all kinds is in
``rounding.py``. Approximate functions are computed in double precision and rounded, so they are more
accurate than the hardware's.
"""

# NumPy's stubs leave views and mixed arithmetic unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = Any


def fmin(x: Array, y: Array, nan: bool = False) -> Array:
    """The smaller one, the other one where one is a NaN (``nan``: then a NaN); -0 is below +0."""
    chosen = np.minimum(x, y) if nan else np.fmin(x, y)
    return np.where((x == y) & np.signbit(x), x, chosen)


def fmax(x: Array, y: Array, nan: bool = False) -> Array:
    """As ``fmin``, the larger one."""
    chosen = np.maximum(x, y) if nan else np.fmax(x, y)
    return np.where((x == y) & np.signbit(y), x, chosen)


def flush(x: Array) -> Array:
    """Subnormal f32 numbers become zero of their sign."""
    tiny = np.abs(x) < np.float32(1.17549435e-38)
    return np.where(tiny, np.copysign(np.float32(0), x), x) if np.any(tiny) else x


def saturate(x: Array) -> Array:
    """Clamp to [+0, 1]; NaN and -0 become +0."""
    return np.where(x > 0, np.minimum(x, 1), np.zeros_like(x)).astype(x.dtype)


_ROUND: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


def to_integer(x: Array, kind: str, mode: str, wide: bool = False) -> Array:
    """Float to integer: rounded by ``mode`` (``rzi``…), clamped to the range.

    NaN gives 0; only the top bit where the float or the integer has 64 bits (``wide``: the float has).
    """
    target = np.dtype(kind)
    limits = np.iinfo(target)
    value = _ROUND[mode](np.asarray(x).astype(np.float64))
    low, high = float(limits.min), float(limits.max)
    inside = np.where(np.isnan(value), 0.0, np.clip(value, low, high))
    # float64 cannot hold the largest 64-bit integers: what reaches the bound takes the exact one
    result = np.where(inside >= high, 0.0, inside).astype(target)
    result = np.where(inside >= high, target.type(limits.max), result)
    if wide or target.itemsize == 8:
        top = np.array([1 << target.itemsize * 8 - 1], f"u{target.itemsize}").view(target)[0]
        result = np.where(np.isnan(value), top, result)
    return result


def to_integral(x: Array, mode: str) -> Array:
    """Float to float, rounded to an integral value."""
    return _ROUND[mode](x)


def clamp_integer(x: Array, kind: str) -> Array:
    """Integer to integer with saturation."""
    limits = np.iinfo(np.dtype(kind))
    low = max(limits.min, np.iinfo(x.dtype).min)
    high = min(limits.max, np.iinfo(x.dtype).max)
    return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(kind)


def from_bf16(x: Array) -> Array:
    """bf16 bits (u16) → f32."""
    return (np.asarray(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(x: Array, mode: str = "rn") -> Array:
    """f32 → bf16 bits (u16); NaN stays a NaN."""
    bits = np.array(x, dtype=np.float32).view(np.uint32)
    if mode == "rn":
        rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)) >> np.uint32(16)
    else:
        away = {"rz": np.False_, "rm": np.signbit(x), "rp": ~np.signbit(x)}[mode]
        rounded = (bits >> np.uint32(16)) + ((bits & np.uint32(0xFFFF) != 0) & np.isfinite(x) & away)
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded).astype(np.uint16)


def to_tf32(x: Array, mode: str) -> Array:
    """f32 → tf32 bits (u32): 10 bits of fraction, nearest, ties away (``rna``) or even (``rn``), or cut."""
    bits = np.array(x, dtype=np.float32).view(np.uint32)
    half = np.uint32(0x1000 if mode == "rna" else 0xFFF)
    more = bits >> np.uint32(13) & np.uint32(1) if mode == "rn" else np.uint32(0)
    rounded = bits if mode == "rz" else bits + half + more
    kept = np.where(np.isfinite(x), rounded, bits) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), kept)


def approximate(name: str, x: Array) -> Array:
    """``ex2``, ``lg2``, ``sin``, ``cos``, ``rcp``, ``rsqrt``, ``sqrt``, ``tanh`` in double precision."""
    value = np.asarray(x).astype(np.float64)
    return _APPROXIMATE[name](value).astype(x.dtype)


_APPROXIMATE: Mapping[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rcp": lambda v: 1.0 / v,
    "rsqrt": lambda v: 1.0 / np.sqrt(v),
}
