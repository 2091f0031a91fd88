"""Logic, shifts, bit fields and bytes: PTX instruction → NumPy expression.

Source: PTX ISA 9.7.1 "Integer arithmetic", 9.7.8 "Logic and shift", 9.7.9.7 "prmt". What a function does
not know it refuses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.module import Instruction, type_size
from cuda_lsp.dynamic.ptx.operands import IntegerOperand, parse_operand

Emit = Callable[[Emitter, Instruction], None]

SYMBOLS = {"and": "&", "or": "|", "xor": "^"}


def _logic(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, y = (e.read(a, kind) for a in code.arguments[1:3])
    e.write(code.arguments[0], f"{x} {SYMBOLS[code.base]} {y}", kind)


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
    a, b, selector = (e.read(x, "b32") for x in code.arguments[1:4])
    if len(code.modifiers) > 2:
        selector = f"byte_order({code.modifiers[2]!r}, {selector})"
    e.write(code.arguments[0], f"prmt({a}, {b}, {selector})", "b32")


def _lop3(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    e.write(code.arguments[0], f"lop3({args}, {int(code.arguments[4], 0)})", "b32")


def _shf(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "b32") for a in code.arguments[1:4])
    e.write(code.arguments[0], f"shf({args}, {'l' in code.modifiers}, {'wrap' in code.modifiers})", "b32")


def _bmsk(e: Emitter, code: Instruction) -> None:
    args = ", ".join(e.read(a, "u32") for a in code.arguments[1:])
    e.write(code.arguments[0], f"bmsk({args}, {'wrap' in code.modifiers})", "b32")


def _szext(e: Emitter, code: Instruction) -> None:
    kind = code.modifiers[-1]
    x, count = e.read(code.arguments[1], kind), e.read(code.arguments[2], "u32")
    e.write(code.arguments[0], f"szext({x}, {count}, {'wrap' in code.modifiers})", kind)


TABLE: Mapping[str, Emit] = {
    "and": _logic, "or": _logic, "xor": _logic, "shl": _shift, "shr": _shift, "popc": _count, "clz": _count,
    "bfind": _count, "brev": _count, "bfe": _bitfield, "fns": _fns, "bfi": _bitfield, "prmt": _prmt,
    "lop3": _lop3, "shf": _shf, "bmsk": _bmsk, "szext": _szext,
}  # fmt: skip
