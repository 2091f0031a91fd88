"""Floating-point instructions that need more than one NumPy operator.

Source: PTX ISA 9.7.3 and 9.7.4 "Floating point", 9.7.9.21 "cvt". ``fma`` rounds once: the product is exact
in a wider type and the sum is rounded to odd before it is narrowed (Boldo and Melquiond, 2008). Approximate
functions are computed in double precision and rounded, so they are more accurate than the hardware's.
"""

# NumPy's stubs leave views and mixed arithmetic unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = Any

_SPLIT = np.float64(134217729.0)  # 2**27 + 1, Veltkamp's constant


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once for f16 and f32; for f64 within one unit in the last place."""
    kind = np.result_type(x, y, z)
    if kind == np.float64:
        return _fma64(x, y, z)
    wide = [np.asarray(v).astype(np.float64) for v in (x, y, z)]
    product = wide[0] * wide[1]
    total, error = two_sum(product, wide[2])
    return _to_odd(total, error).astype(kind)


def directed(operation: str, mode: str, x: Array, y: Array, z: Array | None = None) -> Array:
    """An f32 operation rounded by ``mode`` (``rz``, ``rm``, ``rp``), from its exact value."""
    a, b = (np.asarray(v).astype(np.float64) for v in (x, y))
    if operation in ("mul", "fma"):
        a, b = a * b, np.asarray(0.0 if z is None else z).astype(np.float64)
    elif operation == "sub":
        b = -b
    return narrow(_to_odd(*two_sum(a, b)), "f4", mode)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's exact sum: the rounded sum and what rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _to_odd(total: Array, error: Array) -> Array:
    inexact = np.isfinite(total) & (error != 0)
    bits = np.array(total, dtype=np.float64).view(np.int64)
    even = inexact & (bits & 1 == 0)
    step = np.where((error > 0) == (np.asarray(total) > 0), 1, -1)
    return np.where(even, bits + step, bits).view(np.float64)


def _fma64(x: Array, y: Array, z: Array) -> Array:
    product = np.asarray(x * y)
    parts = []
    for v in (x, y):
        big = _SPLIT * v
        high = big - (big - v)
        parts.append((high, v - high))
    (a, b), (c, d) = parts
    error = ((a * c - product) + a * d + b * c) + b * d
    total, rest = two_sum(product, z)
    exact = total + (rest + error)
    return np.where(np.isfinite(exact), exact, total)


def fmin(x: Array, y: Array, nan: bool = False) -> Array:
    return np.minimum(x, y) if nan else np.fmin(x, y)


def fmax(x: Array, y: Array, nan: bool = False) -> Array:
    return np.maximum(x, y) if nan else np.fmax(x, y)


def flush(x: Array) -> Array:
    """Subnormal f32 numbers become zero of their sign."""
    tiny = np.abs(x) < np.float32(1.17549435e-38)
    return np.where(tiny, np.copysign(np.float32(0), x), x) if np.any(tiny) else x


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes 0."""
    return np.where(np.isnan(x), np.zeros_like(x), np.clip(x, 0, 1)).astype(x.dtype)


_ROUND: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


def to_integer(x: Array, kind: str, mode: str) -> Array:
    """Float to integer: rounded by ``mode`` (``rzi``…), clamped to the range; NaN gives 0."""
    target = np.dtype(kind)
    limits = np.iinfo(target)
    value = _ROUND[mode](np.asarray(x).astype(np.float64))
    low, high = float(limits.min), float(limits.max)
    inside = np.where(np.isnan(value), 0.0, np.clip(value, low, high))
    # float64 cannot hold the largest 64-bit integers: what reaches the bound takes the exact one
    result = np.where(inside >= high, 0.0, inside).astype(target)
    return np.where(inside >= high, target.type(limits.max), result)


def to_integral(x: Array, mode: str) -> Array:
    """Float to float, rounded to an integral value."""
    return _ROUND[mode](x)


def clamp_integer(x: Array, kind: str) -> Array:
    """Integer to integer with saturation."""
    limits = np.iinfo(np.dtype(kind))
    low = max(limits.min, np.iinfo(x.dtype).min)
    high = min(limits.max, np.iinfo(x.dtype).max)
    return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(kind)


def narrow(x: Array, kind: str, mode: str) -> Array:
    """Float to a narrower float with rounding ``rn``, ``rz``, ``rm`` or ``rp``."""
    target = np.dtype(kind)
    nearest = np.asarray(x).astype(target)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    exact = np.asarray(x).astype(np.float64)
    zero = target.type(0)
    towards = {"rz": zero, "rm": target.type(-np.inf), "rp": target.type(np.inf)}[mode]
    beyond = {
        "rz": np.abs(back) > np.abs(exact),
        "rm": back > exact,
        "rp": back < exact,
    }[mode]
    return np.where(beyond, np.nextafter(nearest, towards), nearest).astype(target)


def from_bf16(x: Array) -> Array:
    """bf16 bits (u16) → f32."""
    return (np.asarray(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(x: Array) -> Array:
    """f32 → bf16 bits (u16), to nearest even; NaN stays a NaN."""
    bits = np.array(x, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded).astype(np.uint16)


def to_tf32(x: Array, mode: str) -> Array:
    """f32 → tf32 bits (u32): 10 bits of fraction, nearest, ties away (``rna``) or even (``rn``), or cut."""
    bits = np.array(x, dtype=np.float32).view(np.uint32)
    half = np.uint32(0x1000 if mode == "rna" else 0xFFF)
    more = bits >> np.uint32(13) & np.uint32(1) if mode == "rn" else np.uint32(0)
    rounded = bits if mode == "rz" else bits + half + more
    kept = np.where(np.isfinite(x), rounded, bits) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), kept)


def halves(x: Array) -> tuple[Array, Array]:
    """u32 → the f16 values in its low and high half."""
    bits = np.asarray(x)
    return (
        (bits & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16),
        (bits >> np.uint32(16)).astype(np.uint16).view(np.float16),
    )


def packed(low: Array, high: Array) -> Array:
    """Two f16 values → u32."""
    a, b = (np.asarray(v).astype(np.float16).view(np.uint16).astype(np.uint32) for v in (low, high))
    return a | b << np.uint32(16)


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
