"""CUDA's mathematical functions: all are declared, and those of integers are computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuda_lsp.frontend.toolchain import SHIM, FrontendOptions, index
from cuda_lsp.ir.ops import INTRINSICS, intrinsic_lanes
from cuda_lsp.ir.reals import FUNCTIONS, result_of
from cuda_lsp.ir.types import INT32, UINT32, Float, Int
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

# The chapters of the CUDA Math API, by families: A|B stands for either, an empty one included.
FUNCTIONS_OF_FLOATS = """
sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|sinpi|cospi|exp|exp2|exp10|expm1|log|log2|log10|log1p|logb:|f
sqrt|rsqrt|cbrt|rcbrt|floor|ceil|trunc|round|rint|nearbyint|fabs|erf|erfc|erfinv|erfcinv|erfcx|tgamma|lgamma:|f
normcdf|normcdfinv|j0|j1|y0|y1|jn|yn|cyl_bessel_i0|cyl_bessel_i1|pow|atan2|fmod|fmin|fmax|hypot|rhypot|copysign:|f
fdim|remainder|nextafter|fma|ldexp|scalbn|scalbln|frexp|modf|remquo|norm3d|rnorm3d|norm4d|rnorm4d|norm|rnorm:|f
sincos|sincospi|ilogb|lround|lrint|llround|llrint|nan|fdivide:|f
abs|labs|llabs|isnan|isinf|isfinite|signbit|min|max|umin|umax|llmin|llmax|ullmin|ullmax
"""
INTRINSICS_OF_FLOATS = """
__:sin|cos|tan|tanh|exp|exp10|log|log2|log10|pow|saturate|sincos:f
__f|__d:add|sub|mul|div|rcp|sqrt:_rn|_rz|_ru|_rd
__fma|__fmaf|__fmaf_ieee|__fadd2|__fmul2|__ffma2:_rn|_rz|_ru|_rd
__frsqrt_rn|__fdividef
"""
CONVERSIONS = """
__float|__double:2:int|uint|ll|ull:_rn|_rz|_ru|_rd
__int|__uint|__ll|__ull|__double:2float:_rn|_rz|_ru|_rd
__int|__uint:2double_rn
__ll|__ull:2double:_rn|_rz|_ru|_rd
__float_as_int|__float_as_uint|__int_as_float|__uint_as_float|__double_as_longlong|__longlong_as_double
__double2loint|__double2hiint|__hiloint2double
"""
OF_INTEGERS = """
__:popc|clz|ffs|brev:|ll
__:|u:mul24|mulhi|mul64hi|sad|hadd|rhadd
__byte_perm|__dp4a|__dp2a_lo|__dp2a_hi|__fns
__funnelshift_:l|r:|c
__v:add|sub|neg|abs:|ss:2|4
__v:addus|subus|haddu:2|4
__v:max|min|avg|absdiff|sad:s|u:2|4
__v:cmp|set:eq|ne:2|4
__v:cmp|set:ge|gt|le|lt:s|u:2|4
__vi:addmax|addmin|max3|min3:_:s32|u32|s16x2|u16x2|s32_relu|s16x2_relu
__vi:max|min:_:s32|s16x2:_relu
__vib:max|min:_:s32|u32|s16x2|u16x2
"""
OF_NARROW_FLOATS = """
__h:add|sub|mul:|2:|_sat|_rn
__h:div|2div|fma|fma2|fma_sat|fma2_sat|fma_relu|fma2_relu|abs|abs2|neg|neg2|cmadd
__h:max|min:|2:|_nan
__h:eq|ne|lt|le|gt|ge:|u:|2|2_mask
__hb:eq|ne|lt|le|gt|ge:|u:2
__hisnan|__hisnan2|__hisinf
h|h2:exp|exp2|exp10|log|log2|log10|sqrt|rsqrt|rcp|sin|cos|tanh|tanh_approx|floor|ceil|rint|trunc
__half|__bfloat16:2:int|uint|short|ushort|ll|ull:_rn|_rz|_ru|_rd
__int|__uint|__short|__ushort|__ll|__ull:2half|2bfloat16:_rn|_rz|_ru|_rd
__half|__bfloat16:2char_rz|2uchar_rz
__float2:half|bfloat16:|_rn|_rz|_ru|_rd
__double2:half|bfloat16
__half2float|__bfloat162float|__half22float2|__bfloat1622float2
__float2half2_rn|__floats2half2_rn|__float22half2_rn|__half2half2|__halves2half2|__low2half|__high2half
__float2bfloat162_rn|__floats2bfloat162_rn|__float22bfloat162_rn|__bfloat162bfloat162|__halves2bfloat162
__low2:half2|bfloat162|bfloat16|float
__high2:half2|bfloat162|bfloat16|float
__lows2|__highs2:half2|bfloat162
__half|__bfloat16:_as_:short|ushort
__short|__ushort:_as_:half|bfloat16
__lowhigh2highlow|make_half2|make_bfloat162
"""
NOT_COMPUTED = ("__vavgs2", "__vavgs4", "__vib")


def _names(families: str) -> Iterator[str]:
    for line in families.split():
        found = [""]
        for part in line.split(":"):
            found = [begin + end for begin in found for end in part.split("|")]
        yield from filter(None, found)


@pytest.mark.parametrize(
    "families",
    [FUNCTIONS_OF_FLOATS, INTRINSICS_OF_FLOATS, CONVERSIONS, OF_INTEGERS, OF_NARROW_FLOATS],
    ids=["functions", "floats", "conversions", "integers", "narrow"],
)
def test_every_function_of_the_math_api_is_declared(families: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    used = "".join(f"using ::{name};\n" for name in _names(families))
    path.write_text(f'#include "{SHIM}"\nnamespace all {{\n{used}}}\n')
    flags = [*FrontendOptions().language_flags(), "-ferror-limit=0"]
    found = [d.spelling for d in index().parse(str(path), args=flags).diagnostics if d.severity >= 3]
    assert found == []


def test_every_function_of_integers_is_computed() -> None:
    missing = [n for n in _names(OF_INTEGERS) if n not in INTRINSICS and not n.startswith(NOT_COMPUTED)]
    assert missing == []


@pytest.mark.parametrize("name", list(_names("__f|__d:add|sub|mul|div|rcp|sqrt:_rn|_rz|_ru|_rd")))
def test_rounded_floats_are_computed(name: str) -> None:
    expected = {"add": 20.0, "sub": 12.0, "mul": 64.0, "div": 4.0, "rcp": 0.0625, "sqrt": 4.0}
    operands = (16.0, 4.0)
    assert result_of(name, operands, Float(32)) == expected[name[3:-3]]


def test_what_is_no_number_saturates_to_nothing() -> None:
    assert FUNCTIONS["__saturatef"]([float("nan")]) == 0.0


@pytest.mark.parametrize(
    ("name", "args", "type", "expected"),
    [
        ("__hadd", (-3, 0), INT32, -2),
        ("__rhadd", (-3, 0), INT32, -1),
        ("__uhadd", (0xFFFFFFFF, 0xFFFFFFFD), UINT32, 0xFFFFFFFE),
        ("__urhadd", (1, 2), UINT32, 2),
        ("__sad", (-2, 3, 1), INT32, 6),
        ("__usad", (2, 5, 0xFFFFFFFF), UINT32, 2),
        ("__byte_perm", (0x33221100, 0x77665544, 0x7531), UINT32, 0x77553311),
        ("__byte_perm", (0x33221100, 0x77665544, 0xFFFF8), UINT32, 0x77777700),
        ("__funnelshift_l", (0x80000000, 1, 1), UINT32, 3),
        ("__funnelshift_l", (5, 6, 32), UINT32, 6),
        ("__funnelshift_lc", (5, 6, 40), UINT32, 5),
        ("__funnelshift_r", (2, 1, 1), UINT32, 0x80000001),
        ("__funnelshift_rc", (2, 1, 32), UINT32, 1),
        ("__fns", (0b10110, 0, 2), UINT32, 2),
        ("__fns", (0b10110, 4, -2), UINT32, 2),
        ("__fns", (0b10110, 3, 0), UINT32, 0xFFFFFFFF),
        ("__fns", (0b10110, 0, 4), UINT32, 0xFFFFFFFF),
        ("__dp4a", (0x01FF0203, 0x01010101, 10), INT32, 15),
        ("__dp4a", (0x01FF0203, 0x01010101, 10), UINT32, 271),
        ("__dp2a_lo", (0xFFFF0002, 0x04030201, 0), INT32, 0),
        ("__dp2a_hi", (0xFFFF0002, 0x04030201, 0), INT32, 2),
        ("__vadd2", (0xFFFF0001, 0x00010002), UINT32, 0x00000003),
        ("__vadd4", (0xFF010203, 0x01010101), UINT32, 0x00020304),
        ("__vaddss2", (0x7FFF8000, 0x00018000), UINT32, 0x7FFF8000),
        ("__vaddus2", (0xFFFF0001, 0x00010002), UINT32, 0xFFFF0003),
        ("__vsubus4", (0x01020304, 0x02010101), UINT32, 0x00010203),
        ("__vneg2", (0x00018000,), UINT32, 0xFFFF8000),
        ("__vabsss2", (0xFFFF8000,), UINT32, 0x00017FFF),
        ("__vmaxs2", (0xFFFF0002, 0x00010001), UINT32, 0x00010002),
        ("__vmaxu2", (0xFFFF0002, 0x00010001), UINT32, 0xFFFF0002),
        ("__vcmpgts4", (0x80010203, 0x00010102), UINT32, 0x0000FFFF),
        ("__vsetgtu4", (0x80010203, 0x00010102), UINT32, 0x01000101),
        ("__vseteq2", (0x00010002, 0x00010003), UINT32, 0x00010000),
        ("__vabsdiffu4", (0x01020304, 0x04030201), UINT32, 0x03010103),
        ("__vsadu4", (0x01020304, 0x04030201), UINT32, 8),
        ("__vavgu4", (0x00000001, 0x00000002), UINT32, 2),
        ("__viaddmax_s32", (0x7FFFFFFF, 1, 5), INT32, 5),
        ("__viaddmin_s32_relu", (-3, 1, 5), INT32, 0),
        ("__viaddmin_u32", (3, 1, 5), UINT32, 4),
        ("__vimax3_s16x2", (0xFFFF0001, 0x00020003, 0x00010002), UINT32, 0x00020003),
        ("__vimin_s16x2_relu", (0xFFFF0001, 0x00020003), UINT32, 0x00000001),
        ("__vimax_s32_relu", (-4, -7), INT32, 0),
    ],
)
def test_functions_of_several_integers(name: str, args: tuple[int, ...], type: Int, expected: int) -> None:
    assert INTRINSICS[name](args, type) == expected
    result = INT32 if type.signed and name != "__sad" else UINT32
    lanes = [np.array([a]) for a in args]
    assert intrinsic_lanes(name, lanes, type, result).tolist() == [expected]


KERNEL = """__global__ void k(int* a, int n) {
    int t = threadIdx.x, i = %s;
    if (i < n) a[i] = t;
}
void f(int* a, int n) { k<<<1, 64>>>(a, n); }
"""


@pytest.mark.parametrize(
    ("index", "verdict"),
    [
        ("__byte_perm(t, 0, 0x3201)", Verdict.RACE_FREE),  # two bytes swapped
        ("__byte_perm(t, 0, 0x3211)", Verdict.RACY),  # the lowest lost
        ("__viaddmax_s32(t, 5, 0)", Verdict.RACE_FREE),
        ("__viaddmax_s32(t, 5, 8)", Verdict.RACY),
        ("__vadd2(t, 0x00010001) & 0xffff", Verdict.RACE_FREE),
        ("__vmins2(t, 9)", Verdict.RACY),
        ("__funnelshift_l(0, t, 3)", Verdict.RACE_FREE),
        ("__funnelshift_r(t, 0, 1)", Verdict.RACY),
        ("__dp4a(t, 1, 0)", Verdict.RACE_FREE),
        ("__uhadd(t, 0)", Verdict.RACY),
    ],
)
def test_places_that_such_functions_choose(index: str, verdict: Verdict) -> None:
    [kernel] = check_text(Path("/x/a.cu"), KERNEL % index).kernels
    assert kernel.verdict is verdict
