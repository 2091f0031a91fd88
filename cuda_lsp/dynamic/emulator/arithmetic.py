"""Arithmetic, logic, comparison, conversion and moves: PTX instruction → NumPy expression.

Source: PTX ISA 9.7.1 to 9.7.9. One small function per group of opcodes, found in ``TABLE`` by base opcode;
each writes its result through the ``Emitter``. What a function does not know it refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.emitter import Emitter, numpy_name
from cuda_lsp.dynamic.emulator.flatten import Untranslatable
from cuda_lsp.dynamic.ptx import Instruction, split_operands, type_size
from cuda_lsp.dynamic.ptx_operands import IntegerOperand, PairOperand, VectorOperand, parse_operand

Emit = Callable[[Emitter, Instruction], None]

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
_UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_ROUNDED = {"rz", "rm", "rp"}


def _is_float(kind: str) -> bool:
    return kind[0] == "f" or kind.startswith("bf")


def _refuse(code: Instruction) -> Untranslatable:
    return Untranslatable(code.opcode)


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
    if kind in ("f16", "f16x2", "bf16", "bf16x2") and code.base in ("add", "sub", "mul", "min", "max"):
        return _half(e, code)
    x, y = _operands(e, code, kind, 2)
    if _is_float(kind):
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
    """The rounding mode when it is not to nearest; known for f32 only."""
    mode = next((w for w in code.modifiers if w in _ROUNDED), None)
    if mode and code.modifiers[-1] != "f32":
        raise _refuse(code)
    return mode


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


def _half(e: Emitter, code: Instruction) -> None:
    """f16 and bf16, single or packed: computed in f32, which holds every product and sum exactly enough."""
    kind, base = code.modifiers[-1], code.base
    function = {
        "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "min": "fmin({}, {})", "max": "fmax({}, {})",
        "fma": "fma({}, {}, {})", "neg": "-{}", "abs": "np.abs({})",
    }[base]  # fmt: skip
    bits = "b32" if kind.endswith("x2") else "b16"
    args = [e.read(a, bits) for a in code.arguments[1:]]
    style = ("bf16" if kind.startswith("bf") else "f16") + ("x2" if kind.endswith("x2") else "")
    e.write(
        code.arguments[0], f"half_{style}(lambda *v: {_spread(function, len(args))}, {', '.join(args)})", bits
    )


def _spread(template: str, count: int) -> str:
    return template.format(*(f"v[{k}]" for k in range(count)))


def _mul(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if _is_float(kind):
        return _binary(e, code)
    x, y = _operands(e, code, kind, 2)
    if "wide" in words:
        return e.write(code.arguments[0], f"mulwide({x}, {y})", _doubled(kind))
    e.write(code.arguments[0], f"mulhi({x}, {y})" if "hi" in words else f"{x} * {y}", kind)


def _doubled(kind: str) -> str:
    return f"{kind[0]}{type_size(kind) * 16}"


def _mad(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if _is_float(kind):
        return _fma(e, code)
    if "cc" in words or code.base == "madc":
        return _carry(e, code)
    if "sat" in words:
        raise _refuse(code)
    x, y = _operands(e, code, kind, 2)
    if "wide" in words:
        z = e.read(code.arguments[3], _doubled(kind))
        return e.write(code.arguments[0], f"mulwide({x}, {y}) + {z}", _doubled(kind))
    z = e.read(code.arguments[3], kind)
    e.write(code.arguments[0], f"{f'mulhi({x}, {y})' if 'hi' in words else f'{x} * {y}'} + {z}", kind)


def _fma(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    if kind not in ("f32", "f64"):
        return _half(e, code)
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
    if not _is_float(kind):
        return e.write(code.arguments[0], f"{'idiv' if code.base == 'div' else 'irem'}({x}, {y})", kind)
    if _ROUNDED & set(words):
        raise _refuse(code)
    e.write(code.arguments[0], _float_result(words, f"{x} / {y}"), kind)


def _unary(e: Emitter, code: Instruction) -> None:
    words, kind, base = code.modifiers, code.modifiers[-1], code.base
    if kind in ("f16", "f16x2", "bf16", "bf16x2"):
        return _half(e, code)
    (x,) = _operands(e, code, kind, 1)
    expression = {
        "neg": f"-{x}",
        "abs": f"np.abs({x})",
        "not": f"~{x}",
        "cnot": f"({x} == 0).astype({x}.dtype)",
    }[base]
    if base == "neg" and kind[0] == "u":
        expression = f"~{x} + {e.read('1', kind)}"
    e.write(code.arguments[0], _float_result(words, expression) if _is_float(kind) else expression, kind)


def _minmax(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    if kind in ("f16", "f16x2", "bf16", "bf16x2"):
        return _half(e, code)
    x, y = _operands(e, code, kind, 2)
    if _is_float(kind):
        expression = f"f{code.base}({x}, {y}, {'NaN' in code.modifiers})"
        return e.write(code.arguments[0], _float_result(code.modifiers, expression), kind)
    e.write(code.arguments[0], f"np.{code.base}imum({x}, {y})", kind)


def _sad(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, y, z = _operands(e, code, kind, 3)
    e.write(code.arguments[0], f"sad({x}, {y}, {z})", kind)


def _approximate(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    if kind not in ("f32", "f64"):
        raise _refuse(code)
    (x,) = _operands(e, code, kind, 1)
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
        raise _refuse(code)
    e.write(code.arguments[0], test, "pred")


# ------------------------------------------------------------------------------------------- bits


def _logic(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, y = _operands(e, code, kind, 2)
    e.write(code.arguments[0], f"{x} {_SYMBOLS[code.base]} {y}", kind)


def _shift(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, operand = e.read(code.arguments[1], kind), parse_operand(code.arguments[2])
    if isinstance(operand, IntegerOperand) and 0 <= operand.value < 8 * type_size(kind):
        sign = "<<" if code.base == "shl" else ">>"
        return e.write(code.arguments[0], f"({x} {sign} {e.read(operand, kind)})", kind)
    e.write(code.arguments[0], f"{code.base}({x}, {e.read(operand, 'u32')})", kind)


def _count(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x = e.read(code.arguments[1], kind)
    result = "b32" if code.base != "brev" else kind
    expression = f"{code.base}({x})"
    if "shiftamt" in code.modifiers:
        expression = f"clz_amount({expression}, {type_size(kind) * 8})"
    e.write(code.arguments[0], expression, result)


def _fns(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:])
    e.write(code.arguments[0], f"fns({args})", "b32")


def _bitfield(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    values = [e.read(a, kind) for a in code.arguments[1:-2]]
    fields = [e.read(a, "u32") for a in code.arguments[-2:]]
    e.write(code.arguments[0], f"{code.base}({', '.join([*values, *fields])})", kind)


def _prmt(e: Emitter, code: Instruction) -> None:
    if len(code.modifiers) > 2:
        raise _refuse(code)
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:])
    e.write(code.arguments[0], f"prmt({args})", "b32")


def _lop3(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    e.write(code.arguments[0], f"lop3({args}, {int(code.arguments[4], 0)})", "b32")


def _shf(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    e.write(code.arguments[0], f"shf({args}, {'l' in code.modifiers}, {'wrap' in code.modifiers})", "b32")


def _dp4a(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    words = code.modifiers
    signed = (words[1][0] == "s", words[2][0] == "s")
    e.write(code.arguments[0], f"dot4({args}, {signed})", "b32")


# ------------------------------------------------------------------------- comparison and selection


def _setp(e: Emitter, code: Instruction) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
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


def _comparison(word: str, x: str, y: str, kind: str, code: Instruction) -> str:
    if word in _COMPARE:
        ordered = f" & ~np.isnan({x}) & ~np.isnan({y})" if word == "ne" and _is_float(kind) else ""
        return f"({x} {_COMPARE[word]} {y}){ordered}"
    if word in _UNORDERED:
        return f"({x} {_UNORDERED[word]} {y}) | np.isnan({x}) | np.isnan({y})"
    if word in ("num", "nan"):
        either = f"(np.isnan({x}) | np.isnan({y}))"
        return either if word == "nan" else f"~{either}"
    raise _refuse(code)


def _set(e: Emitter, code: Instruction) -> None:
    words = list(code.modifiers)
    source, result = words[-1], words[-2]
    if len(words) > 4 and "ftz" not in words:
        raise _refuse(code)
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


# --------------------------------------------------------------------------- moves and conversions


def _mov(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    half = len(code.arguments) // 2
    if half > 1:  # the pieces of a vector argument
        for target, source in zip(code.arguments[:half], code.arguments[half:], strict=True):
            e.write(target, e.read(source, kind), kind)
        return
    target, source = code.arguments[0], code.arguments[1]
    if target.startswith("{"):
        return _unpack(e, target, source, kind)
    if source.startswith("{"):
        parts = split_operands(source[1:-1])
        each = f"b{type_size(kind) * 8 // len(parts)}"
        values = ", ".join(e.read(part, each) for part in parts)
        return e.write(target, f"pack(d_u{type_size(kind)}, {values})", f"b{type_size(kind) * 8}")
    e.write(target, e.read(source, kind), kind)


def _unpack(e: Emitter, target: str, source: str, kind: str) -> None:
    vector = parse_operand(target)
    assert isinstance(vector, VectorOperand)
    size = type_size(kind) // len(vector.elements)
    whole = e.fresh(e.read(source, f"b{type_size(kind) * 8}"))
    for k, element in enumerate(vector.elements):
        shift = e.constant_shift(whole, 8 * size * k, type_size(kind))
        e.write(element, f"({shift}).astype(d_u{size})", f"b{8 * size}")


def _cvt(e: Emitter, code: Instruction) -> None:
    words = code.modifiers
    if words[1] == "pack":
        raise _refuse(code)
    target, source = words[-2], words[-1]
    flags = set(words[1:-2])
    if target in ("f16x2", "bf16x2"):
        high, low = (e.read(a, source) for a in code.arguments[1:3])
        return e.write(code.arguments[0], f"to_{target}({low}, {high})", "b32")
    if target == "tf32" and source == "f32":
        mode = next((f for f in ("rna", "rn", "rz") if f in flags), None)
        if mode is None or flags - {mode, "relu"}:
            raise _refuse(code)
        x = e.read(code.arguments[1], "f32")
        x = f"fmax({x}, {e.read('0', 'f32')})" if "relu" in flags else x
        return e.write(code.arguments[0], f"to_tf32({x}, {mode!r})", "b32")
    if {target, source} & {"e4m3x2", "e5m2x2", "tf32"}:
        raise _refuse(code)
    raw = "b16" if source in ("f16", "bf16") else source
    x = e.read(code.arguments[1], raw)
    if source in ("f16", "bf16"):
        x = f"value_{source}({x})"
    if "ftz" in flags and source == "f32":
        x = f"flush({x})"
    e.write(
        code.arguments[0],
        _converted(x, target, source, flags, code),
        "b16" if target in ("f16", "bf16") else target,
    )


def _converted(x: str, target: str, source: str, flags: set[str], code: Instruction) -> str:
    integral = next((f for f in ("rni", "rzi", "rmi", "rpi") if f in flags), None)
    rounding = next((f for f in ("rn", "rz", "rm", "rp") if f in flags), "rn")
    if _is_float(source) and not _is_float(target):
        return f"to_integer({x}, {numpy_name(target)!r}, {integral or 'rzi'!r})"
    if not _is_float(source) and not _is_float(target):
        if "sat" in flags:
            return f"clamp_integer({x}, {numpy_name(target)!r})"
        return f"({x}).astype(d_{numpy_name(target)})"
    if integral:
        x = f"to_integral({x}, {integral!r})"
    if target == "bf16":
        if rounding != "rn":
            raise _refuse(code)
        return f"to_bf16(({x}).astype(d_f4))"
    if not _is_float(source) and rounding != "rn":
        raise _refuse(code)
    name = numpy_name(target)
    narrows = _is_float(source) and type_size(target) < max(
        type_size(source), 4 if source in ("f16", "bf16") else 0
    )
    result = (
        f"narrow({x}, {name!r}, {rounding!r})" if narrows and rounding != "rn" else f"({x}).astype(d_{name})"
    )
    if "sat" in flags:
        result = f"saturate({result})"
    if "ftz" in flags and target == "f32":
        result = f"flush({result})"
    return f"({result}).view(d_u2)" if target == "f16" else result


TABLE: Mapping[str, Emit] = {
    "add": _binary, "sub": _binary, "mul": _mul, "mad": _mad, "fma": _fma, "mul24": _mul24, "mad24": _mul24,
    "addc": _carry, "subc": _carry, "madc": _carry,
    "div": _div, "rem": _div, "neg": _unary, "abs": _unary, "not": _unary, "cnot": _unary, "min": _minmax,
    "max": _minmax, "sad": _sad, "sqrt": _approximate, "rcp": _approximate, "rsqrt": _approximate,
    "ex2": _approximate, "lg2": _approximate, "sin": _approximate, "cos": _approximate, "tanh": _approximate,
    "copysign": _copysign, "testp": _testp, "and": _logic, "or": _logic, "xor": _logic, "shl": _shift,
    "shr": _shift, "popc": _count, "clz": _count, "bfind": _count, "brev": _count, "bfe": _bitfield,
    "fns": _fns, "bfi": _bitfield, "prmt": _prmt, "lop3": _lop3, "shf": _shf, "dp4a": _dp4a,
    "setp": _setp, "set": _set,
    "selp": _selp, "slct": _slct, "mov": _mov, "cvt": _cvt,
}  # fmt: skip
