"""Arithmetic rounded once, in every direction: fused multiply-add, and what PTX calls ``.rz``, ``.rm``,
``.rp``.

A directed result is the nearest one, moved by one step where the exact value lies on its other side. Which
side that is, double precision tells for f32; for f64 and quotients whole numbers do, one thread after the
other (such instructions are rare). ``fma`` of f64 follows Boldo and Melquiond (2008): the parts below the
leading sum are rounded to odd before they are added; where exponents are extreme, whole numbers again.
"""

# NumPy's stubs leave views and mixed arithmetic unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any

_SPLIT = np.float64(134217729.0)  # 2**27 + 1, Veltkamp's constant
_SAFE = 2.0**900  # beyond it, or below its inverse, products and their errors may not be numbers

_BEHIND_SINGLE, _MIDDLE = np.uint64((1 << 29) - 1), np.uint64(1 << 28)  # of a double's fraction
_SMALLEST_NORMAL = np.float64(2.0**-126).view(np.uint64) << np.uint64(1)  # without its sign


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's exact sum: the rounded sum and what rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Dekker's exact product."""
    product = x * y
    (a, b), (c, d) = ((high, v - high) for v in (x, y) for high in [_SPLIT * v - (_SPLIT * v - v)])
    return product, ((a * c - product) + a * d + b * c) + b * d


def to_odd(nearest: Array, error: Array) -> Array:
    """Of the two numbers around an inexact value the one with its last bit set. ``error``: its sign."""
    value = np.asarray(nearest)
    bits = np.array(value).view(f"i{value.dtype.itemsize}")
    even = (error != 0) & (bits & 1 == 0) & ~np.isnan(value)
    step = np.where((error > 0) == (value > 0), 1, -1).astype(bits.dtype)
    tiny = np.where(error > 0, 1, np.iinfo(bits.dtype).min + 1).astype(bits.dtype)  # next to zero
    return np.where(even, np.where(value == 0, tiny, bits + step), bits).view(value.dtype)


def towards(nearest: Array, error: Array, mode: str) -> Array:
    """``nearest`` as ``mode`` (``rz``, ``rm``, ``rp``) rounds. ``error``: exact value - ``nearest``."""
    value = np.asarray(nearest)
    kind = value.dtype.type
    if mode == "rz":
        wrong, goal = np.where(np.signbit(value), error > 0, error < 0), kind(0)
    elif mode == "rm":
        wrong, goal = error < 0, kind(-np.inf)
    else:
        wrong, goal = error > 0, kind(np.inf)
    moved = np.nextafter(value, goal)
    return np.where(wrong, np.copysign(moved, value) if mode == "rz" else moved, value).astype(value.dtype)


def narrow(x: Array, kind: str, mode: str) -> Array:
    """Float to a narrower float with rounding ``rn``, ``rz``, ``rm`` or ``rp``."""
    nearest = np.asarray(x).astype(kind)
    if mode == "rn":
        return nearest
    exact, back = np.asarray(x).astype(np.float64), nearest.astype(np.float64)
    return towards(nearest, np.nan_to_num(np.sign(np.where(exact == back, 0.0, exact - back))), mode)


def from_integer(x: Array, kind: str, mode: str) -> Array:
    """Integer to float."""
    value = np.asarray(x)
    nearest = value.astype(kind)
    return nearest if mode == "rn" else towards(nearest, _integer_error(value, nearest), mode)


def odd_from_integer(x: Array) -> Array:
    """Integer to f32, rounded to odd: rounding it once more is rounding once."""
    value = np.asarray(x)
    nearest = value.astype(np.float32)
    return to_odd(nearest, _integer_error(value, nearest))


def odd_single(x: Array) -> Array:
    """f64 to f32, rounded to odd."""
    exact = np.asarray(x)
    nearest = exact.astype(np.float32)
    back = nearest.astype(np.float64)
    return to_odd(nearest, np.where(exact == back, 0.0, exact - back))


def _integer_error(value: Array, nearest: Array) -> Array:
    """The sign of what ``nearest`` lacks."""
    if value.dtype.itemsize < 8:
        exact, back = value.astype(np.float64), nearest.astype(np.float64)
        return np.where(exact == back, 0.0, exact - back)
    pairs = zip(value.ravel().tolist(), nearest.astype(np.float64).ravel().tolist(), strict=True)
    return np.array([_sign(v, 1, r) for v, r in pairs], float).reshape(value.shape)


def directed(operation: str, mode: str, *operands: Array) -> Array:
    """``add``, ``sub``, ``mul``, ``fma``, ``div``, ``rcp`` or ``sqrt`` of f32 or f64, rounded by ``mode``."""
    values = np.broadcast_arrays(*operands)
    if operation == "sub":
        operation, values = "add", [values[0], -values[1]]
    elif operation == "rcp":
        operation, values = "div", [np.ones_like(values[0]), values[0]]
    result = _singly(operation, mode, values) if values[0].dtype == np.float32 else None
    if result is None:
        nearest = _nearest(operation, values)
        result = towards(nearest, _errors(operation, values, nearest), mode)
    if mode == "rm" and operation in ("add", "fma"):  # what cancels exactly
        last = values[0] * values[1] if operation == "fma" else values[0]
        cancels = (result == 0) & (np.signbit(last) != np.signbit(values[-1]))
        result = np.where(cancels, -np.zeros_like(result), result)
    return result


def _singly(operation: str, mode: str, values: Any) -> Array | None:
    """f32 operations whose exact value two numbers of double precision hold."""
    if operation not in ("add", "mul", "fma"):
        return None
    wide = [v.astype(np.float64) for v in values]
    if operation == "mul":
        return narrow(wide[0] * wide[1], "f4", mode)
    first = wide[0] * wide[1] if operation == "fma" else wide[0]
    total, error = two_sum(first, wide[-1])
    return narrow(to_odd(total, np.nan_to_num(error)), "f4", mode)


def _nearest(operation: str, values: Any) -> Array:
    match operation:
        case "add":
            return values[0] + values[1]
        case "mul":
            return values[0] * values[1]
        case "div":
            return values[0] / values[1]
        case "sqrt":
            return np.sqrt(values[0])
        case _:
            return fma(*values)


def _errors(operation: str, values: Any, nearest: Array) -> Array:
    """The sign of exact value - ``nearest``, thread by thread."""
    rows = zip(*(v.ravel().tolist() for v in values), strict=True)
    signs = [
        _error(operation, row, r) for row, r in zip(rows, np.asarray(nearest).ravel().tolist(), strict=True)
    ]
    return np.array(signs, float).reshape(np.shape(nearest))


def _error(operation: str, row: tuple[float, ...], nearest: float) -> int:
    if not all(map(math.isfinite, row)) or math.isnan(nearest) or (operation == "div" and row[1] == 0):
        return 0
    n, d = row[0].as_integer_ratio()
    if operation == "sqrt":
        a, b = nearest.as_integer_ratio()
        return (n * b * b > a * a * d) - (n * b * b < a * a * d)
    p, q = row[1].as_integer_ratio()
    match operation:
        case "add":
            return _sign(n * q + p * d, d * q, nearest)
        case "mul":
            return _sign(n * p, d * q, nearest)
        case "div":
            return _sign(n * q if p > 0 else -n * q, d * abs(p), nearest)
        case _:
            s, t = row[2].as_integer_ratio()
            return _sign(n * p * t + s * d * q, d * q * t, nearest)


def _sign(n: int, d: int, nearest: float) -> int:
    """Of n / d - ``nearest``."""
    if math.isinf(nearest):
        return -1 if nearest > 0 else 1
    a, b = nearest.as_integer_ratio()
    return (n * b > a * d) - (n * b < a * d)


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once."""
    kind = np.result_type(x, y, z)
    if kind == np.float64:
        return _fma64(x, y, z)
    if kind == np.float32:
        x, y, z = (np.asarray(v).astype(np.float64) for v in (x, y, z))
        total = np.asarray(x * y + z)
        if not _rounds_twice(total):
            return total.astype(np.float32)
    return fused(x, y, z).astype(kind)


