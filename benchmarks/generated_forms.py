"""The expressions that generated kernels are made of, by the kind of value they give.

``{u32}`` in a form stands for an expression of that kind, ``{k}`` for a small constant, ``{c}`` for a
condition. Words are those of CUDA and of ``generated_prelude.h``; every form has one result whatever its
operands are.

``nil()`` is a zero that no compiler knows. It stands where ptxas 13.0 is known to compute something else than
PTX says: positions and lengths of bit fields that are constants beyond the word (``bfe.s32`` gives -1, ``bfi``
takes the length modulo 32), a negation that it draws into a saturating conversion (-INT_MIN becomes INT_MAX),
rounding up what was rounded down just before (it rounds the first value instead), and a three-input function
of two equal words and a constant (``lop3 (x, x, 31, 0xca) & 31`` becomes ``~x & 31``).
"""

# ruff: noqa: E501
from __future__ import annotations

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f32", "f64")
HALVES = ("h16", "b16", "h16x2", "b16x2")
KINDS = (*INTEGERS, *FLOATS, *HALVES)

CONSTANTS: dict[str, tuple[str, ...]] = {
    "i8": ("(i8)-128", "(i8)77"),
    "u8": ("(u8)255", "(u8)9"),
    "i16": ("(i16)-32768", "(i16)12345"),
    "u16": ("(u16)65535", "(u16)300"),
    "i32": ("-77", "0x7fffffff", "(-0x7fffffff - 1)", "12345"),
    "u32": ("0xffffffffu", "0x80000001u", "31u", "0x3715u"),
    "i64": ("-5ll", "0x7fffffffffffffffll", "0x123456789abcdefll"),
    "u64": ("0xffffffffffffffffull", "0x8000000000000000ull", "1000000007ull"),
    "f32": ("1.25f", "-0.375f", "1e-39f", "3e18f", "8388609.f"),
    "f64": ("1.25", "-0.1", "5e-324", "1e18", "2251799813685249.5"),
    "h16": ("__float2half_rn(1.25f)", "__float2half_rn(-6e-5f)"),
    "b16": ("__float2bfloat16_rn(-1.5f)", "__float2bfloat16_rn(1e30f)"),
    "h16x2": ("__floats2half2_rn(0.5f, -3.f)",),
    "b16x2": ("__floats2bfloat162_rn(-7.f, 0.25f)",),
}

_WHOLE = tuple(f"{op}<{{T}}>({{x}}, {{x}})" for op in (
    "add", "sub", "mul", "band", "bor", "bxor", "quo", "rem", "low", "high",
))  # fmt: skip
_WHOLE += (
    "neg<{T}>({x})", "inv<{T}>({x})", "shl<{T}>({x}, {u32})", "shr<{T}>({x}, {u32})",
    "choose<{T}>({c}, {x}, {x})", "({T}){i32}", "({T}){u64}", "({T}){i16}", "({T}){u8}", "({T}){c}",
)  # fmt: skip
_ROUNDINGS = ("rn", "rz", "rd", "ru")


def _each(*templates: str) -> tuple[str, ...]:
    """Every rounding mode of some forms."""
    return tuple(t.replace("@", mode) for t in templates for mode in _ROUNDINGS)


