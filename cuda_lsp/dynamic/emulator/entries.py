"""Logged accesses of one launch, and the words that they touched as columns: what the detector judges."""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import define

Array = Any


@define(eq=False)  # made for every access: frozen ones take three times as long to make
class Record:
    """One executed access of all lanes. ``mask`` None: all. ``ticks``: warp clock of each lane then."""

    number: int
    address: Array
    mask: Array | None
    size: int
    mode: int
    ticks: Array
    sequence: int
    value: Array | None = None


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
        return Entries(*(getattr(self, name)[index] for name in _COLUMNS))

    def __len__(self) -> int:
        return len(self.word)


_COLUMNS = (
    "word", "thread", "number", "mode", "bytes", "tick", "sequence", "value", "known", "real", "size",
)  # fmt: skip


def for_later(record: Record) -> Record:
    """What is kept of an access to the end of the launch: not what was read, which takes too much room."""
    r = record
    return Record(r.number, r.address, r.mask, r.size, r.mode, r.ticks, r.sequence)


def gathered(touched: Iterable[tuple[Record, Array, Array]], suspected: Array) -> Entries:
    """All accesses to suspected words."""
    columns: list[tuple[Array, ...]] = []
    for r, words, threads in touched:
        chosen = np.flatnonzero(suspected[words])
        if not len(chosen):
            continue
        word, thread = words[chosen], threads[chosen]
        count = len(chosen)
        if r.size >= 4:
            covered = np.full(count, 15)
        else:
            covered = ((1 << r.size) - 1) << (r.address[thread] & 3)
        known = r.value is not None and r.size <= 8
        value = np.asarray(r.value)[thread] if known and r.value is not None else np.zeros(count)
        bits = value.view(f"u{value.dtype.itemsize}") if value.dtype.kind == "f" else value
        columns.append((
            word, thread, np.full(count, r.number), np.full(count, r.mode), covered, r.ticks[thread],
            np.full(count, r.sequence), bits.astype(np.int64), np.full(count, known),
            np.full(count, value.dtype.kind == "f"), np.full(count, r.size),
        ))  # fmt: skip
    if not columns:
        return Entries(*(np.empty(0, np.int64) for _ in _COLUMNS))
    return Entries(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


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
