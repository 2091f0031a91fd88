"""Floating-point numbers as IEEE 754 has them, one at a time: operators and functions by their CUDA names.

Results are rounded to their type; what the GPU contracts into one operation, or computes less exactly, may
differ from them in the last digits. Hence what such digits may decide is not known: comparisons of numbers
that are nearly, and not quite, equal, and differences that nearly vanish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import Float, Int, Type

_NEAR = 1e-5
"""A thousand roundings of a number with 24 bits."""

_LARGE_ANGLE, _SMALL = math.pi, 0.1

Function = Callable[[Sequence[float]], float]


def near(a: float, b: float) -> bool:
    """Whether roundings may have made two different numbers of one, or one of two."""
    return a != b and abs(a - b) <= _NEAR * max(abs(a), abs(b))


def compared(op: BinaryOp, a: float, b: float) -> int | None:
    """Whether the comparison holds; None: roundings may decide it."""
    return None if near(a, b) else int(_COMPARISONS[op](a, b))


def computed(op: BinaryOp, a: float, b: float, type: Float) -> float | None:
    """The result of an operator; None: roundings may be all that is left of it, or it is none of numbers."""
    if op not in _OPERATORS:
        return None
    result = _OPERATORS[op](a, b)
    if op in (BinaryOp.ADD, BinaryOp.SUB) and result and abs(result) <= _NEAR * max(abs(a), abs(b)):
        return None
    return type.rounded(result)


def result_of(name: str, operands: Sequence[float], type: Type) -> float | int | None:
    """What a function gives; None: not known."""
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    try:
        value = function(operands)
    except (ArithmeticError, ValueError, IndexError):
        return None
    if isinstance(type, Float):
        return type.rounded(float(value))
    if not isinstance(type, Int) or not math.isfinite(value):
        return None
    return type.wrap(int(value)) if type.boolean or type.minimum <= value <= type.maximum else None


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _least(a: float, b: float) -> float:
    return b if a != a else a if b != b else min(a, b)


def _greatest(a: float, b: float) -> float:
    return b if a != a else a if b != b else max(a, b)


_OPERATORS: Mapping[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: _quotient,
    BinaryOp.MIN: _least,
    BinaryOp.MAX: _greatest,
}
_COMPARISONS: Mapping[BinaryOp, Callable[[float, float], bool]] = {
    BinaryOp.LT: lambda a, b: a < b,
    BinaryOp.LE: lambda a, b: a <= b,
    BinaryOp.GT: lambda a, b: a > b,
    BinaryOp.GE: lambda a, b: a >= b,
    BinaryOp.EQ: lambda a, b: a == b,
    BinaryOp.NE: lambda a, b: a != b,
}

# ------------------------------------------------------------------------------------- functions


def _round(x: float) -> float:
    """Halves away from zero, as ``round`` of C does."""
    return math.copysign(math.floor(abs(x) + 0.5), x)


def _turning(value: float, angle: float) -> float:
    """A sine or cosine; what is left of one near its zeros, or of a large angle, is mostly roundings."""
    if abs(angle) > _LARGE_ANGLE or (angle != 0 and abs(value) < _SMALL):
        raise ValueError(angle)
    return value


_CONVERTED = tuple(
    f"__{source}2{target}" for source in ("float", "double") for target in ("int", "uint", "ll", "ull")
)
_MODES: Mapping[str, Callable[[float], float]] = {
    "rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil,
}  # fmt: skip
_ONE: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("fabs fabsf abs __builtin_fabs __builtin_fabsf __habs", abs),
    ("sqrt sqrtf", math.sqrt),
    ("rsqrt rsqrtf __frsqrt_rn", lambda x: 1 / math.sqrt(x)),
    ("exp expf __expf", math.exp),
    ("exp2 exp2f", lambda x: 2.0**x),
    ("exp10 exp10f __exp10f", lambda x: 10.0**x),
    ("log logf __logf", math.log),
    ("log2 log2f __log2f", math.log2),
    ("log10 log10f __log10f", math.log10),
    ("tanh tanhf __tanhf", math.tanh),
    ("sin sinf __sinf", lambda x: _turning(math.sin(x), x)),
    ("cos cosf __cosf", lambda x: _turning(math.cos(x), x)),
    ("floor floorf", math.floor),
    ("ceil ceilf", math.ceil),
    ("trunc truncf", math.trunc),
    ("rint rintf nearbyint nearbyintf lrint lrintf llrint llrintf", round),
    ("round roundf lround lroundf llround llroundf", _round),
    ("isnan __isnan __isnanf __hisnan", lambda x: float(x != x)),
    ("isinf __isinf __isinff", lambda x: float(math.isinf(x))),
    ("isfinite __finite __finitef", lambda x: float(math.isfinite(x))),
    ("signbit", lambda x: float(math.copysign(1.0, x) < 0)),
    ("__half2float __float2half __float2half_rn __float2bfloat16 __bfloat162float __int2float_rn "
     "__uint2float_rn __int2double_rn", lambda x: x),
    ("__saturatef", lambda x: min(max(0.0, x), 1.0)),
)  # fmt: skip
_SEVERAL: tuple[tuple[str, Function], ...] = (
    ("fma fmaf", lambda x: x[0] * x[1] + x[2]),
    ("fdividef __fdividef", lambda x: _quotient(x[0], x[1])),
    ("fmod fmodf", lambda x: math.fmod(x[0], x[1])),
    ("pow powf __powf", lambda x: math.pow(x[0], x[1])),
    ("hypot hypotf", lambda x: math.hypot(x[0], x[1])),
    ("copysign copysignf", lambda x: math.copysign(x[0], x[1])),
    ("fdim fdimf", lambda x: max(x[0] - x[1], 0.0)),
)
# Names that end in how results are rounded, which is in the last digit.
_ROUNDED: tuple[tuple[str, Function], ...] = (
    ("__fsqrt __dsqrt", lambda x: math.sqrt(x[0])),
    ("__frcp __drcp", lambda x: _quotient(1.0, x[0])),
    ("__fadd __dadd", lambda x: x[0] + x[1]),
    ("__fsub __dsub", lambda x: x[0] - x[1]),
    ("__fmul __dmul", lambda x: x[0] * x[1]),
    ("__fdiv __ddiv", lambda x: _quotient(x[0], x[1])),
    ("__fmaf __fma __fmaf_ieee", lambda x: x[0] * x[1] + x[2]),
)


def _of_one(function: Callable[[float], float]) -> Function:
    return lambda x: function(x[0])


FUNCTIONS: Mapping[str, Function] = {
    **{name: _of_one(f) for names, f in _ONE for name in names.split()},
    **{f"{name}_{mode}": _of_one(f) for name in _CONVERTED for mode, f in _MODES.items()},
    **{name: f for names, f in _SEVERAL for name in names.split()},
    **{f"{name}_{mode}": f for names, f in _ROUNDED for name in names.split() for mode in _MODES},
}
"""Pure functions of floating-point numbers by CUDA name (CUDA Math API)."""
NOT_FINITE = frozenset(name for names, _ in _ONE if names.startswith("is") for name in names.split())
"""Those that ask for what is infinite or no number."""
