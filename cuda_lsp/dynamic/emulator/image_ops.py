"""Instructions on textures and surfaces: PTX instruction → calls of ``images.Images``.

Source: PTX ISA 9.7.10 "Texture instructions", 9.7.11 "Surface instructions". What has no image behind it that
we follow (cube maps, mipmaps, gathers) reads zeros and writes nothing; the outcome says so.
"""

from __future__ import annotations

import re

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.operands import listed, split_operands

_SIDES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_PLACE = re.compile(r"\[\s*(%[\w$.]+)\s*,\s*\{(.*)\}\s*\]")


def emit(e: Emitter, code: Instruction, number: int) -> None:
    """Every instruction on textures and surfaces."""
    words = code.modifiers
    shape = next((w for w in words if w in _SIDES), None)
    place = _PLACE.fullmatch(code.arguments[0 if code.base in ("sust", "sured") else 1].strip())
    plain = not {"grad", "e"} & set(words) and shape is not None and place is not None
    if code.base == "tex" and plain:
        return _fetch(e, code, number, shape or "", place)  # type: ignore[arg-type]
    if code.base in ("suld", "sust") and plain and "b" in words:
        return _surface(e, code, number, shape or "", place)  # type: ignore[arg-type]
    _unbound(e, code)


def _coordinates(e: Emitter, shape: str, place: re.Match[str], kind: str) -> str:
    """The handle, the layer and the coordinates as arguments of a call."""
    names = [n.strip() for n in split_operands(place[2])]
    layer = e.read(names.pop(0), "u32") if shape[0] == "a" else "None"
    given = "".join(f"{e.read(n, kind)}, " for n in names[: _SIDES[shape]])
    return f"{e.read(place[1], 'u64')}, {layer}, ({given})"


def _fetch(e: Emitter, code: Instruction, number: int, shape: str, place: re.Match[str]) -> None:
    kind, index = code.modifiers[-2:]
    values = e.fresh(f"S.images.fetch({number}, {_coordinates(e, shape, place, index)}, {kind!r}, {e.mask})")
    given = "b16" if kind == "f16" else "b32" if kind == "f16x2" else kind
    for k, target in enumerate(listed(code.arguments[0].partition("|")[0])):
        if target != "_":
            e.write(target, f"{values}[{k}]", given)


def _surface(e: Emitter, code: Instruction, number: int, shape: str, place: re.Match[str]) -> None:
    words = code.modifiers
    kind = next(w for w in words if w[0] == "b" and w[1:].isdigit())
    outside = words[-1]  # trap, clamp or zero
    where = f"{number}, {_coordinates(e, shape, place, 's32')}, {int(kind[1:]) // 8}, {outside!r}, {e.mask}"
    if code.base == "suld":
        targets = listed(code.arguments[0])
        values = e.fresh(f"S.images.read({where}, {len(targets)})")
        for k, target in enumerate(targets):
            e.write(target, f"{values}[{k}]", kind)
    else:
        values = "".join(f"{e.read(v, kind)}, " for v in listed(code.arguments[1]))
        e.lines.append(f"S.images.write({where}, ({values}))")


def _unbound(e: Emitter, code: Instruction) -> None:
    e.lines.append(f"S.unbound({code.base!r})")
    if code.base in ("sust", "sured"):
        return
    words = code.modifiers
    kind = words[-2] if code.base in ("tex", "tld4") else words[-1]
    if code.base == "suld":
        kind = next(w for w in words if w[0] == "b" and w[1:].isdigit())
    if kind == "f16" or kind == "f16x2":
        kind = "b16" if kind == "f16" else "b32"
    for target in listed(code.arguments[0].partition("|")[0]):
        e.write(target, e.read("0", kind), kind)