FORMS: dict[str, tuple[str, ...]] = {
    kind: tuple(form.replace("{T}", kind).replace("{x}", "{" + kind + "}") for form in _WHOLE)
    for kind in INTEGERS
}
FORMS["u8"] += ("sat_u8({i32} ^ nil())",)
FORMS["i8"] += ("sat_s8({i32} ^ nil())",)
FORMS["u16"] += ("sat_u16({i64} ^ nil())", "raw({h16})", "raw({b16})", "__half2ushort_rz({h16})")
FORMS["i16"] += ("__half2short_rn({h16})", "__half2short_rd({h16})")
FORMS["i32"] += (
    "__popc({u32})", "__clz({i32})", "__ffs({i32})", "__popcll({u64})", "__clzll({i64})", "__ffsll({i64})",
    "__mulhi({i32}, {i32})", "__mul24({i16}, {i16})", "__dp4a({i32}, {i32}, {i32})",
    "__dp2a_lo({i32}, {i32}, {i32})", "__hadd({i32}, {i32})", "__rhadd({i32}, {i32})", "bfe_s32({i32}, {k}, {k})",
    "bfe_s32({i32}, {u32} ^ nil(), {k})", "szext_clamp({i32}, {k})", "add_sat({i32}, {i32})", "sub_sat({i32}, {i32})",
    "mad_hi_sat({i32}, {i32}, {i32})", "slct_s32({i32}, {i32}, {f32})", "sat_s32({u64} ^ nil())",
    "__float_as_int(number({f32}))", "__double2hiint(number({f64}))", "__double2loint(number({f64}))",
    "min({i32}, {i32})", "max({i32}, {i32})",
    *_each("__float2int_@({f32})", "__double2int_@({f64})", "__half2int_@({h16})"),
)  # fmt: skip
FORMS["u32"] += (
    "__brev({u32})", "__umulhi({u32}, {u32})", "__umul24({u32}, {u32})", "__byte_perm({u32}, {u32}, {u32})",
    "__byte_perm({u32}, {u32}, 0x5140)", "__funnelshift_l({u32}, {u32}, {k})",
    "__funnelshift_r({u32}, {u32}, {u32})", "__funnelshift_lc({u32}, {u32}, {k})",
    "__funnelshift_rc({u32}, {u32}, {u32})", "__dp4a({u32}, {u32}, {u32})", "__dp2a_hi({u32}, {u32}, {u32})",
    "__sad({i32}, {i32}, {u32})", "__usad({u32}, {u32}, {u32})", "__uhadd({u32}, {u32})", "__urhadd({u32}, {u32})",
    "__vadd4({u32}, {u32})", "__vsub2({u32}, {u32})", "__vabsdiffu4({u32}, {u32})", "__vabsdiffs2({u32}, {u32})",
    "__vmaxs2({u32}, {u32})", "__vminu4({u32}, {u32})", "__vcmpgtu4({u32}, {u32})", "__vcmpeq2({u32}, {u32})",
    "__vavgu4({u32}, {u32})", "__vaddss2({u32}, {u32})", "__vsubus4({u32}, {u32})", "__vsadu4({u32}, {u32})",
    "bfe_u32({u32}, {k}, {k})", "bfe_u32({u32}, {u32} ^ nil(), {u32} ^ nil())", "bfi_b32({u32}, {u32}, {k}, {k})",
    "bfi_b32({u32}, {u32}, {u32} ^ nil(), {k})", "prmt_f4e({u32}, {u32}, {u32})", "prmt_b4e({u32}, {u32}, {u32})",
    "prmt_rc8({u32}, {u32}, {u32})", "prmt_ecl({u32}, {u32}, {u32})", "prmt_ecr({u32}, {u32}, {u32})",
    "prmt_rc16({u32}, {u32}, {u32})", "mad_hi_u32({u32}, {u32}, {u32})", "mul24_hi_mad({u32}, {u32}, {u32})",
    "lop3_96({u32} ^ nil(), {u32}, {u32} ^ nil())", "lop3_ca({u32} ^ nil(), {u32}, {u32} ^ nil())", "fns_b32({u32}, {u32}, {i8} % 4)",
    "bfind_u32({u32})", "bfind_s32({i32})", "bfind_s64({i64})", "bfind_amount({u32})", "bmsk_clamp({k}, {k})",
    "__float_as_uint(number({f32}))", "min({u32}, {u32})", "max({u32}, {u32})",
    *_each("__float2uint_@({f32})", "__double2uint_@({f64})", "__half2uint_@({h16})"),
)  # fmt: skip
FORMS["i64"] += (
    "__mul64hi({i64}, {i64})", "bfe_s64({i64}, {k}, {k})", "__double_as_longlong(number({f64}))",
    "(i64){i32} * {i32}", *_each("__float2ll_@({f32})", "__double2ll_@({f64})"),
)  # fmt: skip
FORMS["u64"] += (
    "__umul64hi({u64}, {u64})", "__brevll({u64})", "bfe_u64({u64}, {k}, {k})", "bfi_b64({u64}, {u64}, {k}, {k})",
    "add_carry({u64}, {u64})", "sub_borrow({u64}, {u64})", "(u64){u32} * {u32} + {u64}",
    *_each("__float2ull_@({f32})", "__double2ull_@({f64})"),
)  # fmt: skip
FORMS["f32"] = (
    "({f32} + {f32})", "({f32} - {f32})", "({f32} * {f32})", "({f32} / {f32})", "(-{f32})",
    "fmaf({f32}, {f32}, {f32})", "sqrtf(fabsf({f32}))", "fminf({f32}, {f32})", "fmaxf({f32}, {f32})",
    "floorf({f32})", "ceilf({f32})", "truncf({f32})", "rintf({f32})", "fabsf({f32})", "__saturatef({f32})",
    "copysignf({f32}, number({f32}))", "choose<f32>({c}, {f32}, {f32})", "__uint_as_float({u32} >> 2)",
    "(f32)(i32)({i32} ^ nil())", "(f32)(u8)({u8} ^ nil())", "(f32){f64}", "__half2float({h16})", "__bfloat162float({b16})",
    "__low2float({h16x2})", "add_sat({f32}, {f32})", "min_nan({f32}, {f32})", "max_nan({f32}, {f32})",
    "add_ftz({f32}, {f32})", "mul_ftz({f32}, {f32})", "set_f32({f32}, {f32})",
    *_each("__fadd_@({f32}, {f32})", "__fsub_@({f32}, {f32})", "__fmul_@({f32}, {f32})", "__fdiv_@({f32}, {f32})",
           "__frcp_@({f32})", "__fsqrt_@(fabsf({f32}))", "__fmaf_@({f32}, {f32}, {f32})", "__double2float_@({f64})",
           "__int2float_@({i32} ^ nil())", "__uint2float_@({u32} ^ nil())", "__ll2float_@({i64} ^ nil())", "__ull2float_@({u64} ^ nil())"),
)  # fmt: skip
FORMS["f64"] = (
    "({f64} + {f64})", "({f64} - {f64})", "({f64} * {f64})", "({f64} / {f64})", "(-{f64})",
    "fma({f64}, {f64}, {f64})", "sqrt(fabs({f64}))", "fmin({f64}, {f64})", "fmax({f64}, {f64})", "floor({f64})",
    "ceil({f64})", "trunc({f64})", "rint({f64})", "fabs({f64})", "copysign({f64}, number({f64}))",
    "choose<f64>({c}, {f64}, {f64})", "(f64)(i32)({i32} ^ nil())", "(f64){f32}", "__longlong_as_double({i64} >> 2)",
    *_each("__dadd_@({f64}, {f64})", "__dsub_@({f64}, {f64})", "__dmul_@({f64}, {f64})", "__ddiv_@({f64}, {f64})",
           "__drcp_@({f64})", "__dsqrt_@(fabs({f64}))", "__fma_@({f64}, {f64}, {f64})", "__ll2double_@({i64} ^ nil())",
           "__ull2double_@({u64} ^ nil())"),
)  # fmt: skip


