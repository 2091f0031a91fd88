"""Tensor-core instructions: PTX instruction → calls of ``matrices.Matrices``.

Source: PTX ISA 9.7.14 "Warp-level matrix instructions". All lanes of a warp execute them together, after they
have waited for one another.
"""

from __future__ import annotations

import re

from cuda_lsp.dynamic.emulator.addresses import address, space_of
from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.emulator.fragments import Product, fragment, quad_pair
from cuda_lsp.dynamic.ptx.flatten import UnknownInstruction
from cuda_lsp.dynamic.ptx.module import ELEMENT_BITS, Instruction
from cuda_lsp.dynamic.ptx.operands import listed

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_UNKNOWN = ("sp", "sp__ordered_metadata", "block_scale", "b8x16", "b6x16", "b4x16")


def emit(e: Emitter, code: Instruction, number: int) -> None:
    """Every instruction of this room."""
    words = code.modifiers
    if set(words) & set(_UNKNOWN):
        raise UnknownInstruction(code.opcode)
    if code.base in ("ldmatrix", "stmatrix"):
        _rows(e, code, number)
    elif code.base == "movmatrix":
        e.write(code.arguments[0], f"S.matrices.transpose({e.read(code.arguments[1], 'b32')})", "b32")
    elif "load" in words or "store" in words:
        _tile(e, code, number)
    else:
        _product(e, code)


def _shape(code: Instruction) -> tuple[int, int, int]:
    found = next((m for w in code.modifiers if (m := _SHAPE.fullmatch(w))), None)
    if found is None:
        raise UnknownInstruction(code.opcode)
    return int(found[1]), int(found[2]), int(found[3])


def _register(kind: str) -> str:
    """How registers of a fragment are read and written."""
    return kind if kind in ("f32", "f64", "s32") else "b32"


def _product(e: Emitter, code: Instruction) -> None:
    words = code.modifiers
    kinds = [w for w in words if w in ELEMENT_BITS]
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    if len(kinds) != 4:
        raise UnknownInstruction(code.opcode)
    (m, n, k), (d, a, b, c) = _shape(code), kinds
    if (m, n, k) == (8, 8, 4) and a == "f16":
        rows = [w for w in words if w in ("row", "col")]
        first = quad_pair("a", a, rows[0] == "row"), quad_pair("b", b, rows[1] == "col")
        added, result = quad_pair("c", c, True), quad_pair("d", d, True)
    else:
        first = fragment("a", a, m, n, k), fragment("b", b, m, n, k)
        added, result = fragment("c", c, m, n, k), fragment("d", d, m, n, k)
    bitwise = next((w for w in words if w in ("xor", "and")), None)
    made = e.constant(Product(*first, added, result, "satfinite" in words, bitwise))
    operands = [
        "(" + "".join(f"{e.read(r, _register(f.kind))}, " for r in listed(text)[: f.registers]) + ")"
        for f, text in zip((*first, added), code.arguments[1:4], strict=True)
    ]
    values = e.fresh(f"S.matrices.multiply({made}, {', '.join(operands)})")
    for i, target in enumerate(listed(code.arguments[0])):
        e.write(target, f"{values}[{i}]", _register(d))


def _tile(e: Emitter, code: Instruction, number: int) -> None:
    """``wmma.load`` and ``wmma.store``."""
    words, loads = code.modifiers, "load" in code.modifiers
    kind = words[-1]
    if kind not in ELEMENT_BITS:
        raise UnknownInstruction(code.opcode)
    role = next(w for w in words if w in ("a", "b", "c", "d"))
    held = fragment(role, kind, *_shape(code))
    by_row = "row" in words
    given, place = (code.arguments[0], code.arguments[1]) if loads else (code.arguments[1], code.arguments[0])
    stride = str(held.shape[1] if by_row else held.shape[0])
    stride = e.read(code.arguments[2] if len(code.arguments) > 2 else stride, "u32")
    where = f"{e.constant(held)}, {by_row}, {address(e, place, space_of(code))}, {stride}"
    registers = listed(given)
    if loads:
        values = e.fresh(f"S.matrices.load({number}, {where}, {e.mask})")
        for i, target in enumerate(registers):
            e.write(target, f"{values}[{i % held.registers}]", _register(kind))
    else:
        values = "".join(f"{e.read(r, _register(kind))}, " for r in registers)
        e.lines.append(f"S.matrices.store({number}, {where}, ({values}), {e.mask})")


def _rows(e: Emitter, code: Instruction, number: int) -> None:
    words = code.modifiers
    if "m8n8" not in words or words[-1] != "b16":
        raise UnknownInstruction(code.opcode)
    trans = "trans" in words
    if code.base == "ldmatrix":
        targets = listed(code.arguments[0])
        where = address(e, code.arguments[1], space_of(code))
        values = e.fresh(f"S.matrices.load_rows({number}, {where}, {len(targets)}, {trans}, {e.mask})")
        for i, target in enumerate(targets):
            e.write(target, f"{values}[{i}]", "b32")
    else:
        values = "".join(f"{e.read(r, 'b32')}, " for r in listed(code.arguments[1]))
        where = address(e, code.arguments[0], space_of(code))
        e.lines.append(f"S.matrices.store_rows({number}, {where}, ({values}), {trans}, {e.mask})")
