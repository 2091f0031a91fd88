"""Tensor-core instructions: ``wmma``, ``mma``, ``ldmatrix``, ``stmatrix``, ``movmatrix``.

Source: PTX ISA 9.7.14 "Warp-level matrix instructions". All lanes of a warp execute them together, after they
have waited for one another. Loads and stores are logged by the lane that gets or gives an element: for
``ldmatrix`` that is not the lane that names the row, whose sixteen bytes are what costs bank wavefronts. What
``wmma`` costs in banks is not documented, so it is not counted.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, frozen

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.emulator.flatten import Untranslatable
from cuda_lsp.dynamic.emulator.fragments import (
    BITS,
    Fragment,
    fragment,
    matrices,
    product,
    quad_pair,
    registers_of,
    stacked,
)
from cuda_lsp.dynamic.ptx.module import Instruction

if TYPE_CHECKING:
    from cuda_lsp.dynamic.emulator.services import Services

Array = Any
Mask = Any
Address = Callable[[Emitter, str, str], str]

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_UNKNOWN = ("sp", "sp__ordered_metadata", "block_scale", "b8x16", "b6x16", "b4x16")
BASES = ("wmma", "mma", "ldmatrix", "stmatrix", "movmatrix")


@frozen(eq=False)
class Product:
    """Operands of one multiplication. ``bitwise``: of single bits."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    saturate: bool
    bitwise: str | None


# ------------------------------------------------------------------------------------- translation


def emit(e: Emitter, code: Instruction, number: int, space: str, address: Address) -> None:
    """Every instruction of this room."""
    words = code.modifiers
    if set(words) & set(_UNKNOWN):
        raise Untranslatable(code.opcode)
    if code.base in ("ldmatrix", "stmatrix"):
        _rows(e, code, number, space, address)
    elif code.base == "movmatrix":
        e.write(code.arguments[0], f"S.matrices.transpose({e.read(code.arguments[1], 'b32')})", "b32")
    elif "load" in words or "store" in words:
        _tile(e, code, number, space, address)
    else:
        _product(e, code)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.strip("{} ").split(",")]


def _shape(code: Instruction) -> tuple[int, int, int]:
    found = next((m for w in code.modifiers if (m := _SHAPE.fullmatch(w))), None)
    if found is None:
        raise Untranslatable(code.opcode)
    return int(found[1]), int(found[2]), int(found[3])


def _register(kind: str) -> str:
    """How registers of a fragment are read and written."""
    return kind if kind in ("f32", "f64", "s32") else "b32"


def _product(e: Emitter, code: Instruction) -> None:
    words = code.modifiers
    kinds = [w for w in words if w in BITS]
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    if len(kinds) != 4:
        raise Untranslatable(code.opcode)
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
        "(" + "".join(f"{e.read(r, _register(f.kind))}, " for r in _listed(text)[: f.registers]) + ")"
        for f, text in zip((*first, added), code.arguments[1:4], strict=True)
    ]
    values = e.fresh(f"S.matrices.multiply({made}, {', '.join(operands)})")
    for i, target in enumerate(_listed(code.arguments[0])):
        e.write(target, f"{values}[{i}]", _register(d))


def _tile(e: Emitter, code: Instruction, number: int, space: str, address: Address) -> None:
    """``wmma.load`` and ``wmma.store``."""
    words, loads = code.modifiers, "load" in code.modifiers
    kind = words[-1]
    if kind not in BITS:
        raise Untranslatable(code.opcode)
    role = next(w for w in words if w in ("a", "b", "c", "d"))
    held = fragment(role, kind, *_shape(code))
    by_row = "row" in words
    given, place = (code.arguments[0], code.arguments[1]) if loads else (code.arguments[1], code.arguments[0])
    stride = str(held.shape[1] if by_row else held.shape[0])
    stride = e.read(code.arguments[2] if len(code.arguments) > 2 else stride, "u32")
    where = f"{e.constant(held)}, {by_row}, {address(e, place, space)}, {stride}"
    registers = _listed(given)
    if loads:
        values = e.fresh(f"S.matrices.load({number}, {where}, {e.mask})")
        for i, target in enumerate(registers):
            e.write(target, f"{values}[{i % held.registers}]", _register(kind))
    else:
        values = "".join(f"{e.read(r, _register(kind))}, " for r in registers)
        e.lines.append(f"S.matrices.store({number}, {where}, ({values}), {e.mask})")


