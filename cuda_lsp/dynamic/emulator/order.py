"""What orders accesses besides block barriers: warp synchronisation, partial barriers, fences with atomics.

Two lanes of a warp are ordered by its clock, which ticks when the whole warp synchronises. Everything else is
an *event*: threads that learn what others had done by then. A fence followed by an atomic (or a release)
publishes what its thread knows, and an atomic or an acquiring load at the same address learns it: locks,
queues, flags, "last block done", barriers of a whole grid. What one thread has learned its warp knows from
their next meeting on, and its block from its next barrier on. ``between`` follows events and meetings from
one access to another: happens-before, by the order in which things were executed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.emulator.lanes import Lanes, distinct

Array = Any

_NEVER = 2**62
_FEW = 4
_REMEMBERED = 1 << 24  # entries of ``Order.reached`` that are kept


@frozen(eq=False)
class Event:
    """At ``sequence`` the threads ``after`` learn what each of ``before`` knew at ``until``; all indices."""

    sequence: int
    before: Array | list[int]
    until: Array | list[int]
    after: Array

    def teaches(self, when: Array) -> bool:
        """Whether one of those who tell knew it by then. ``when``: each thread does, ``(n,)``."""
        if len(self.before) > _FEW:
            return bool((when[self.before] <= self.until).any())
        known = when.item  # many times as fast as an operation on arrays of one
        return any(known(thread) <= at for thread, at in zip(self.before, self.until, strict=True))


@define(eq=False)
class Meetings:
    """When groups (warps, or blocks) met with all their living threads. ``who``: flags of each, ``(n,)``."""

    times: list[int] = field(factory=list[int])
    who: list[Array] = field(factory=list[Array])
    next: dict[int, Array] = field(factory=dict[int, Array])  # by number of the first meeting that counts

    def add(self, sequence: int, threads: Array) -> None:
        """One that repeats the last, with nothing executed in between, is none."""
        self.next.clear()
        if self.who and np.array_equal(self.who[-1], threads):
            if self.times[-1] == sequence - 1:
                self.times[-1] = sequence
                return
            threads = self.who[-1]  # loops meet often: one array for all
        self.times.append(sequence)
        self.who.append(threads)

    def after(self, sequence: int) -> Array:
        """When the group of each thread meets next, ``(n,)``; never: ``_NEVER``."""
        first = bisect_right(self.times, sequence)
        known = self.next.get(first)
        if known is None:
            known = self.next[first] = self._first_from(first)
        return known

    def _first_from(self, number: int) -> Array:
        if number == len(self.times):
            return np.full(1, _NEVER)  # of all threads
        found = np.where(self.who[number], self.times[number], _NEVER)
        missing = ~self.who[number]
        for k in range(number + 1, len(self.times)):
            if not missing.any():
                break
            found[missing & self.who[k]] = self.times[k]
            missing &= ~self.who[k]
        return found

    def forget(self, sequence: int) -> None:
        """Drop the meetings before ``sequence``."""
        self.next.clear()
        count = bisect_left(self.times, sequence)
        del self.times[:count], self.who[:count]


@define(eq=False)
class Published:
    """What atomics at one address have made visible. ``told``: thread → when, and whether to other blocks."""

    told: dict[int, tuple[int, bool]] = field(factory=dict[int, tuple[int, bool]])
    learned: dict[int, int] = field(factory=dict[int, int])  # thread → version that it has seen
    version: int = 0


@define(eq=False)
class _Spread:
    """When each thread knows of an access, ``(n,)``, after the events before number ``event``."""

    when: Array
    event: int


@define(eq=False)
class Order:
    """Clocks of one launch. ``sequence`` counts accesses; ``ticks``: warp clocks, ``(n,)``, never changed."""

    lanes: Lanes
    sequence: int = 0
    ticks: Array = None
    events: list[Event] = field(factory=list[Event])
    warps: Meetings = field(factory=Meetings)
    blocks: Meetings = field(factory=Meetings)
    fenced: Array = None
    near: Array = None  # threads that fenced at all, also for their block only
    fenced_at: Array = None  # when each thread last fenced for other blocks, 0: never
    gates: dict[int, list[tuple[int, int]]] = field(factory=dict[int, list[tuple[int, int]]])
    block_gates: dict[int, list[tuple[int, int]]] = field(factory=dict[int, list[tuple[int, int]]])
    crosses: bool = False  # some event tells threads of other blocks
    published: dict[int, Published] = field(factory=dict[int, Published])
    reached: dict[tuple[int, int], _Spread] = field(factory=dict[tuple[int, int], _Spread])
    reached_at: int = 0
    steps: Array = None  # times at which what follows from an access changes, sorted

    def __attrs_post_init__(self) -> None:
        self.ticks = np.zeros(self.lanes.count, np.int32)
        self.fenced = np.zeros(self.lanes.count, bool)
        self.near = self.fenced
        self.fenced_at = np.zeros(self.lanes.count, np.int64)

    # ------------------------------------------------------------------------------- what happens

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
        self.warps.add(self.sequence, whole)
        partial = ~whole if lanes is None else lanes & ~whole
        if not partial.any():
            return
        for warp in distinct(self.lanes.warp[partial]).tolist():
            inside = (self.lanes.warp == warp) & partial
            for bits in distinct(named[inside]).tolist():
                group = inside & (bits >> self.lanes.lane.astype(np.int64) & 1 == 1)
                self.meet(np.where(group, self.sequence, 0), group)

    def arrives(self) -> int:
        """When threads come to a barrier at which others will wait for them."""
        self.sequence += 1
        return self.sequence

    def meet(self, arrived: Array, after: Array) -> None:
        """Threads pass a barrier. ``arrived``: when each thread came to it, 0: not; ``after``: flags."""
        self.sequence += 1
        before, behind = np.flatnonzero(arrived), np.flatnonzero(after)
        self._add(Event(self.sequence, before, arrived[before], behind))
        for block in self._wholly_in(before, behind):
            first = int(arrived[self.lanes.block == block].min())
            self.block_gates.setdefault(block, []).append((first, self.sequence))

    def _add(self, event: Event) -> None:
        self.events.append(event)
        block = self.lanes.block
        self.crosses = self.crosses or len({*block[event.before].tolist(), *block[event.after].tolist()}) > 1

    def _wholly_in(self, before: Array, behind: Array) -> list[int]:
        """Blocks of which every thread is in both."""
        size = self.lanes.per_block
        if len(before) < size or len(behind) < size:
            return []
        counts = (np.bincount(self.lanes.block[threads], minlength=1) for threads in (before, behind))
        ours, theirs = (set(np.flatnonzero(count == size).tolist()) for count in counts)
        return sorted(ours & theirs)

    def block_barrier(self, lanes: Array | None) -> None:
        """Whole blocks pass a barrier. ``lanes``: their threads, None: all."""
        self.sequence += 1
        self.blocks.add(self.sequence, np.ones(self.lanes.count, bool) if lanes is None else lanes)

    def gate(self, cluster: int, first: int) -> None:
        """All threads of a cluster have passed its barrier by now, to which the first of them came at
        ``first``: what any of them did before that is known to all of them now."""
        self.sequence += 1
        self.gates.setdefault(cluster, []).append((first, self.sequence))

    def fence(self, lanes: Array | None, wide: bool) -> None:
        """``wide``: for other blocks too."""
        self.near = np.ones_like(self.near) if lanes is None else self.near | lanes
        if wide:
            self.fenced_at = np.where(True if lanes is None else lanes, self.sequence, self.fenced_at)
            self.fenced = np.ones_like(self.fenced) if lanes is None else self.fenced | lanes

    def synchronise(
        self, address: Array, lanes: Array | None, *, reads: bool, writes: Array | bool, release: bool,
        wide: bool = True,
    ) -> None:  # fmt: skip
        """A strong access. A write publishes (after a fence, or if it releases) what its thread knows.

        A read learns what others published at the same address. One that does both goes on for those whom
        it has read: who reads it later learns of them as well. ``writes``: which threads do (a ``cas`` that
        fails does not); ``wide``: not of block scope only.
        """
        publishing = (self.near | release) & writes
        if not (self.published or publishing.any()):
            return
        for thread in range(self.lanes.count) if lanes is None else np.flatnonzero(lanes).tolist():
            known = self.published.get(int(address[thread]))
            seen = self._visible(known, thread, wide) if reads and known is not None else []
            if known is not None and seen and known.learned.get(thread) != known.version:
                known.learned[thread] = known.version
                until = [known.told[other][0] for other in seen]
                self._add(Event(self.sequence, seen, until, np.array([thread])))
            if not publishing[thread]:
                continue
            if known is None:
                known = self.published[int(address[thread])] = Published()
            far = wide and bool(release or self.fenced[thread])
            for other in seen:
                if far or not known.told[other][1]:
                    del known.told[other]
            known.told[thread] = (self.sequence, far)
            known.version += 1
            known.learned[thread] = known.version

    def _visible(self, known: Published, thread: int, wide: bool) -> list[int]:
        """The threads whose publications ``thread`` can see, itself left out."""
        block = self.lanes.block
        return [
            other
            for other, (_, far) in known.told.items()
            if other != thread and ((wide and far) or block[other] == block[thread])
        ]

    def forget(self, sequence: int) -> None:
        """Nobody will ask for accesses before ``sequence``."""
        for block, gates in self.block_gates.items():
            self.block_gates[block] = [gate for gate in gates if gate[1] >= sequence]
        self.warps.forget(sequence)
        self.blocks.forget(sequence)
        del self.events[: bisect_left(self.events, sequence, key=_sequence)]

    # ------------------------------------------------------------------------------ what it orders

    def between(self, a: int, at_a: int, b: int, at_b: int) -> bool:
        """Whether something orders the access of thread ``a`` at ``at_a`` and that of ``b`` at ``at_b``."""
        if at_a > at_b:
            a, at_a, b, at_b = b, at_b, a, at_a
        return bool(self._reached(int(a), int(at_a), int(at_b))[b] <= at_b)

    def learned(self, thread: int, at: int, by: Array) -> bool:
        """Whether any of the threads in ``by`` came to know, while it lived, what ``thread`` did then."""
        return bool((self._reached(thread, at, _NEVER)[by] < _NEVER).any())

    def gated(self, a: Array, at_a: Array, b: Array, at_b: Array) -> Array:
        """Whether a gate lies between accesses of these threads at these times, ``(k,)`` flags: what can be
        told of many pairs at once."""
        first, last = np.minimum(at_a, at_b), np.maximum(at_a, at_b)
        found = np.zeros(len(a), bool)
        for groups, kept in ((self.lanes.cluster, self.gates), (self.lanes.block, self.block_gates)):
            for number, gates in kept.items():
                mine = np.flatnonzero((groups[a] == number) & (groups[b] == number))
                begun, ended = np.array([*sorted(gates), (_NEVER, _NEVER)]).T
                soonest = np.minimum.accumulate(ended[::-1])[::-1]  # of those that begin no earlier
                found[mine] |= soonest[np.searchsorted(begun, first[mine], "right")] <= last[mine]
        return found

    def rounds(self, threads: Array, at: Array) -> Array:
        """How many gates the clusters of these threads had passed by then, ``(k,)``."""
        found = np.zeros(len(threads), np.int64)
        for number, gates in self.gates.items():
            mine = self.lanes.cluster[threads] == number
            found[mine] = np.searchsorted([ended for _, ended in gates], at[mine])
        return found

    def _reached(self, thread: int, at: int, until: int) -> Array:
        """When each thread knows what ``thread`` did then, ``(n,)``; what comes after ``until`` is open."""
        if self.reached_at != self.sequence or len(self.reached) * self.lanes.count > _REMEMBERED:
            self.reached, self.reached_at, self.steps = {}, self.sequence, self._steps()
        step = int(self.steps.searchsorted(at, "right"))
        at = int(self.steps[step - 1]) if step else 0  # nothing happens between that and the access
        known = self.reached.get((thread, at))
        if known is None:
            known = self.reached[thread, at] = self._known_at_first(thread, at)
        self._follow(known, until)
        return known.when

    def _steps(self) -> Array:
        """Behind what somebody told, and at meetings: accesses from there on are not learned of by these."""
        told = (np.asarray(event.until, dtype=np.int64) + 1 for event in self.events)
        return distinct(np.concatenate([self.warps.times, self.blocks.times, *told]).astype(np.int64))

    def _known_at_first(self, thread: int, at: int) -> _Spread:
        when = np.full(self.lanes.count, _NEVER)
        self._learn(when, np.array([thread]), at)
        return _Spread(when, bisect_left(self.events, at, key=_sequence))

    def _follow(self, spread: _Spread, until: int) -> None:
        """Let events tell, up to ``until``."""
        when = spread.when
        # Threads of one atomic instruction follow one another at one moment.
        while spread.event < len(self.events) and self.events[spread.event].sequence <= until:
            event = self.events[spread.event]
            spread.event += 1
            if not event.teaches(when):
                continue
            news = event.after[when[event.after] > event.sequence]
            if len(news):
                self._learn(when, news, event.sequence)

    def _learn(self, when: Array, threads: Array, at: int) -> None:
        """They know it from ``at`` on; their warps and their blocks when they meet."""
        when[threads] = at
        for groups, meetings in ((self.lanes.warp, self.warps), (self.lanes.block, self.blocks)):
            met = np.broadcast_to(meetings.after(at), when.shape)[threads]
            if len(threads) == 1:
                low, high = groups.searchsorted((groups[threads[0]], groups[threads[0]] + 1))
                np.minimum(when[low:high], met[0], out=when[low:high])
            else:
                first = np.full(int(groups[-1]) + 1, _NEVER)
                np.minimum.at(first, groups[threads], met)
                np.minimum(when, first[groups], out=when)


@define(eq=False)
class Unfollowed(Order):
    """Of a launch that is not watched for races: nobody will ask what orders what."""

    def warp_sync(self, lanes: Array | None, mask: Array | int, alive: Array | None) -> None:
        """Nothing."""

    def meet(self, arrived: Array, after: Array) -> None:
        """Nothing."""

    def block_barrier(self, lanes: Array | None) -> None:
        """Nothing."""

    def gate(self, cluster: int, first: int) -> None:
        """Nothing."""

    def fence(self, lanes: Array | None, wide: bool) -> None:
        """Nothing."""

    def synchronise(
        self, address: Array, lanes: Array | None, *, reads: bool, writes: Array | bool, release: bool,
        wide: bool = True,
    ) -> None:  # fmt: skip
        """Nothing."""


def _sequence(event: Event) -> int:
    return event.sequence
