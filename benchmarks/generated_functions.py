"""Approximate functions of CUDA, what NVIDIA documents of their error, and kernels that evaluate them.

Bounds: CUDA C++ programming guide, "Mathematical functions" (standard and intrinsic), as units in the last
place (ulp) of the result, or as an absolute error where the guide gives one. For halves it gives none: they
are said to round to nearest, which is taken as one unit.
"""

# ruff: noqa: E501
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

COUNT = 256
_NEAR_ONE = (0.5, 2.0)


@frozen
class Function:
    """``kind``: of argument and result; ``ranges`` of the arguments; ``exact`` in double precision.

    ``ulps``: bound, or a function of the arguments. ``absolute``: an error that is always allowed.
    """

    name: str
    kind: str
    ranges: tuple[tuple[float, float], ...]
    exact: Callable[..., Any]
    ulps: float | Callable[..., Any]
    absolute: float = 0.0


def _each(function: Callable[..., float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[float])


def _list() -> list[Function]:
    wide, small, unit, positive = (-80.0, 80.0), (-3.0, 3.0), (-1.0, 1.0), (1e-6, 1e6)
    found = [
        Function("__expf", "f32", (wide,), np.exp, lambda x: 2 + np.floor(np.abs(1.173 * x))),
        Function(
            "__exp10f", "f32", ((-30, 30),), lambda x: 10.0**x, lambda x: 2 + np.floor(np.abs(2.97 * x))
        ),
        Function("__sinf", "f32", ((-math.pi, math.pi),), np.sin, 0, 2**-21.41),
        Function("__cosf", "f32", ((-math.pi, math.pi),), np.cos, 0, 2**-21.19),
        Function("__fdividef", "f32", (positive, positive), np.divide, 2),
        Function("__frsqrt_rn", "f32", (positive,), lambda x: 1 / np.sqrt(x), 0.5),
        Function("rsqrtf", "f32", (positive,), lambda x: 1 / np.sqrt(x), 2),
    ]
    for name, function, near, ulps in (
        ("__logf", np.log, 2**-21.41, 3), ("__log2f", np.log2, 2**-22, 2), ("__log10f", np.log10, 2**-24, 3),
    ):  # fmt: skip
        found.append(Function(name, "f32", (_NEAR_ONE,), function, 0, near))
        found.append(Function(name, "f32", ((2.0, 1e20),), function, ulps))
    both: list[tuple[str, Any, tuple[tuple[float, float], ...], float, float]] = [
        ("exp", np.exp, (wide,), 1, 1), ("exp2", np.exp2, (wide,), 2, 1), ("expm1", np.expm1, (small,), 1, 1),
        ("log", np.log, (positive,), 1, 1), ("log2", np.log2, (positive,), 1, 1),
        ("log10", np.log10, (positive,), 2, 1), ("log1p", np.log1p, (positive,), 1, 1),
        ("sin", np.sin, ((-1e4, 1e4),), 2, 2), ("cos", np.cos, ((-1e4, 1e4),), 2, 2), ("tan", np.tan, (small,), 4, 2),
        ("asin", np.arcsin, (unit,), 2, 2), ("acos", np.arccos, (unit,), 2, 2), ("atan", np.arctan, (wide,), 2, 2),
        ("sinh", np.sinh, (small,), 3, 2), ("cosh", np.cosh, (small,), 2, 1), ("tanh", np.tanh, (small,), 2, 1),
        ("cbrt", np.cbrt, (wide,), 1, 1), ("erf", _each(math.erf), (small,), 2, 2),
        ("erfc", _each(math.erfc), (small,), 4, 5), ("atan2", np.arctan2, (wide, wide), 3, 2),
        ("pow", np.power, ((0.1, 10.0), small), 4, 2), ("hypot", np.hypot, (wide, wide), 3, 2),
    ]  # fmt: skip
    for name, function, ranges, single, double in both:
        found.append(Function(f"{name}f", "f32", ranges, function, single))
        found.append(Function(name, "f64", ranges, function, double + 1))  # the reference errs by one itself
    for name, function, reach in (
        ("hexp", np.exp, (-9.0, 9.0)), ("hexp2", np.exp2, (-12.0, 12.0)), ("hlog", np.log, (1e-3, 6e4)),
        ("hlog2", np.log2, (1e-3, 6e4)), ("hsin", np.sin, small), ("hcos", np.cos, small),
        ("hrcp", lambda x: 1 / x, (1e-3, 1e3)), ("hsqrt", np.sqrt, (0.0, 6e4)),
        ("hrsqrt", lambda x: 1 / np.sqrt(x), (1e-3, 6e4)),
    ):  # fmt: skip
        found.append(Function(name, "h16", (reach,), function, 1))
    found.append(Function("htanh_approx", "h16", (small,), np.tanh, 1, 2**-10.987))
    return found


FUNCTIONS = _list()
_TYPES = {"f32": np.float32, "f64": np.float64, "h16": np.float16}


def source() -> str:
    """A kernel for each function: ``fn3(out, x, y)`` over one block of ``COUNT`` threads."""
    lines = ['#include "generated_prelude.h"']
    for k, function in enumerate(FUNCTIONS):
        kind = function.kind
        given = "x[threadIdx.x], y[threadIdx.x]" if len(function.ranges) > 1 else "x[threadIdx.x]"
        lines.append(f'extern "C" __global__ void fn{k}({kind}* out, const {kind}* x, const {kind}* y)')
        lines.append(f"{{ out[threadIdx.x] = {function.name}({given}); }}")
    return "\n".join(lines) + "\n"


def arguments(k: int) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel of function ``k`` is given."""
    function, chance = FUNCTIONS[k], np.random.default_rng(k)
    kind = _TYPES[function.kind]
    ranges = (*function.ranges, (0.0, 1.0))[:2]
    rows = []
    for low, high in ranges:
        if low > 0 and high / low > 100:
            rows.append(np.exp(chance.uniform(math.log(low), math.log(high), COUNT)).astype(kind))
        else:
            rows.append(chance.uniform(low, high, COUNT).astype(kind))
    return rows[0], rows[1]


def error(k: int, result: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Units in the last place by which each result errs, and whether the documented bound holds."""
    function, (x, y) = FUNCTIONS[k], arguments(k)
    given = [v.astype(np.float64) for v in ((x, y) if len(function.ranges) > 1 else (x,))]
    exact, kind = function.exact(*given), _TYPES[function.kind]
    unit = np.spacing(np.abs(exact).astype(kind)).astype(np.float64)
    distance = np.abs(result.astype(np.float64) - exact)
    bound = function.ulps(*given) if callable(function.ulps) else function.ulps
    # Bounds count from the correctly rounded result, whose own error is half a unit.
    slack = (0.5 if function.kind != "f64" else 0.0) if function.ulps != 0.5 else 0.0
    allowed = np.maximum((bound + slack) * unit, function.absolute + 0.5 * unit if function.absolute else 0.0)
    return distance / unit, distance <= allowed
