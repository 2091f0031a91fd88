"""Logged accesses of one launch, and which of them may race: the log in NumPy.

A log is *screened*: every write puts its thread's number on the words it touches; whoever finds another one
there is a suspect. ``native/log.py`` is the same log in C.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.entries import COLUMNS, WIDTHS, Entries, is_atomic, writes
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.memory import Memory

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


class Log(Protocol):
    """Accesses in the order of their execution."""

    def add(self, record: Record) -> None:
        """Arrays are kept, not copied: callers never change them in place."""
        ...

    def writes(self) -> bool:
        """Whether any access changes memory."""
        ...

    def since(self) -> int | None:
        """When the first of them was made; None: there is none."""
        ...

    def until(self) -> int | None:
        """When the last of them was made; None: there is none."""
        ...

    def split(self, done: Array) -> tuple[Log, Log]:
        """What the threads in ``done`` did, and what the others did."""
        ...

    def keep(self, kept: Any, shared: bool) -> None:
        """Append to ``kept`` (alike) the accesses outside shared memory, or to ``shared`` memory too, without
        what they read."""
        ...

    def visits(self) -> Array:
        """Accesses of threads to the shared memory of other blocks: rows of thread, address, instruction and
        time, ``(4, k)`` int64."""
        ...

    def first(self, most: int) -> bool:
        """Forget all but the first ones, with not many more than ``most`` accesses. Whether any was."""
        ...

    def screen(self, owner: Array, base: int, agents: Array, across: bool) -> Array:
        """The words, as often as an access to one is suspected, ``(k,)``.

        ``owner``: a name of each word, changed here; ``base``: names below it are of earlier screenings.
        ``agents``: of each thread: accesses of one agent do not race.
        """
        ...

    def touches(self, suspected: Array) -> tuple[Array, Array]:
        """Of each access to a word that is flagged the word, and the instruction."""
        ...

    def entries(self, suspected: Array) -> Entries:
        """All accesses to words that are flagged."""
        ...

    def empty(self) -> Log:
        """A new log of the same kind."""
        ...


@define(eq=False)
class Records:
    """A ``Log`` of one Python object an access."""

    memory: Memory
    lanes: Lanes
    records: list[Record] = field(factory=list[Record])
    _touched: list[tuple[Record, Array, Array]] | None = None

    def add(self, record: Record) -> None:
        """As ``Log`` says; so all that follow."""
        self.records.append(record)

    def empty(self) -> Records:
        return Records(self.memory, self.lanes)

    def writes(self) -> bool:
        return any(writes(r.mode) for r in self.records)

    def since(self) -> int | None:
        return self.records[0].sequence if self.records else None

    def until(self) -> int | None:
        return self.records[-1].sequence if self.records else None

    def split(self, done: Array) -> tuple[Records, Records]:
        first, rest = self.empty(), self.empty()
        for r in self.records:
            mask = np.ones(len(done), bool) if r.mask is None else r.mask
            for chosen, target in ((mask & done, first), (mask & ~done, rest)):
                if chosen.any():
                    target.add(
                        Record(r.number, r.address, chosen, r.size, r.mode, r.ticks, r.sequence, r.value)
                    )
        return first, rest

    def keep(self, kept: Records, shared: bool) -> None:
        low, high = self.memory.shared
        kept.records += [
            r if r.value is None or writes(r.mode) else _for_later(r)
            for r in self.records
            if shared or not (low <= int(r.address.flat[0]) < high)
        ]

    def visits(self) -> Array:
        rows: list[Array] = [np.empty((4, 0), np.int64)]
        for r in self.records:
            threads = self.lanes.thread_numbers if r.mask is None else np.flatnonzero(r.mask)
            away = threads[elsewhere(threads, r.address[threads], self.lanes, self.memory)]
            same = np.full(len(away), r.number), np.full(len(away), r.sequence)
            rows.append(np.stack([away, r.address[away], *same]))
        return np.concatenate(rows, axis=1)

    def first(self, most: int) -> bool:
        logged = 0
        for number, r in enumerate(self.records):
            if logged > most:
                del self.records[number:]
                return True
            logged += self.lanes.count if r.mask is None else int(np.count_nonzero(r.mask))
        return False

    def screen(self, owner: Array, base: int, agents: Array, across: bool) -> Array:
        touched = self._words_of_all()
        words = np.concatenate([w for _, w, _ in touched])
        names = (agents + (base + WIDTHS)).astype(np.int32)[np.concatenate([t for _, _, t in touched])]
        end = written = 0
        for r, mine, _ in touched:
            start, end = end, end + len(mine)
            if writes(r.mode):
                written = end
            if is_atomic(r.mode, across):
                names[start:end] = base + r.size.bit_length() - 1  # by width
        owner[words[:written]] = names[:written]
        there = owner[words]
        return words[(there != names) & (there >= base)]

    def touches(self, suspected: Array) -> tuple[Array, Array]:
        here = [(words[suspected[words]], r.number) for r, words, _ in self._words_of_all()]
        none = np.empty(0, np.int64)
        words = np.concatenate([none, *(words for words, _ in here)])
        return words, np.concatenate([none, *(np.full(len(words), number) for words, number in here)])

    def entries(self, suspected: Array) -> Entries:
        return _gathered(self._words_of_all(), suspected)

    def _words_of_all(self) -> list[tuple[Record, Array, Array]]:
        """Writes first."""
        if self._touched is None:
            records = sorted(self.records, key=lambda r: not writes(r.mode))
            self._touched = [(r, *words_of(r, self.lanes, self.memory)) for r in records]
        return self._touched


def words_of(r: Record, lanes: Lanes, memory: Memory) -> tuple[Array, Array]:
    """The words an access touches and by whom; accesses to local memory left out.

    Local memory is left out to save time only, so that it is enough to look at one address.
    """
    address, threads = r.address, lanes.thread_numbers
    if r.mask is not None:
        threads = np.flatnonzero(r.mask)
        address = address[threads]
    low, high = memory.local
    if len(address) and low <= address[0] < high:
        inside = (address < low) | (address >= high)
        address, threads = address[inside], threads[inside]
    words = address >> 2
    if r.size > 4:
        count = r.size // 4
        words = (words[:, None] + np.arange(count)).ravel()
        threads = np.repeat(threads, count)
    return words, threads


def elsewhere(threads: Array, address: Array, lanes: Lanes, memory: Memory) -> Array:
    """Whether these threads touch shared memory of other blocks than their own there, ``(k,)`` flags."""
    low, high = memory.shared
    block = (address - low) // memory.shared_stride
    return (address >= low) & (address < high) & (block != lanes.block[threads])


def _for_later(record: Record) -> Record:
    """What is kept of an access to the end of the launch: not what was read, which takes too much room."""
    r = record
    return Record(r.number, r.address, r.mask, r.size, r.mode, r.ticks, r.sequence)


def _gathered(touched: Iterable[tuple[Record, Array, Array]], suspected: Array) -> Entries:
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
        return Entries(*(np.empty(0, np.int64) for _ in COLUMNS))
    return Entries(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))
