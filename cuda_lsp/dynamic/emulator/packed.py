"""Halves, and several small numbers in one word: PTX instruction → NumPy expression.

Source: PTX ISA 9.7.4 "Half precision floating point", 9.7.1 (``s16x2``), 9.7.19 "Video instructions". Sums
and products of halves are computed in f32, which holds enough of them to round once; products with a sum in
f64.
"""

from __future__ import annotations

import re

from cuda_lsp.dynamic.emulator.conversions import refusal
from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.operands import PairOperand, parse_operand

HALVES = ("f16", "f16x2", "bf16", "bf16x2")
WORDS = ("s16x2", "u16x2")
_FUNCTIONS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "min": "fmin({0}, {1}, {nan})",
    "max": "fmax({0}, {1}, {nan})", "fma": "fused({0}, {1}, {2})", "neg": "-{0}", "abs": "np.abs({0})",
    "ex2": "approximate('ex2', {0})", "tanh": "approximate('tanh', {0})",
}  # fmt: skip
_PART = re.compile(r"\.[bh]\d+$")  # a byte or half of a register, by name
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}


def half(e: Emitter, code: Instruction) -> None:
    """Arithmetic on f16 and bf16, single or packed."""
    kind, words = code.modifiers[-1], set(code.modifiers)
    if code.base not in _FUNCTIONS or (words & {"xorsign", "ftz"} and code.base not in ("ex2", "tanh")):
        raise refusal(code)
    bits = "b32" if kind.endswith("x2") else "b16"
    args = [e.read(a, bits) for a in code.arguments[1:]]
    result = _FUNCTIONS[code.base].format(*(f"v[{k}]" for k in range(len(args))), nan="NaN" in words)
    if "sat" in words:
        result = f"saturate({result})"
    if "relu" in words:
        result = f"fmax({result}, 0, True)"
    e.write(code.arguments[0], f"half_{kind}(lambda *v: {result}, {', '.join(args)})", bits)


def small_integers(e: Emitter, code: Instruction) -> None:
    """``add``, ``min`` and ``max`` of two 16-bit integers in a word."""
    kind = code.modifiers[-1]
    function = {"add": "v[0] + v[1]", "min": "np.minimum(*v)", "max": "np.maximum(*v)"}.get(code.base)
    if function is None:
        raise refusal(code)
    if "relu" in code.modifiers:
        function = f"np.maximum({function}, 0)"
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:3])
    e.write(
        code.arguments[0], f"words_16(lambda *v: {function}, d_{kind[0].replace('s', 'i')}2, {args})", "b32"
    )


def pair_values(e: Emitter, code: Instruction, kind: str, first: int) -> list[tuple[str, str]]:
    """Low and high part of two packed operands, as f32."""
    half_kind = kind.removesuffix("x2")
    words = [e.fresh(e.read(a, "b32")) for a in code.arguments[first : first + 2]]
    return [
        (f"value_{half_kind}(part_16({words[0]}, {k}))", f"value_{half_kind}(part_16({words[1]}, {k}))")
        for k in range(2)
    ]


def joined(e: Emitter, low: str, high: str, result: str) -> str:
    """What ``set`` makes of two conditions: ones of a float type, or a mask of each half."""
    true = _ONE.get(result.removesuffix("x2"), 0xFFFF)
    return f"pack(d_u4, np.where({low}, d_u2.type({true}), z_u2), np.where({high}, d_u2.type({true}), z_u2))"


def two_predicates(code: Instruction) -> tuple[object, object]:
    """Where ``setp`` of packed halves puts its results."""
    target = parse_operand(code.arguments[0])
    if not isinstance(target, PairOperand):
        raise refusal(code)
    return target.first, target.second


def dot(e: Emitter, code: Instruction) -> None:
    """``dp4a`` and ``dp2a``."""
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    words = code.modifiers
    signed = (words[-2][0] == "s", words[-1][0] == "s")
    function = "dot4" if code.base == "dp4a" else f"dot2_{'hi' if 'hi' in words else 'lo'}"
    e.write(code.arguments[0], f"{function}({args}, {signed})", "b32")


def differences(e: Emitter, code: Instruction) -> None:
    """``vabsdiff2`` and ``vabsdiff4``: distances of the parts of two words, or their sum."""
    words = code.modifiers
    kinds = [w for w in words if w in ("u32", "s32")]
    add = words[-1] == "add"
    if len(kinds) != 3 or "sat" in words or any(map(_PART.search, code.arguments)):
        raise refusal(code)
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    signed = (kinds[1] == "s32", kinds[2] == "s32")
    bits = 8 if code.base.endswith("4") else 16
    e.write(code.arguments[0], f"distances({args}, {bits}, {signed}, {add})", "b32")
