"""Races among logged accesses, by happens-before and not by luck of the schedule.

Within a block two accesses of one barrier interval are unordered unless warp synchronisation or a partial
barrier lies between. The log of an interval is *screened* when the interval ends: every write puts its
thread's number on the words it touches; whoever finds another number there is a suspect. Without suspects
nothing else happens, so race-free kernels cost a few array operations per access. Suspected words are
then examined pair by pair. Blocks are compared in the same way once the launch is over. Of a launch that did
not end in time not all is judged, and this is said (``left_out``).
Definitions: ``docs/semantics.md``.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.entries import (
    ATOMIC,
    ATOMIC_LOAD,
    READ,
    WIDTHS,
    WRITE,
    Entries,
    is_atomic,
    shown,
    writes,
)
from cuda_lsp.dynamic.emulator.lanes import Lanes, distinct
from cuda_lsp.dynamic.emulator.lifetimes import Outlived, outlived
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.order import Order
from cuda_lsp.dynamic.emulator.records import Log, Record, Records, words_of
from cuda_lsp.model import Mode

Array = Any

_MODES = (Mode.READ, Mode.WRITE, Mode.ATOMIC, Mode.ATOMIC, Mode.ATOMIC_READ, Mode.ATOMIC_READ)
ATOMIC_LOADS = ATOMIC_LOAD - ATOMIC
"""From the mode of an atomic update to that of an atomic load of the same scope, which writes nothing."""

_PER_SITE = 40  # threads of one site and clock kept per suspected word; more than a warp has
_MANY = 20_000  # entries beyond which fewer are kept
_PATIENCE = 64  # looks that show no new pair, before …
_ONE_IN = 32  # … only one of so many intervals that look like earlier ones is looked at
_NEW_WORDS = (
    512  # intervals that are looked at because other words seem to race, where all else looks the same
)
_CUT = 1 << 20  # accesses that are judged of a launch that was cut, since the last barrier
_AT_ONCE = 1 << 20  # accesses to suspected words that are examined together
_SPARE = 0.5  # seconds after the launch's deadline in which suspects are still examined
_BETWEEN_LOOKS = 16  # pairs whose order is followed between two looks at the clock
_LAST = 2**31 - 2
_PAGE = 12  # bits of a word's number within a page of ``Writers``
_NUMBERS = 1 << 24  # more than any kernel has instructions


@define
class Found:
    """A racing pair of instructions, and one example; ``pairs`` and ``words`` count what was seen.

    ``intervals``: the barrier intervals in which it was seen. ``between_warps``: not only within one;
    ``together``: never at different executions. ``values``: of the example, what each thread read or wrote.
    """

    numbers: tuple[int, int]
    modes: tuple[Mode, Mode]
    threads: tuple[int, int]  # of the emulated launch
    address: int
    pairs: int = 0
    same_value: bool = True
    seen_words: set[int] = field(factory=set[int])
    intervals: set[int] = field(factory=set[int])
    between_warps: bool = False
    together: bool = True
    blocks: set[int] = field(factory=set[int])  # of the emulated launch
    values: tuple[str | None, str | None] = (None, None)

    @property
    def words(self) -> int:
        """How many distinct 4-byte words raced."""
        return len(self.seen_words)


@define(eq=False)
class Writers:
    """Instruction, thread and interval of the last write of each word, in pages of those written."""

    pages: dict[int, Array] = field(factory=dict[int, Array])

    def store(self, words: Array, threads: Array, number: int, interval: int) -> None:
        """These ``words`` (numbers, ``(k,)``) were last written by these ``threads``, in this interval."""
        for page in distinct(words >> _PAGE).tolist():
            mine = np.flatnonzero(words >> _PAGE == page)
            rows = self.pages.setdefault(page, np.zeros((3, 1 << _PAGE), np.int64))
            at = words[mine] & (1 << _PAGE) - 1
            rows[0, at], rows[1, at], rows[2, at] = number, threads[mine], interval

    def load(self, words: Array) -> Array:
        """``(3, words)``; zeros where nothing was written."""
        found = np.zeros((3, len(words)), np.int64)
        for page in distinct(words >> _PAGE).tolist():
            if page in self.pages:
                mine = np.flatnonzero(words >> _PAGE == page)
                found[:, mine] = self.pages[page][:, words[mine] & (1 << _PAGE) - 1]
        return found


@define(eq=False)
class Detector:
    """Collects accesses and judges them. ``found`` by pair of instruction numbers."""

    memory: Memory
    lanes: Lanes
    order: Order
    across_blocks: bool
    reaches_peers: bool = False  # blocks touch one another's shared memory
    lock_step: bool = False
    deadline: float = math.inf  # monotonic, of the launch
    until: float = math.inf  # monotonic, of what is being examined
    left_out: dict[str, None] = field(factory=dict[str, None])
    found: dict[tuple[int, int], Found] = field(factory=dict[tuple[int, int], Found])
    pending: Log = field(init=False)
    kept: Log = field(init=False)  # global accesses, for blocks against blocks
    last: Record | None = None  # where textures are watched
    owner: Array = None
    flags: Array = None
    flagged: Array = field(factory=lambda: np.empty(0, np.int64))
    numbers: int = 0
    written: Writers | None = None
    interval: int = 0
    wide: set[int] = field(factory=set[int])  # intervals in which warps raced with each other
    met: set[int] = field(factory=set[int])  # pairs of instructions at suspected words that were looked at
    looked_at: Array = None  # flags of such words
    new_words: int = 0  # intervals that were looked at because of them
    idle: int = 0  # how many looks in a row showed no new pair
    outlived: list[Outlived] = field(factory=list[Outlived])  # of a launch that ended

    def __attrs_post_init__(self) -> None:
        self.pending = Records(self.memory, self.lanes)
        self.kept = self.pending.empty()

    def log_in(self, log: Log) -> None:
        """Go on with a log of another kind."""
        kept = log.empty()
        for old, new in ((self.pending, log), (self.kept, kept)):
            assert isinstance(old, Records)
            for record in old.records:
                new.add(record)
        self.pending, self.kept = log, kept

    def access(
        self,
        number: int,
        address: Array,
        mask: Array | None,
        size: int,
        mode: int,
        value: Array | None = None,
    ) -> None:
        """Log one instruction. Arrays are kept, not copied: callers never change them in place."""
        order = self.order
        order.sequence += 1
        record = Record(number, address, mask, size, mode, order.ticks, order.sequence, value)
        self.pending.add(record)
        if self.written is not None:
            self.last = record
            if writes(mode):
                words, threads = words_of(record, self.lanes, self.memory)
                self.written.store(words, threads, number, self.interval + 1)

    def fetched(self) -> None:
        """The last access was a texture's: it must not touch what was written before, whatever lies between.

        What was written in this interval is judged with everything else.
        """
        r = self.last
        if self.written is None or r is None:
            return
        words, threads = words_of(r, self.lanes, self.memory)
        numbers, writers, intervals = self.written.load(words)
        stale = np.flatnonzero((intervals > 0) & (intervals <= self.interval) & (writers != threads))
        if len(stale):
            zero, all_bytes = np.zeros(len(stale), np.int64), np.full(len(stale), 15)
            rest = (all_bytes, zero, zero, zero, zero.astype(bool), zero.astype(bool), zero + r.size)
            word, modes = words[stale], (zero + WRITE, zero + READ)
            first = Entries(word, writers[stale], numbers[stale], modes[0], *rest)
            self._note(first, Entries(word, threads[stale], zero + r.number, modes[1], *rest), False)

    def watch_textures(self) -> None:
        """The kernel reads textures: keep who wrote each word last, and when."""
        self.written = Writers()

    def interval_ends(self, done: Array | None) -> None:
        """A barrier was passed by the threads in ``done`` (None: all)."""
        log, self.pending = self.pending, self.pending.empty()
        self.interval += 1
        if done is not None and not done.all():
            log, self.pending = log.split(done)
        self._judge(log, self.lanes.thread_numbers, False)
        if self.across_blocks:
            log.keep(self.kept, self.reaches_peers)
        else:
            since = self.pending.since()
            self.order.forget(self.order.sequence if since is None else since)

    def finish(self, cut: bool = False) -> None:
        """The launch is over. ``cut``: it did not end in time, and may have logged without end."""
        if cut:
            self._cut(self.pending)
        self.interval_ends(None)
        if self.across_blocks:
            if cut:
                self._cut(self.kept)
            elif self.reaches_peers:
                self.outlived = outlived(self.kept.visits(), self.lanes, self.memory, self.order)
            self._judge(self.kept, self.lanes.block, True)
            self.kept = self.kept.empty()

    def _cut(self, log: Log) -> None:
        if log.first(_CUT):
            self.left_out[f"races after the first {_CUT:,} accesses of a launch that did not end"] = None

    def warp_only(self, found: Found) -> bool:
        """Whether lanes of one warp raced where no warps did with each other: a ``__syncwarp`` is missing."""
        return not (found.between_warps or found.together or found.intervals & self.wide)

    # ------------------------------------------------------------------------------ screening

    def _judge(self, log: Log, agents: Array, across: bool) -> None:
        if not log.writes():
            return
        if self.owner is None:
            self.owner = np.zeros((len(self.memory.data) >> 2) + 4, np.int32)
        suspects = log.screen(self.owner, self._numbered(), agents, across)
        if len(suspects) and (across or not self._weary(log, suspects)):
            known = len(self.found)
            self.until = max(self.deadline, time.monotonic()) + _SPARE
            self._examine(log, suspects, across)
            self.idle = self.idle + 1 if len(self.found) == known else 0

    def _weary(self, log: Log, suspects: Array) -> bool:
        """Whether this interval is passed over: the same instructions at the same words as in so many before.

        Races without end must not cost much more than none.
        """
        here = _meeting(*log.touches(self._flagged(suspects)))
        if self.looked_at is None:
            self.looked_at = np.zeros(len(self.owner), bool)
        looks = self.idle < _PATIENCE or self.interval % _ONE_IN == 0 or not here <= self.met
        if not looks and self.new_words < _NEW_WORDS and not self.looked_at[suspects].all():
            self.new_words += 1
            looks = True
        if looks:
            self.met |= here
            self.looked_at[suspects] = True
            return False
        self.left_out[f"races in {_ONE_IN - 1} of {_ONE_IN} later rounds that look like earlier ones"] = None
        return True

    def _flagged(self, words: Array) -> Array:
        """One flag for each word of the memory: cleared again, because to make them takes longer."""
        if self.flags is None:
            self.flags = np.zeros(len(self.owner), bool)
        self.flags[self.flagged] = False
        self.flags[words] = True
        self.flagged = words
        return self.flags

    def _numbered(self) -> int:
        """Where the numbers of a new screening begin: words of earlier ones hold smaller numbers.

        The first numbers stand for atomics of each width, the next ones for the agents.
        """
        self.numbers += self.lanes.count + WIDTHS
        if self.numbers > _LAST - self.lanes.count - WIDTHS:
            self.owner[:] = 0
            self.numbers = 1
        return self.numbers

    # ---------------------------------------------------------------------------- examination

    def _examine(self, log: Log, suspects: Array, across: bool) -> None:
        """``suspects``: words, as often as an access to one is suspected."""
        parts = -(-len(suspects) // _AT_ONCE)
        words = distinct(suspects) if parts > 1 else suspects
        for part in range(parts):
            if part and self._is_late():
                return
            entries = log.entries(self._flagged(words[part::parts]))
            if not len(entries):
                continue
            rounds = self.order.rounds(entries.thread, entries.sequence) if across else entries.tick
            entries = _thinned(entries, rounds, self.lanes, across)
            for x, y in _pairs(entries):
                self._collect(entries[x], entries[y], across)
                if self._may_be_ordered(across) and self._is_late():
                    return

    def _collect(self, a: Entries, b: Entries, across: bool) -> None:
        block = self.lanes.block
        same = block[a.thread] == block[b.thread]
        clash = (a.thread != b.thread) & (writes(a.mode) | writes(b.mode))
        alike = a.size == b.size
        clash &= ~(is_atomic(a.mode, across) & is_atomic(b.mode, across) & alike)
        clash &= (a.bytes & b.bytes) != 0
        clash &= ~same if across else same
        if not across:
            warp = self.lanes.warp
            apart = a.sequence != b.sequence if self.lock_step else a.tick != b.tick
            clash &= ~((warp[a.thread] == warp[b.thread]) & apart)
        hits = np.flatnonzero(clash)
        if self.order.gates or self.order.block_gates:
            x, y = a[hits], b[hits]
            hits = hits[~self.order.gated(x.thread, x.sequence, y.thread, y.sequence)]
        if self._may_be_ordered(across):
            hits = self._unordered(a, b, hits)
        if len(hits):
            self._note(a[hits], b[hits], across)

    def _may_be_ordered(self, across: bool) -> bool:
        """Whether some event may order accesses of one block, or of different ones."""
        return bool(self.order.events) and (self.order.crosses or not across)

    def _is_late(self) -> bool:
        """What is left of this interval is not examined."""
        late = time.monotonic() > self.until
        if late:
            self.left_out["races at some of the words that seem to race: raise --deadline"] = None
        return late

    def _unordered(self, a: Entries, b: Entries, hits: Array) -> Array:
        """Those that no event orders, as far as there is time: those close in time first: they need least."""
        near = np.argsort(np.abs(a.sequence[hits] - b.sequence[hits]), kind="stable")
        found: list[int] = []
        for count, i in enumerate(hits[near].tolist(), 1):
            if not self._ordered(a, b, i):
                found.append(i)
            if count % _BETWEEN_LOOKS == 0 and self._is_late():
                break
        return np.sort(np.array(found, np.int64))

    def _ordered(self, a: Entries, b: Entries, i: int) -> bool:
        first, second = (int(a.thread[i]), int(a.sequence[i])), (int(b.thread[i]), int(b.sequence[i]))
        return self.order.between(*first, *second)

    def _note(self, a: Entries, b: Entries, across: bool) -> None:
        """Add racing accesses, row by row, to their pairs of instructions."""
        swap = (a.number > b.number) | ((a.number == b.number) & (a.thread > b.thread))
        low, high = np.where(swap, b.number, a.number), np.where(swap, a.number, b.number)
        keys = low * _NUMBERS + high
        same = a.known & b.known & (a.value == b.value) & writes(a.mode) & writes(b.mode)
        apart = self.lanes.warp[a.thread] != self.lanes.warp[b.thread]
        together = a.sequence == b.sequence
        if apart.any() and not across:
            self.wide.add(self.interval)
        for key in distinct(keys).tolist():
            rows = np.flatnonzero(keys == key)
            k = int(rows[0])
            x, y = (b, a) if swap[k] else (a, b)
            numbers = (int(low[k]), int(high[k]))
            found = self.found.get(numbers)
            if found is None:
                modes = (_MODES[int(x.mode[k])], _MODES[int(y.mode[k])])
                threads = (int(x.thread[k]), int(y.thread[k]))
                found = self.found[numbers] = Found(numbers, modes, threads, int(a.word[k]) * 4)
                found.values = shown(x, k), shown(y, k)
            found.pairs += len(rows)
            found.seen_words.update(a.word[rows].tolist())
            found.blocks.update(distinct(self.lanes.block[a.thread[rows]]).tolist())
            found.same_value &= bool(same[rows].all())
            found.intervals.add(self.interval)
            found.between_warps |= bool(apart[rows].any())
            found.together &= bool(together[rows].all())


def _meeting(words: Array, numbers: Array) -> set[int]:
    """The pairs of instructions that touch one word, as numbers."""
    keys = distinct(words * _NUMBERS + numbers)
    words, numbers = keys // _NUMBERS, keys % _NUMBERS
    pairs = [numbers * (_NUMBERS + 1)]
    lag = 1
    while lag < len(keys) and (near := words[lag:] == words[:-lag]).any():
        pairs.append(numbers[:-lag][near] * _NUMBERS + numbers[lag:][near])
        lag += 1
    return set(distinct(np.concatenate(pairs)).tolist())


def _thinned(entries: Entries, clock: Array, lanes: Lanes, across: bool) -> Entries:
    """A few threads per word, site and clock, sorted by word: enough to find every racing pair of sites.
    ``clock``: of each entry, its warp's; between blocks the rounds of its cluster.

    Kept are the first threads of each group, the first of each warp, and the last. Between blocks one thread
    of each block is enough.
    """
    agent = lanes.block[entries.thread] if across else entries.thread
    order = np.lexsort((entries.sequence, agent, clock, entries.number, entries.word))
    entries, agent, clock = entries[order], agent[order], clock[order]
    warp = lanes.warp[entries.thread]

    def changes(*columns: Array) -> Array:
        different = np.zeros(len(entries) - 1, bool)
        for column in columns:
            different |= column[1:] != column[:-1]
        return np.r_[True, different]

    group = changes(entries.word, entries.number, clock)
    start = np.maximum.accumulate(np.where(group, np.arange(len(entries)), 0))
    rank = np.arange(len(entries)) - start
    few = 2 if across or len(entries) > _MANY else _PER_SITE
    last = np.r_[group[1:], True]
    news = changes(entries.word, entries.number, clock, agent if across else warp)
    return entries[(rank < few) | last | news]


def _pairs(entries: Entries) -> Iterator[tuple[Array, Array]]:
    """Index pairs of entries that share a word, by growing distance; entries are sorted by word."""
    lag = 1
    while lag < len(entries):
        near = np.flatnonzero(entries.word[lag:] == entries.word[:-lag])
        if not near.size:
            return
        yield near, near + lag
        lag += 1
