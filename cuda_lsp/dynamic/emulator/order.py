"""What orders accesses besides block barriers: warp synchronisation, partial barriers, fences with atomics.

Warp clocks tick for all lanes of a warp when the whole warp synchronises. Everything else is an *event* with
the threads it releases from and the threads it orders after them; chains of events are followed. Between
blocks a fence followed by an atomic (or a release) publishes what its thread has seen, and an atomic or an
acquiring load at the same address picks it up: "last block done", flags, barriers of a whole grid. Within a
block the same holds between two threads (locks, queues), and a fence for the block is enough.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.emulator.lanes import Lanes, distinct

Array = Any


@frozen(eq=False)
class Event:
    """From ``sequence`` on, threads of ``after`` come after what threads of ``before`` did earlier.

    ``until``: when each of them said so, if not at ``sequence``.
    """

    sequence: int
    before: Array
    after: Array
    until: Array | None = None

    def covers(self, thread: int, at: int) -> bool:
        """Whether what ``thread`` did then is among what comes before."""
        return bool(self.before[thread]) and (self.until is None or at <= self.until[thread])


@frozen
class Publication:
    """A fence and then an atomic on ``address``: what ``thread`` had seen at ``sequence`` is visible."""

    address: int
    thread: int
    sequence: int
    barrier: int  # when the thread's block last passed a barrier
    wide: bool = True  # also for other blocks


@frozen
class Pickup:
    """An atomic of ``thread`` that read after the publication."""

    publication: Publication
    thread: int
    sequence: int


@define(eq=False)
class Order:
    """Clocks of one launch. ``sequence`` counts accesses; ``ticks``: warp clocks, ``(n,)``, never changed."""

    lanes: Lanes
    sequence: int = 0
    ticks: Array = None
    events: list[Event] = field(factory=list[Event])
    fenced: Array = None
    near: Array = None  # threads that fenced at all, also for their block only
    published: dict[int, dict[int, Publication]] = field(factory=dict[int, dict[int, Publication]])
    pickups: list[Pickup] = field(factory=list[Pickup])
    handed: dict[tuple[int, int], list[tuple[int, int]]] = field(factory=dict[tuple[int, int], Any])
    met: set[tuple[Publication, int]] = field(factory=set[tuple[Publication, int]])  # only the first counts
    barriers: Array = None  # sequence of each thread's last block barrier
    barrier_log: list[tuple[int, Array]] = field(factory=list[tuple[int, Array]])

    def __attrs_post_init__(self) -> None:
        self.ticks = np.zeros(self.lanes.count, np.int32)
        self.fenced = np.zeros(self.lanes.count, bool)
        self.near = self.fenced
        self.barriers = np.zeros(self.lanes.count, np.int64)

    def warp_sync(self, lanes: Array | None, mask: Array | int, alive: Array | None) -> None:
        """The lanes arrived together; ``mask``: the lane mask each of them named."""
        self.sequence += 1
        there = self.lanes.mask(lanes)[self.lanes.warp]
        living = self.lanes.mask(alive)[self.lanes.warp]
        named = np.broadcast_to(np.asarray(mask, dtype=np.uint32), (self.lanes.count,))
        whole = (there == living) & (named & living == living)
        if lanes is not None:
            whole = whole & lanes
        self.ticks = self.ticks + whole.astype(np.int32)
        partial = ~whole if lanes is None else lanes & ~whole
        if not partial.any():
            return
        for warp in distinct(self.lanes.warp[partial]).tolist():
            inside = (self.lanes.warp == warp) & partial
            for bits in distinct(named[inside]).tolist():
                group = inside & (bits >> self.lanes.lane.astype(np.int64) & 1 == 1)
                self.events.append(Event(self.sequence, group, group))

    def partial_barrier(self, before: Array, after: Array) -> None:
        self.sequence += 1
        self.events.append(Event(self.sequence, before, after))

    def meet(self, arrived: Array, after: Array) -> None:
        """Threads pass an mbarrier. ``arrived``: when each thread came to it, 0: not."""
        self.sequence += 1
        self.events.append(Event(self.sequence, arrived > 0, after, arrived))

    def block_barrier(self, lanes: Array | None) -> None:
        self.sequence += 1
        self.barriers = (
            np.where(lanes, self.sequence, self.barriers)
            if lanes is not None
            else np.full(self.lanes.count, self.sequence)
        )
        if self.published or self.fenced.any():
            self.barrier_log.append((self.sequence, self.barriers))

    def fence(self, lanes: Array | None, wide: bool) -> None:
        """``wide``: for other blocks too."""
        self.near = np.ones_like(self.near) if lanes is None else self.near | lanes
        if wide:
            self.fenced = np.ones_like(self.fenced) if lanes is None else self.fenced | lanes

    def synchronise(
        self, address: Array, lanes: Array | None, *, reads: bool, writes: bool, release: bool
    ) -> None:
        """A strong access. A write publishes (after a fence, or if it releases) what its thread has seen.

        A read picks up what others published at the same address.
        """
        if not (self.published or (writes and (release or self.near.any()))):
            return
        for thread in range(self.lanes.count) if lanes is None else np.flatnonzero(lanes).tolist():
            at = int(address[thread])
            for publication in tuple(self.published.get(at, {}).values()) if reads else ():
                known = (publication, thread)
                if known in self.met or publication.thread == thread:
                    continue
                self.met.add(known)
                if self.lanes.block[publication.thread] != self.lanes.block[thread]:
                    if publication.wide:
                        self.pickups.append(Pickup(publication, thread, self.sequence))
                else:
                    pair = (publication.thread, thread)
                    self.handed.setdefault(pair, []).append((publication.sequence, self.sequence))
            if writes and (release or self.near[thread]):
                wide = bool(release or self.fenced[thread])
                made = Publication(at, thread, self.sequence, int(self.barriers[thread]), wide)
                self.published.setdefault(at, {})[thread] = made  # it holds what earlier ones held

    def between(self, a: int, at_a: int, b: int, at_b: int, across: bool) -> bool:
        """Whether something orders the access of thread ``a`` at ``at_a`` and that of ``b`` at ``at_b``."""
        if at_a > at_b:
            a, at_a, b, at_b = b, at_b, a, at_a
        if across:
            return any(self._carries(p, int(a), int(at_a), int(b), int(at_b)) for p in self.pickups)
        if any(at_a <= given and taken <= at_b for given, taken in self.handed.get((int(a), int(b)), ())):
            return True
        reached: Any = None
        for event in self.events:
            if not at_a < event.sequence < at_b:
                continue
            if event.covers(a, at_a) or (reached is not None and (reached & event.before).any()):
                reached = event.after if reached is None else reached | event.after
                if reached[b]:
                    return True
        return False

    def _carries(self, p: Pickup, a: int, at_a: int, b: int, at_b: int) -> bool:
        block = self.lanes.block
        source, target = p.publication, p.thread
        if block[source.thread] != block[a] or block[target] != block[b]:
            return False
        published = at_a < source.barrier or (a == source.thread and at_a <= source.sequence)
        if not published:
            return False
        if b == target:
            return at_b >= p.sequence
        return any(p.sequence < at < at_b and passed[b] == at for at, passed in self.barrier_log)