def _rounds_twice(total: Array) -> bool:
    """Whether a rounded double may become another ``f32`` than the exact value before it.

    Only where it lies in the middle of two neighbours, which is on another bit for subnormal ones.
    """
    bits = total.view(np.uint64)
    middle = bits & _BEHIND_SINGLE == _MIDDLE
    tiny = (bits << np.uint64(1)) - np.uint64(1) < _SMALLEST_NORMAL  # zeros wrap around
    return bool((middle | tiny).any())


def fused(x: Array, y: Array, z: Array) -> Array:
    """x * y + z of numbers of at most 24 bits, in double precision, rounded to odd."""
    wide = [np.asarray(v).astype(np.float64) for v in (x, y, z)]
    total, error = two_sum(wide[0] * wide[1], wide[2])
    return to_odd(total, np.where(np.isfinite(total), error, 0.0))


def _fma64(x: Array, y: Array, z: Array) -> Array:
    product = x * y
    plain = np.asarray(product + z)
    high, low = _two_product(x, y)
    above, rest = two_sum(z, low)
    total, lost = two_sum(high, above)
    result = total + to_odd(*two_sum(rest, lost))
    simple = (product == 0) & ((x == 0) | (y == 0)) | ~np.isfinite(x) | ~np.isfinite(y) | ~np.isfinite(z)
    result = np.where(simple, plain, result)
    sizes = [np.abs(v) for v in (x, y, z, product)]
    wild = np.zeros(plain.shape, bool)
    for size in sizes:
        wild = wild | (size > _SAFE) | ((size < 1 / _SAFE) & (size != 0))
    wild = (wild | (product == 0)) & ~simple
    if wild.any():
        result = np.array(np.broadcast_to(result, plain.shape))
        given = [np.broadcast_to(v, plain.shape)[wild].tolist() for v in (x, y, z)]
        result[wild] = [_whole_fma(*row) for row in zip(*given, strict=True)]
    return np.where((result == 0) & (plain == 0), plain, result)


def _whole_fma(x: float, y: float, z: float) -> float:
    """By whole numbers; all of them are finite. Python rounds a quotient of integers once."""
    (n, d), (p, q), (s, t) = (v.as_integer_ratio() for v in (x, y, z))
    total, below = n * p * t + s * d * q, d * q * t
    if total == 0:
        return x * y + z
    try:
        return total / below
    except OverflowError:
        return math.inf if total > 0 else -math.inf
