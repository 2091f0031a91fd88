"""Logged accesses in C: columns that ``engine.c`` appends to, screens and selects from. ``records.py`` is the
same log in NumPy, and says what its methods mean."""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any
from weakref import finalize

import numpy as np

from cuda_lsp.dynamic.emulator.accesses import Costly, WarpRows
from cuda_lsp.dynamic.emulator.entries import COLUMNS, WIDTHS, Entries, writes
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.native.structures import Log as Columns
from cuda_lsp.dynamic.emulator.native.structures import Record as Row
from cuda_lsp.dynamic.emulator.records import Record, elsewhere
from cuda_lsp.dynamic.runs import WARP

Array = Any

_ROW = np.dtype(Row)
_FEW_PATTERNS = 1 << 12  # of one instruction; more are found when they are looked for again
_FLOAT = 2  # of ``kind``


class Common:
    """What the logs of one launch share: warp clocks, by the number that records name them by, and the memory
    of logs that are gone, because the system takes longer to give it anew than a barrier interval takes."""

    def __init__(self, library: Any, memory: Memory, lanes: Lanes) -> None:
        self.library, self.memory, self.lanes = library, memory, lanes
        self.known: list[Array] = []
        self.spare: list[Columns] = []
        finalize(self, _freed, library, self.spare)

    def number(self, ticks: Array) -> int:
        """Of these clocks, ``(threads,)``, which are never changed in place."""
        if not self.known or self.known[-1] is not ticks:
            self.known.append(ticks)
        return len(self.known) - 1


