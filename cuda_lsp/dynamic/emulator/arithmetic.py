"""Arithmetic and comparison: PTX instruction → NumPy expression.

Source: PTX ISA 9.7.1 to 9.7.7. One small function per group of opcodes, found in ``TABLE`` (with those of
``bits.py``, ``conversions.py`` and ``packed.py``) by base opcode; each writes its result through the
``Emitter``. What a function does not know it refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator import bits, conversions, packed
from cuda_lsp.dynamic.emulator.conversions import is_float, refusal
from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.module import Instruction, type_size
from cuda_lsp.dynamic.ptx.operands import PairOperand, parse_operand

Emit = Callable[[Emitter, Instruction], None]

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", **bits.SYMBOLS}
_COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
_UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_ROUNDED = {"rz", "rm", "rp"}


def _float_result(words: tuple[str, ...], expression: str) -> str:
    if "ftz" in words:
        expression = f"flush({expression})"
    return f"saturate({expression})" if "sat" in words else expression


def _operands(e: Emitter, code: Instruction, kind: str, count: int) -> list[str]:
    """The source operands; ``.ftz`` flushes f32 inputs too."""
    values = [e.read(a, kind) for a in code.arguments[1 : 1 + count]]
    return [f"flush({v})" for v in values] if "ftz" in code.modifiers and kind == "f32" else values


# ------------------------------------------------------------------------------------- arithmetic


def _binary(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if kind in packed.HALVES:
        return packed.half(e, code)
    if kind in packed.WORDS:
        return packed.small_integers(e, code)
    x, y = _operands(e, code, kind, 2)
    if is_float(kind):
        expression = f"{x} {_SYMBOLS[code.base]} {y}"
        if mode := _directed(code):
            expression = f"directed({code.base!r}, {mode!r}, {x}, {y})"
        return e.write(code.arguments[0], _float_result(words, expression), kind)
    if "cc" in words:
        return _carry(e, code)
    if "sat" in words:
        wide = f"{x}.astype(d_i8) {_SYMBOLS[code.base]} {y}.astype(d_i8)"
        return e.write(code.arguments[0], f"clamp_integer({wide}, 'i4')", kind)
    e.write(code.arguments[0], f"{x} {_SYMBOLS[code.base]} {y}", kind)


def _directed(code: Instruction) -> str | None:
    """The rounding mode when it is not to nearest."""
    return next((w for w in code.modifiers if w in _ROUNDED), None)


def _carry(e: Emitter, code: Instruction) -> None:
    """Extended precision: the carry (or borrow) lives in the pseudo-register ``%cc``."""
    words, kind = code.modifiers, f"u{code.modifiers[-1][1:]}"
    values = [e.read(a, kind) for a in code.arguments[1:]]
    if code.base in ("mad", "madc"):
        product = f"mulhi({values[0]}, {values[1]})" if "hi" in words else f"{values[0]} * {values[1]}"
        values = [product, values[2]]
    given = e.read("%cc", "pred") if code.base in ("addc", "subc", "madc") else "np.False_"
    minus = code.base in ("sub", "subc")
    result = e.fresh(f"with_carry({', '.join(values)}, {given}, {minus})")
    e.write(code.arguments[0], f"{result}[0]", kind)
    if "cc" in words:
        e.write("%cc", f"{result}[1]", "pred")


def _mul(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if is_float(kind):
        return _binary(e, code)
    x, y = _operands(e, code, kind, 2)
    if "wide" in words:
        return e.write(code.arguments[0], f"mulwide({x}, {y})", _doubled(kind))
    e.write(code.arguments[0], f"mulhi({x}, {y})" if "hi" in words else f"{x} * {y}", kind)


def _doubled(kind: str) -> str:
    return f"{kind[0]}{type_size(kind) * 16}"


def _mad(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if is_float(kind):
        return _fma(e, code)
    if "cc" in words or code.base == "madc":
        return _carry(e, code)
    x, y = _operands(e, code, kind, 2)
    if "sat" in words:
        z = e.read(code.arguments[3], kind)
        return e.write(code.arguments[0], f"clamp_integer(mulhi({x}, {y}).astype(d_i8) + {z}, 'i4')", kind)
    if "wide" in words:
        z = e.read(code.arguments[3], _doubled(kind))
        return e.write(code.arguments[0], f"mulwide({x}, {y}) + {z}", _doubled(kind))
    z = e.read(code.arguments[3], kind)
    e.write(code.arguments[0], f"{f'mulhi({x}, {y})' if 'hi' in words else f'{x} * {y}'} + {z}", kind)


def _fma(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if kind not in ("f32", "f64"):
        return packed.half(e, code)
    x, y, z = _operands(e, code, kind, 3)
    mode = _directed(code)
    expression = f"directed('fma', {mode!r}, {x}, {y}, {z})" if mode else f"fma({x}, {y}, {z})"
    e.write(code.arguments[0], _float_result(words, expression), kind)


def _mul24(e: Emitter, code: Instruction) -> None:
    kind, high = code.modifiers[-1], "hi" in code.modifiers
    x, y = _operands(e, code, kind, 2)
    product = f"mul24({x}, {y}, {high})"
    if code.base == "mad24":
        product = f"{product} + {e.read(code.arguments[3], kind)}"
    e.write(code.arguments[0], product, kind)


def _div(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    x, y = _operands(e, code, kind, 2)
    if not is_float(kind):
        return e.write(code.arguments[0], f"{'idiv' if code.base == 'div' else 'irem'}({x}, {y})", kind)
    mode = _directed(code)
    expression = f"directed('div', {mode!r}, {x}, {y})" if mode else f"{x} / {y}"
    e.write(code.arguments[0], _float_result(words, expression), kind)


def _unary(e: Emitter, code: Instruction) -> None:
    words, kind, base = code.modifiers, code.modifiers[-1], code.base
    if kind in packed.HALVES:
        return packed.half(e, code)
    (x,) = _operands(e, code, kind, 1)
    expression = {
        "neg": f"-{x}",
        "abs": f"np.abs({x})",
        "not": f"~{x}",
        "cnot": f"({x} == 0).astype({x}.dtype)",
    }[base]
    if base == "neg" and kind[0] == "u":
        expression = f"~{x} + {e.read('1', kind)}"
    e.write(code.arguments[0], _float_result(words, expression) if is_float(kind) else expression, kind)


def _minmax(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    if kind in packed.HALVES:
        return packed.half(e, code)
    if kind in packed.WORDS:
        return packed.small_integers(e, code)
    if "xorsign" in code.modifiers or code.arguments[3:]:
        raise refusal(code)
    x, y = _operands(e, code, kind, 2)
    if is_float(kind):
        expression = f"f{code.base}({x}, {y}, {'NaN' in code.modifiers})"
        return e.write(code.arguments[0], _float_result(code.modifiers, expression), kind)
    expression = f"np.{code.base}imum({x}, {y})"
    if "relu" in code.modifiers:
        expression = f"np.maximum({expression}, 0)"
    e.write(code.arguments[0], expression, kind)


def _sad(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, y, z = _operands(e, code, kind, 3)
    e.write(code.arguments[0], f"sad({x}, {y}, {z})", kind)


def _approximate(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    if kind not in ("f32", "f64"):
        return packed.half(e, code)
    (x,) = _operands(e, code, kind, 1)
    if mode := _directed(code):
        expression = f"directed({code.base!r}, {mode!r}, {x})"
        return e.write(code.arguments[0], _float_result(code.modifiers, expression), kind)
    exact = {"sqrt": f"np.sqrt({x})", "rcp": f"{e.read('1', kind)} / {x}"}
    expression = exact.get(code.base, f"approximate({code.base!r}, {x})")
    e.write(code.arguments[0], _float_result(code.modifiers, expression), kind)


def _copysign(e: Emitter, code: Instruction) -> None:
    x, y = _operands(e, code, code.modifiers[-1], 2)
    e.write(code.arguments[0], f"np.copysign({y}, {x})", code.modifiers[-1])


def _testp(e: Emitter, code: Instruction) -> None:
    (x,) = _operands(e, code, code.modifiers[-1], 1)
    test = {"finite": f"np.isfinite({x})", "infinite": f"np.isinf({x})", "notanumber": f"np.isnan({x})",
            "number": f"~np.isnan({x})"}.get(code.modifiers[1])  # fmt: skip
    if test is None:
        raise refusal(code)
    e.write(code.arguments[0], test, "pred")


# ------------------------------------------------------------------------- comparison and selection


def _setp(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if kind in ("f16x2", "bf16x2"):
        return _setp_packed(e, code, kind)
    x, y = (
        _operands(e, code, kind, 2)
        if kind not in ("f16", "bf16")
        else [f"value_{kind}({e.read(a, 'b16')})" for a in code.arguments[1:3]]
    )
    result = e.fresh(_comparison(words[1], x, y, kind, code))
    joined = result
    boolean = words[2] if len(words) > 3 and words[2] in ("and", "or", "xor") else None
    target = parse_operand(code.arguments[0])
    second = target.second if isinstance(target, PairOperand) else None
    opposite = f"~{result}"
    if boolean:
        third = e.fresh(e.read(code.arguments[3], "pred"))
        joined = f"{result} {_SYMBOLS[boolean]} {third}"
        opposite = f"~{result} {_SYMBOLS[boolean]} {third}"
    e.write(target.first if isinstance(target, PairOperand) else target, joined, "pred")
    if second is not None:
        e.write(second, opposite, "pred")


def _setp_packed(e: Emitter, code: Instruction, kind: str) -> None:
    if len(code.modifiers) > 3 or code.arguments[3:]:
        raise refusal(code)
    for target, (x, y) in zip(packed.two_predicates(code), packed.pair_values(e, code, kind, 1), strict=True):
        e.write(target, _comparison(code.modifiers[1], x, y, "f16", code), "pred")  # type: ignore[arg-type]


def _comparison(word: str, x: str, y: str, kind: str, code: Instruction) -> str:
    if word in _COMPARE:
        ordered = f" & ~np.isnan({x}) & ~np.isnan({y})" if word == "ne" and is_float(kind) else ""
        return f"({x} {_COMPARE[word]} {y}){ordered}"
    if word in _UNORDERED:
        return f"({x} {_UNORDERED[word]} {y}) | np.isnan({x}) | np.isnan({y})"
    if word in ("num", "nan"):
        either = f"(np.isnan({x}) | np.isnan({y}))"
        return either if word == "nan" else f"~{either}"
    raise refusal(code)


def _set(e: Emitter, code: Instruction) -> None:
    words = list(code.modifiers)
    source, result = words[-1], words[-2]
    if len(words) > 4 and "ftz" not in words:
        raise refusal(code)
    if source in ("f16x2", "bf16x2"):
        low, high = (
            _comparison(words[1], x, y, "f16", code) for x, y in packed.pair_values(e, code, source, 1)
        )
        return e.write(code.arguments[0], packed.joined(e, low, high, result), "b32")
    if source in ("f16", "bf16"):
        x, y = (f"value_{source}({e.read(a, 'b16')})" for a in code.arguments[1:3])
    else:
        x, y = (e.read(a, source) for a in code.arguments[1:3])
    condition = _comparison(words[1], x, y, source, code)
    true = {"f32": "1", "f16": str(0x3C00), "bf16": str(0x3F80)}.get(result, "-1")
    stored = "b16" if result in ("f16", "bf16") else result
    e.write(
        code.arguments[0], f"np.where({condition}, {e.read(true, stored)}, {e.read('0', stored)})", stored
    )


def _selp(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, y = e.read(code.arguments[1], kind), e.read(code.arguments[2], kind)
    e.write(code.arguments[0], f"select({e.read(code.arguments[3], 'pred')}, {x}, {y})", kind)


def _slct(e: Emitter, code: Instruction) -> None:
    kind, third = code.modifiers[-2], code.modifiers[-1]
    x, y, z = (
        e.read(code.arguments[1], kind),
        e.read(code.arguments[2], kind),
        e.read(code.arguments[3], third),
    )
    e.write(code.arguments[0], f"np.where({z} >= 0, {x}, {y})", kind)


TABLE: Mapping[str, Emit] = {
    "add": _binary, "sub": _binary, "mul": _mul, "mad": _mad, "fma": _fma, "mul24": _mul24, "mad24": _mul24,
    "addc": _carry, "subc": _carry, "madc": _carry, "div": _div, "rem": _div, "neg": _unary, "abs": _unary,
    "not": _unary, "cnot": _unary, "min": _minmax, "max": _minmax, "sad": _sad, "sqrt": _approximate,
    "rcp": _approximate, "rsqrt": _approximate, "ex2": _approximate, "lg2": _approximate, "sin": _approximate,
    "cos": _approximate, "tanh": _approximate, "copysign": _copysign, "testp": _testp, "dp4a": packed.dot,
    "dp2a": packed.dot, "vabsdiff2": packed.differences, "vabsdiff4": packed.differences, "setp": _setp,
    "set": _set, "selp": _selp, "slct": _slct, **bits.TABLE, **conversions.TABLE,
}  # fmt: skip