def _rows(e: Emitter, code: Instruction, number: int, space: str, address: Address) -> None:
    words = code.modifiers
    if "m8n8" not in words or words[-1] != "b16":
        raise Untranslatable(code.opcode)
    trans = "trans" in words
    if code.base == "ldmatrix":
        targets = _listed(code.arguments[0])
        where = address(e, code.arguments[1], space)
        values = e.fresh(f"S.matrices.load_rows({number}, {where}, {len(targets)}, {trans}, {e.mask})")
        for i, target in enumerate(targets):
            e.write(target, f"{values}[{i}]", "b32")
    else:
        values = "".join(f"{e.read(r, 'b32')}, " for r in _listed(code.arguments[1]))
        where = address(e, code.arguments[0], space)
        e.lines.append(f"S.matrices.store_rows({number}, {where}, ({values}), {trans}, {e.mask})")


# --------------------------------------------------------------------------------------- execution


@define(eq=False)
class Matrices:
    """Fragments in registers and in memory, of all warps of a launch at once."""

    services: Services

    def multiply(
        self, what: Product, a: Sequence[Array], b: Sequence[Array], c: Sequence[Array]
    ) -> tuple[Array, ...]:
        """The registers of a · b + c."""
        x, y, z = (
            matrices(held, stacked([self._warps(r) for r in registers]))
            for held, registers in ((what.a, a), (what.b, b), (what.c, c))
        )
        return self._lanes(registers_of(what.d, product(x, y, z, what.bitwise), what.saturate))

    def transpose(self, value: Array) -> Array:
        """``movmatrix``: an 8 × 8 matrix of 16-bit elements, two of a row in each lane."""
        rows = np.ascontiguousarray(self._warps(value)).view(np.uint16).reshape(-1, 8, 8)
        turned = np.ascontiguousarray(rows.transpose(0, 2, 1)).view(np.uint32)
        return turned.reshape(-1)[self.services.lanes.slot]

    def _warps(self, value: Array) -> Array:
        lanes = self.services.lanes
        return lanes.rows(np.broadcast_to(np.asarray(value), (lanes.count,)), 0)

    def _lanes(self, found: Array) -> tuple[Array, ...]:
        flat = found.reshape(-1, found.shape[2])[self.services.lanes.slot]
        return tuple(np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1]))

    # -------------------------------------------------------------------------------------- wmma

    def load(
        self, number: int, held: Fragment, by_row: bool, address: Array, stride: Array, mask: Mask
    ) -> list[Array]:
        """The registers of a fragment from memory. ``stride``: elements between rows (or columns)."""
        places = self._places(held, by_row, address, stride)
        bits, whole = BITS[held.kind], by_row == held.along_row
        found: list[Array] = []
        with self._no_banks():
            for r in range(held.registers):
                if whole or held.packed == 1:
                    kind = "u8" if bits == 64 else "u4"
                    value = self.services.load(number, places[r * held.packed], kind, mask)
                    found.append(value.view(_stored(held.kind)))
                    continue
                value = np.zeros(self.services.threads, np.uint32)
                for i in range(held.packed):
                    part = self.services.load(number, places[r * held.packed + i], f"u{bits // 8}", mask)
                    value |= part.astype(np.uint32) << np.uint32(bits * i)
                found.append(value)
        return found

    def store(
        self, number: int, held: Fragment, by_row: bool, address: Array, stride: Array,
        values: Sequence[Array], mask: Mask,
    ) -> None:  # fmt: skip
        """The registers of a fragment to memory."""
        places = self._places(held, by_row, address, stride)
        bits, whole = BITS[held.kind], by_row == held.along_row
        with self._no_banks():
            for r, value in enumerate(values[: held.registers]):
                value = np.asarray(value)
                if whole or held.packed == 1:
                    kind = _stored(held.kind)
                    self.services.store(number, places[r * held.packed], kind, mask, value.view(kind))
                    continue
                for i in range(held.packed):
                    part = (value >> np.uint32(bits * i)).astype(f"u{bits // 8}")
                    self.services.store(number, places[r * held.packed + i], f"u{bits // 8}", mask, part)

    def _places(self, held: Fragment, by_row: bool, address: Array, stride: Array) -> list[Array]:
        """Addresses of each lane's elements, one array an element."""
        lane = self.services.lanes.lane
        stride = np.asarray(stride).astype(np.int64)
        row, column = (held.row, held.column) if by_row else (held.column, held.row)
        return [
            address + (row[lane, i] * stride + column[lane, i]) * BITS[held.kind] // 8
            for i in range(row.shape[1])
        ]

    # ------------------------------------------------------------------------ ldmatrix, stmatrix

    def load_rows(self, number: int, address: Array, count: int, trans: bool, mask: Mask) -> list[Array]:
        """``ldmatrix``: 8 × 8 matrices of 16-bit elements; lane 8 j + r names row r of matrix j."""
        found: list[Array] = []
        with self._no_banks():
            for j in range(count):
                low, high = self._pieces(address, j, trans)
                if high is None:
                    found.append(self.services.load(number, low, "u4", mask))
                else:
                    parts = [self.services.load(number, at, "u2", mask) for at in (low, high)]
                    found.append(parts[0].astype(np.uint32) | parts[1].astype(np.uint32) << np.uint32(16))
        self._rows_cost(number, address, count, mask)
        return found

    def store_rows(
        self, number: int, address: Array, values: Sequence[Array], trans: bool, mask: Mask
    ) -> None:
        """``stmatrix``: the reverse."""
        with self._no_banks():
            for j, value in enumerate(values):
                low, high = self._pieces(address, j, trans)
                value = np.asarray(value)
                if high is None:
                    self.services.store(number, low, "u4", mask, value)
                else:
                    for at, shift in ((low, 0), (high, 16)):
                        part = (value >> np.uint32(shift)).astype(np.uint16)
                        self.services.store(number, at, "u2", mask, part)
        self._rows_cost(number, address, len(values), mask)

    def _pieces(self, address: Array, matrix: int, trans: bool) -> tuple[Array, Array | None]:
        """Where each lane's part of a matrix lies: four bytes, or two and two."""
        lanes = self.services.lanes
        rows, lane = self._warps(address), lanes.lane.astype(np.int64)
        group, inside = lane >> 2, lane & 3
        if not trans:
            return rows[lanes.warp, 8 * matrix + group] + 4 * inside, None
        low, high = (rows[lanes.warp, 8 * matrix + 2 * inside + i] + 2 * group for i in range(2))
        return low, high

    def _rows_cost(self, number: int, address: Array, count: int, mask: Mask) -> None:
        """The rows as the lanes name them, for bank counting."""
        costly = self.services.costly
        if costly is None or not self.services.watched[number]:
            return
        naming = self.services.lanes.lane < 8 * count
        address = np.broadcast_to(np.asarray(address), (self.services.threads,))
        costly.setdefault(number, []).append((address, naming if mask is None else naming & mask))

    @contextmanager
    def _no_banks(self) -> Generator[None]:
        costly, self.services.costly = self.services.costly, None
        try:
            yield
        finally:
            self.services.costly = costly


def _stored(kind: str) -> str:
    return {"f32": "f4", "f64": "f8", "s32": "i4"}.get(kind, "u4")