class NativeLog:
    """A ``Log`` of accesses that C executed, and of those that Python adds. Raises MemoryError."""

    def __init__(self, common: Common) -> None:
        self.common, self.library, self.memory = common, common.library, common.memory
        self.columns = common.spare.pop() if common.spare else Columns()
        self.columns.records = self.columns.entries = 0
        finalize(self, common.spare.append, self.columns)

    def empty(self) -> NativeLog:
        return NativeLog(self.common)

    def rows(self) -> Array:
        """A copy of the records, ``(records,)`` of ``_ROW``."""
        count = self.columns.records
        if not count:
            return np.empty(0, _ROW)
        return np.frombuffer(ctypes.string_at(self.columns.record, count * _ROW.itemsize), _ROW)

    def entries_of_all(self) -> tuple[Array, Array]:
        """Thread and address of all entries, copies."""
        count = self.columns.entries
        if not count:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        threads = np.frombuffer(ctypes.string_at(self.columns.thread, 4 * count), np.int32)
        addresses = np.frombuffer(ctypes.string_at(self.columns.address, 4 * count), np.uint32)
        return threads, addresses.astype(np.int64)

    def add(self, record: Record) -> None:
        value, kind = None, 0
        if record.value is not None and record.size <= 8:
            given = np.asarray(record.value)
            kind = _FLOAT if given.dtype.kind == "f" else 0
            bits = given.view(f"u{given.dtype.itemsize}") if given.dtype.kind == "f" else given
            value = np.ascontiguousarray(bits.astype(np.int64))
        address = np.ascontiguousarray(record.address, np.int64)
        mask = None if record.mask is None else np.ascontiguousarray(record.mask)
        row = Row(
            record.number, record.size, record.mode, kind, value is not None,
            self.common.number(record.ticks), record.sequence, 0, 0,
        )  # fmt: skip
        low, high = self.memory.local
        self._done(self.library.log_access(
            ctypes.byref(self.columns), ctypes.byref(row), len(address), address.ctypes.data,
            None if mask is None else mask.ctypes.data, None if value is None else value.ctypes.data, low,
            high,
        ))  # fmt: skip

    def writes(self) -> bool:
        return bool(writes(self.rows()["mode"]).any())

    def since(self) -> int | None:
        return int(self.rows()["sequence"][0]) if self.columns.records else None

    def until(self) -> int | None:
        return int(self.rows()["sequence"][-1]) if self.columns.records else None

    def split(self, done: Array) -> tuple[NativeLog, NativeLog]:
        first, rest = self.empty(), self.empty()
        flags = np.ascontiguousarray(done)
        self._done(self.library.log_split(
            ctypes.byref(self.columns), flags.ctypes.data, ctypes.byref(first.columns),
            ctypes.byref(rest.columns),
        ))  # fmt: skip
        return first, rest

    def keep(self, kept: NativeLog, shared: bool) -> None:
        left_out = (0, 0) if shared else self.memory.shared
        self._done(self.library.log_keep(ctypes.byref(self.columns), ctypes.byref(kept.columns), *left_out))

    def visits(self) -> Array:
        rows, (threads, address) = self.rows(), self.entries_of_all()
        away = np.flatnonzero(elsewhere(threads, address, self.common.lanes, self.memory))
        at = np.searchsorted(rows["start"], away, "right") - 1
        return np.stack([threads[away].astype(np.int64), address[away], *(
            rows[name][at].astype(np.int64) for name in ("number", "sequence")
        )])  # fmt: skip

    def first(self, most: int) -> bool:
        rows = self.rows()
        before = np.cumsum(rows["count"]) - rows["count"]
        kept = int(np.searchsorted(before, most, "right"))
        if kept >= len(rows):
            return False
        self.columns.records, self.columns.entries = kept, int(rows["start"][kept])
        return True

    def screen(self, owner: Array, base: int, agents: Array, across: bool) -> Array:
        wide = np.ascontiguousarray(agents, np.int64)

        def screened(found: Array | None) -> int:
            place, room = (None, 0) if found is None else (found.ctypes.data, len(found))
            return self.library.log_screen(
                ctypes.byref(self.columns),
                owner.ctypes.data,
                wide.ctypes.data,
                base,
                WIDTHS,
                across,
                place,
                room,
            )

        return _filled(screened, 1)[0]

    def touches(self, suspected: Array) -> tuple[Array, Array]:
        rows, columns = self.rows(), self._selected(suspected)
        return columns[0], rows["number"][columns[2]].astype(np.int64)

    def entries(self, suspected: Array) -> Entries:
        rows, (word, thread, at, address, value) = self.rows(), self._selected(suspected)
        if not len(word):
            return Entries(*(np.empty(0, np.int64) for _ in COLUMNS))
        size, tick = rows["size"][at].astype(np.int64), rows["tick"][at]
        part = np.minimum(size, 4)
        covered = np.where(size >= 4, 15, ((1 << part) - 1) << (address & 3))
        clocks = np.empty(len(word), np.int32)
        for number in np.unique(tick).tolist():
            mine = tick == number
            clocks[mine] = self.common.known[number][thread[mine]]
        return Entries(
            word, thread, rows["number"][at].astype(np.int64), rows["mode"][at].astype(np.int64), covered,
            clocks, rows["sequence"][at], value, rows["known"][at] != 0, rows["kind"][at] == _FLOAT, size,
        )  # fmt: skip

    def _selected(self, suspected: Array) -> Array:
        """Word, thread, record, address and value of each access to a flagged word, ``(5, k)``."""

        def selected(found: Array | None) -> int:
            place, room = (None, 0) if found is None else (found.ctypes.data, len(found) // 5)
            return self.library.log_select(ctypes.byref(self.columns), suspected.ctypes.data, place, room)

        return _filled(selected, 5)

    def _done(self, fine: int) -> None:
        if not fine:
            raise MemoryError


class CostlyLog(Costly):
    """Accesses for bank counting that C or Python executed, in one order. ``logged``: how often, by
    number."""

    def __init__(self, common: Common, before: Costly, instructions: int) -> None:
        super().__init__(before.lanes, before.memory)
        self.log, self.logged = NativeLog(common), np.zeros(instructions, np.int32)
        self.rows = before.rows
        for number, times in before.often.items():
            self.logged[number] = times

    def add(self, number: int, address: Array, mask: Array | None) -> None:
        self.often[number] = int(self.logged[number])
        active = self.chosen(number, address, mask)
        self.logged[number] += 1
        if active is not None:
            self.log.add(Record(number, address, active, 0, 0, self.lanes.thread, 0))

    def executions(self) -> Iterator[tuple[int, list[WarpRows]]]:
        lanes = self.lanes
        warp, lane = np.ascontiguousarray(lanes.warp, np.int64), np.ascontiguousarray(lanes.lane, np.uint32)
        base = np.ascontiguousarray(self.memory.shared_base, np.int64)
        for number in sorted({*self.log.rows()["number"].tolist(), *self.rows}):
            room, found = _FEW_PATTERNS // 8, -1
            rows: Array = None
            active: Array = None
            counts: Array = None
            while found < 0:
                room *= 8
                rows, table = np.empty((room, WARP), np.int64), np.zeros(2 * room, np.int64)
                active, counts = np.empty(room, np.uint32), np.empty(room, np.int64)
                given = (warp, lane, base, rows, active, counts)
                found = self.log.library.log_patterns(
                    ctypes.byref(self.log.columns), number, self.memory.shared_stride,
                    *(a.ctypes.data for a in given), room, table.ctypes.data, len(table),
                )  # fmt: skip
            bits = active[:found, None] >> np.arange(WARP, dtype=np.uint32) & 1 == 1
            yield number, [*self.rows.get(number, ()), WarpRows(rows[:found], bits, counts[:found])]


def _freed(library: Any, spare: list[Columns]) -> None:
    for columns in spare:
        library.log_free(ctypes.byref(columns))
    spare.clear()


def _filled(ask: Callable[[Array | None], int], columns: int) -> Array:
    """What a function writes into as many columns as it then needs, ``(columns, k)``."""
    count = ask(None)
    found = np.empty(columns * count, np.int64)
    if count:
        ask(found)
    return found.reshape(columns, count)
