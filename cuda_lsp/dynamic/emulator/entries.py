"""Accessed words as columns, as the race detector compares them, and the modes of accesses."""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define

Array = Any


READ, WRITE, ATOMIC, BLOCK_ATOMIC, ATOMIC_LOAD, BLOCK_ATOMIC_LOAD = range(6)
WIDTHS = 5  # of atomics: 1, 2, 4, 8, 16 bytes


def writes(mode: Any) -> Any:
    """Whether accesses of a mode change memory."""
    return (mode >= WRITE) & (mode <= BLOCK_ATOMIC)


def is_atomic(mode: Any, across: bool) -> Any:
    """Atomic enough: one of block scope is not between blocks."""
    wide = (mode == ATOMIC) | (mode == ATOMIC_LOAD)
    return wide | (((mode == BLOCK_ATOMIC) | (mode == BLOCK_ATOMIC_LOAD)) & (not across))


@define(eq=False)
class Entries:
    """Accessed words, one row each; all ``(k,)``. ``bytes``: which of the four."""

    word: Array
    thread: Array
    number: Array
    mode: Array
    bytes: Array
    tick: Array
    sequence: Array
    value: Array
    known: Array  # whether ``value`` is what was stored or loaded
    real: Array  # whether it is of a floating-point number
    size: Array  # of the whole access

    def __getitem__(self, index: Array) -> Entries:
        return Entries(*(getattr(self, name)[index] for name in COLUMNS))

    def __len__(self) -> int:
        return len(self.word)


COLUMNS = (
    "word", "thread", "number", "mode", "bytes", "tick", "sequence", "value", "known", "real", "size",
)  # fmt: skip


def shown(entries: Entries, row: int) -> str | None:
    """What an access read or wrote, as C writes it: large unsigned numbers, which may be negative ones, in
    hexadecimal."""
    if not entries.known[row]:
        return None
    bits, size = int(entries.value[row]), int(entries.size[row])
    if entries.real[row]:
        kind = {2: "f2", 4: "f4", 8: "f8"}[size]
        return f"{np.array([bits & (1 << 8 * size) - 1], f'u{size}').view(kind)[0]:.9g}"
    return str(bits) if 0 <= bits < 1 << 8 * size - 1 else hex(bits & (1 << 8 * size) - 1)