def _narrow(kind: str, word: str) -> tuple[str, ...]:
    """The arithmetic of one 16-bit type; ``word``: how conversions name it."""
    x = "{" + kind + "}"
    forms = [f"{name}({x}, {x})" for name in (
        "__hadd", "__hsub", "__hmul", "__hadd_sat", "__hsub_sat", "__hmul_sat", "__hmin", "__hmax", "__hmin_nan",
        "__hmax_nan",
    )]  # fmt: skip
    forms += [f"{name}({x}, {x}, {x})" for name in ("__hfma", "__hfma_sat", "__hfma_relu")]
    forms += [f"{name}({x})" for name in ("__hneg", "__habs", "hfloor", "hceil", "htrunc", "hrint")]
    forms += [f"choose<{kind}>({{c}}, {x}, {x})"]
    return (
        *forms,
        *_each(
            f"__float2{word}_@({{f32}})",
            f"__int2{word}_@({{i32}} ^ nil())",
            f"__ull2{word}_@({{u64}} ^ nil())",
        ),
    )


FORMS["h16"] = (
    *_narrow("h16", "half"), "__double2half({f64})", "__low2half({h16x2})", "__high2half({h16x2})",
    *_each("__short2half_@({i16} ^ nil())", "__uint2half_@({u32} ^ nil())"),
)  # fmt: skip
FORMS["b16"] = (*_narrow("b16", "bfloat16"), "__double2bfloat16({f64})", "__low2bfloat16({b16x2})")
for _pair, _join in (
    ("h16x2", "__halves2half2({h16}, {h16})"),
    ("b16x2", "__halves2bfloat162({b16}, {b16})"),
):
    _x = "{" + _pair + "}"
    FORMS[_pair] = (
        *(f"{name}({_x}, {_x})" for name in (
            "__hadd2", "__hsub2", "__hmul2", "__hadd2_sat", "__hmin2", "__hmax2", "__hmin2_nan", "__hgt2", "__heq2",
            "__hltu2",
        )),
        *(f"{name}({_x}, {_x}, {_x})" for name in ("__hfma2", "__hfma2_sat", "__hfma2_relu")),
        f"__hneg2({_x})", f"__habs2({_x})", _join,
    )  # fmt: skip
FORMS["h16x2"] += (
    "__lows2half2({h16x2}, {h16x2})",
    "__lowhigh2highlow({h16x2})",
    "__floats2half2_rn({f32}, {f32})",
)
FORMS["b16x2"] += ("__floats2bfloat162_rn({f32}, {f32})",)
FORMS["c"] = (
    *(f"({{{kind}}} {op} {{{kind}}})" for kind in (*INTEGERS, *FLOATS) for op in ("<", "==", "!=", ">=")),
    *(f"{name}({{{kind}}}, {{{kind}}})" for kind in ("h16", "b16") for name in ("__hgt", "__hne", "__hleu")),
    "({c} && {c})", "({c} || {c})", "(!{c})", "({u32} & 4)", "__hbeq2({h16x2}, {h16x2})",
    "__hisnan({h16})", "({i8} > 0)", "({u16} % 3 == 0)",
)  # fmt: skip
