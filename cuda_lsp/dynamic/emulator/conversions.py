"""Moves and conversions between types: PTX instruction → NumPy expression.

Source: PTX ISA 9.7.9 "mov", 9.7.9.21 "cvt". What a function does not know it refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.emitter import Emitter, numpy_name
from cuda_lsp.dynamic.ptx.flatten import Untranslatable
from cuda_lsp.dynamic.ptx.module import Instruction, split_operands, type_size
from cuda_lsp.dynamic.ptx.operands import VectorOperand, parse_operand

Emit = Callable[[Emitter, Instruction], None]

_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_HALVES = ("f16", "bf16")


def is_float(kind: str) -> bool:
    """Whether a PTX type is a floating-point one (``f32``, ``bf16x2``)."""
    return kind[0] == "f" or kind.startswith("bf")


def refusal(code: Instruction) -> Untranslatable:
    """What to raise for a form of an instruction that the emulator does not know: it names the opcode."""
    return Untranslatable(code.opcode)


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
        raise refusal(code)
    target, source = words[-2], words[-1]
    flags = set(words[1:-2])
    if target in ("f16x2", "bf16x2"):
        return _pair(e, code, target, source, flags)
    if target == "tf32" and source == "f32":
        mode = next((f for f in ("rna", "rn", "rz") if f in flags), None)
        if mode is None or flags - {mode, "relu"}:
            raise refusal(code)
        x = e.read(code.arguments[1], "f32")
        x = f"fmax({x}, {e.read('0', 'f32')})" if "relu" in flags else x
        return e.write(code.arguments[0], f"to_tf32({x}, {mode!r})", "b32")
    if {target, source} & {"e4m3x2", "e5m2x2", "tf32"} or "relu" in flags:
        raise refusal(code)
    x = e.read(code.arguments[1], "b16" if source in _HALVES else source)
    if source in _HALVES:
        x = f"value_{source}({x})"
    if "ftz" in flags and source == "f32":
        x = f"flush({x})"
    result = _converted(x, target, source, flags)
    e.write(code.arguments[0], result, "b16" if target in _HALVES else target)


def _pair(e: Emitter, code: Instruction, target: str, source: str, flags: set[str]) -> None:
    """Two numbers into one word, the second one low."""
    mode = next((f for f in ("rn", "rz") if f in flags), None)
    if source != "f32" or mode is None or flags - {mode, "relu"}:
        raise refusal(code)
    high, low = (e.read(a, source) for a in code.arguments[1:3])
    if "relu" in flags:
        high, low = (f"fmax({v}, {e.read('0', 'f32')}, True)" for v in (high, low))
    e.write(code.arguments[0], f"to_{target}({low}, {high}, {mode!r})", "b32")


def _converted(x: str, target: str, source: str, flags: set[str]) -> str:
    """The value ``x`` as bits of a half, or as a value of another type."""
    integral = next((f for f in _INTEGRAL if f in flags), None)
    rounding = next((f for f in _ROUNDINGS if f in flags), "rn")
    name = numpy_name(target)
    if is_float(source) and not is_float(target):
        return f"to_integer({x}, {name!r}, {integral or 'rzi'!r}, {source == 'f64'})"
    if not is_float(source) and not is_float(target):
        return f"clamp_integer({x}, {name!r})" if "sat" in flags else f"({x}).astype(d_{name})"
    if integral:
        x = f"to_integral({x}, {integral!r})"
    if not is_float(source):
        result = (
            f"from_integer({x}, {name!r}, {rounding!r})" if target != "bf16" else f"odd_from_integer({x})"
        )
    elif rounding != "rn" and target != "bf16":
        result = f"narrow({x}, {name!r}, {rounding!r})"
    elif target == "bf16":
        result = f"odd_single({x})" if source == "f64" else x
    else:
        result = f"({x}).astype(d_{name})"
    if "sat" in flags:
        result = f"saturate({result})"
    if target == "bf16":
        return f"to_bf16({result}, {rounding!r})"
    if "ftz" in flags and target == "f32":
        result = f"flush({result})"
    return f"({result}).view(d_u2)" if target == "f16" else result


TABLE: Mapping[str, Emit] = {"mov": _mov, "cvt": _cvt}
