"""Fragments in registers and in memory: ``wmma``, ``mma``, ``ldmatrix``, ``stmatrix``, ``movmatrix`` at work.

Source: PTX ISA 9.7.14 "Warp-level matrix instructions". Loads and stores are logged by the lane that gets or
gives an element: for ``ldmatrix`` that is not the lane that names the row, whose sixteen bytes are what costs
bank wavefronts. What ``wmma`` costs in banks is not documented, so it is not counted.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define

from cuda_lsp.dynamic.emulator.accesses import Accesses
from cuda_lsp.dynamic.emulator.fragments import (
    Fragment,
    Product,
    matrices,
    product,
    registers_of,
    stacked,
)
from cuda_lsp.dynamic.ptx.module import ELEMENT_BITS

Array = Any
Mask = Any


@define(eq=False)
class Matrices:
    """Fragments in registers and in memory, of all warps of a launch at once."""

    accesses: Accesses

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
        return turned.reshape(-1)[self.accesses.lanes.slot]

    def _warps(self, value: Array) -> Array:
        lanes = self.accesses.lanes
        return lanes.rows(np.broadcast_to(np.asarray(value), (lanes.count,)), 0)

    def _lanes(self, found: Array) -> tuple[Array, ...]:
        flat = found.reshape(-1, found.shape[2])[self.accesses.lanes.slot]
        return tuple(np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1]))

    # -------------------------------------------------------------------------------------- wmma

    def load(
        self, number: int, held: Fragment, by_row: bool, address: Array, stride: Array, mask: Mask
    ) -> list[Array]:
        """The registers of a fragment from memory. ``stride``: elements between rows (or columns)."""
        places = self._places(held, by_row, address, stride)
        bits, whole = ELEMENT_BITS[held.kind], by_row == held.along_row
        found: list[Array] = []
        with self._no_banks():
            for r in range(held.registers):
                if whole or held.packed == 1:
                    kind = "u8" if bits == 64 else "u4"
                    value = self.accesses.load(number, places[r * held.packed], kind, mask)
                    found.append(value.view(_stored(held.kind)))
                    continue
                value = np.zeros(self.accesses.threads, np.uint32)
                for i in range(held.packed):
                    part = self.accesses.load(number, places[r * held.packed + i], f"u{bits // 8}", mask)
                    value |= part.astype(np.uint32) << np.uint32(bits * i)
                found.append(value)
        return found

    def store(
        self, number: int, held: Fragment, by_row: bool, address: Array, stride: Array,
        values: Sequence[Array], mask: Mask,
    ) -> None:  # fmt: skip
        """The registers of a fragment to memory."""
        places = self._places(held, by_row, address, stride)
        bits, whole = ELEMENT_BITS[held.kind], by_row == held.along_row
        with self._no_banks():
            for r, value in enumerate(values[: held.registers]):
                value = np.asarray(value)
                if whole or held.packed == 1:
                    kind = _stored(held.kind)
                    self.accesses.store(number, places[r * held.packed], kind, mask, value.view(kind))
                    continue
                for i in range(held.packed):
                    part = (value >> np.uint32(bits * i)).astype(f"u{bits // 8}")
                    self.accesses.store(number, places[r * held.packed + i], f"u{bits // 8}", mask, part)

    def _places(self, held: Fragment, by_row: bool, address: Array, stride: Array) -> list[Array]:
        """Addresses of each lane's elements, one array an element."""
        lane = self.accesses.lanes.lane
        stride = np.asarray(stride).astype(np.int64)
        row, column = (held.row, held.column) if by_row else (held.column, held.row)
        return [
            address + (row[lane, i] * stride + column[lane, i]) * ELEMENT_BITS[held.kind] // 8
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
                    found.append(self.accesses.load(number, low, "u4", mask))
                else:
                    parts = [self.accesses.load(number, at, "u2", mask) for at in (low, high)]
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
                    self.accesses.store(number, low, "u4", mask, value)
                else:
                    for at, shift in ((low, 0), (high, 16)):
                        part = (value >> np.uint32(shift)).astype(np.uint16)
                        self.accesses.store(number, at, "u2", mask, part)
        self._rows_cost(number, address, len(values), mask)

    def _pieces(self, address: Array, matrix: int, trans: bool) -> tuple[Array, Array | None]:
        """Where each lane's part of a matrix lies: four bytes, or two and two."""
        lanes = self.accesses.lanes
        rows, lane = self._warps(address), lanes.lane.astype(np.int64)
        group, inside = lane >> 2, lane & 3
        if not trans:
            return rows[lanes.warp, 8 * matrix + group] + 4 * inside, None
        low, high = (rows[lanes.warp, 8 * matrix + 2 * inside + i] + 2 * group for i in range(2))
        return low, high

    def _rows_cost(self, number: int, address: Array, count: int, mask: Mask) -> None:
        """The rows as the lanes name them, for bank counting."""
        costly = self.accesses.costly
        if costly is None or not self.accesses.watched[number]:
            return
        naming = self.accesses.lanes.lane < 8 * count
        address = np.broadcast_to(np.asarray(address), (self.accesses.threads,))
        costly.add(number, address, naming if mask is None else naming & mask)

    @contextmanager
    def _no_banks(self) -> Generator[None]:
        costly, self.accesses.costly = self.accesses.costly, None
        try:
            yield
        finally:
            self.accesses.costly = costly


def _stored(kind: str) -> str:
    return {"f32": "f4", "f64": "f8", "s32": "i4"}.get(kind, "u4")
