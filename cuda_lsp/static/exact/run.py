"""A real schedule of a kernel: threads run in turns on one memory, statement by statement.

Every run is a sequentially consistent execution that the hardware may show: barriers wait for everybody
they order, atomics are atomic, a lock that is held is not taken. What a thread does next depends on values
that are exact; a thread that needs one that nobody knows (floating point, uninitialised shared memory)
stops there, and with it whoever waits for it.

Theory: two conflicting accesses that two threads may perform next in one reachable state of a
sequentially consistent execution are a data race (Netzer and Miller 1992, "What are race conditions?").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir.program import Array, Axis, Barrier, BarrierScope
from cuda_lsp.model import Mode, SourceRange, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.code import (
    Branch,
    Touch,
    Wait,
)
from cuda_lsp.static.exact.machine import Excluded, Machine, Runner, Status
from cuda_lsp.static.exact.memory import Held
from cuda_lsp.static.exact.values import Value


class Unfinished(Exception):
    """The run takes too long."""


@define(eq=False)  # made for each access of each thread: not frozen, which takes four times as long
class Pending:
    """An access that a thread performs next."""

    runner: Runner
    touch: Touch
    array: Array
    object: Held
    start: int
    stop: int
    number: int  # of the thread's watched accesses
    passed: int  # barriers of the block
    value: Value = None


@frozen(eq=False)
class Missed:
    """A barrier of threads, one of which waits at it and another can no longer come to it."""

    barrier: Barrier
    present: Runner
    absent: Runner
    everyone: Sequence[Runner] = ()


Watch = Callable[[Pending], bool]
"""Told of each access at a watched place before it happens; True: the thread stops there."""


@define(eq=False)
class Schedule(Machine):
    """Threads of some blocks, run one after another from wait to wait, in the order given.

    ``choice``: the outcome of every ``if`` whose condition nobody knows, True also: one round of such loops;
    None: they are passed over. ``watched``: the accesses that ``watch`` is told of. ``whole``: there are no
    other blocks. ``enough``: asked when threads have waited once, twice, four times…: whether to end the run.
    """

    runners: Sequence[Runner] = ()
    watched: frozenset[Touch] = frozenset()
    watch: Watch = lambda p: False
    until: float = float("inf")
    whole: bool = False
    enough: Callable[[], bool] = lambda: False
    steps: int = 0
    missed: dict[SourceRange, Missed] = field(factory=dict[SourceRange, Missed])
    reached: set[SourceRange] = field(factory=set[SourceRange])  # barriers that some thread came to
    passed_over: bool = False  # some ``if`` on what nobody knows

    def run(self) -> None:
        """Until nobody can go on, or it is enough. Raises ``Excluded`` or ``Unfinished``."""
        for demand in self.code.demands:
            if self.runners and demand(self.runners[0]) == 0:
                raise Excluded
        for times in itertools.count(1):
            moved = False
            for runner in self.runners:
                if runner.status is Status.READY:
                    moved = True
                    self._take_turn(runner)
            if not self._release() and not moved:
                self._note_parted_lanes()
                return
            if times & (times - 1) == 0 and self.enough():
                return

    def _take_turn(self, t: Runner) -> None:
        steps = self.advance(t, budgets.TURN_INSTRUCTIONS)
        if steps > budgets.TURN_INSTRUCTIONS:
            t.turns += 1
            if t.turns >= budgets.MOST_TURNS:
                t.status = Status.STUCK
        self.steps += steps
        work.DONE.instructions += steps
        if self.steps > budgets.RUN_INSTRUCTIONS or work.now() > self.until:
            raise Unfinished

    def _touch(self, t: Runner, i: Touch) -> bool:
        """A read that nobody needs or watches is left out."""
        unseen = i.slot is None and i.mode is Mode.READ and i not in self.watched
        return unseen or super()._touch(t, i)

    def meets(self, t: Runner, i: Touch, array: Array, offset: int, size: int) -> bool:
        """It must be inside its array; where it is watched it is told."""
        if offset < 0 or (array.size is not None and not array.dynamic and offset + size > array.size):
            t.status = Status.STUCK  # out of bounds is told elsewhere; what others do before it is real
            return False
        if i in self.watched and array.space in (Space.SHARED, Space.GLOBAL) and size > 0:
            t.touches += 1
            _, object, shift = self.place(t, array)
            start, value = offset + shift, i.value(t) if i.value is not None else None
            if self.watch(Pending(t, i, array, object, start, start + size, t.touches, t.passed, value)):
                t.touches -= 1
                t.status = Status.FROZEN
                return False
        return True

    def ignores(self, arrays: Collection[Array], writes: bool) -> bool:
        """What may be written anywhere leaves nothing that is known."""
        return bool(arrays) or not writes

    def chooses(self, t: Runner, i: Branch) -> bool | None:
        """As ``choice`` says, where the whole region may be passed over; of loops one round."""
        if not i.region.passable:
            return None
        self.passed_over = True
        again = bool(t.chosen) and t.chosen[-1][0] is i.region
        if self.choice is None or again or not (i.chosen or self.choice):
            if again:
                t.chosen.pop()
            return None
        t.chosen.append((i.region, (i.region.site, self.choice)))
        return self.choice

    # -- waiting

    def waits(self, t: Runner, i: Wait) -> bool:
        """Notes what it waits with; lanes of a group that nobody knows let others go first."""
        if i.barrier.scope is BarrierScope.COALESCED:
            t.grouped = True  # order among lanes that nobody knows: none of them is accused
            t.offers = {}
            return True
        self.reached.add(i.barrier.site.range)
        mask = i.mask(t) if i.mask is not None else None
        t.status, t.wait = Status.WAITING, i
        t.mask = mask if isinstance(mask, int) else None
        t.offered = tuple(offer(t) for offer in i.offered)
        return True

    def _release(self) -> bool:
        groups: dict[Hashable, list[Runner]] = {}
        for t in self.runners:
            if t.status is Status.WAITING and t.wait is not None:
                groups.setdefault(self._group(t, t.wait.barrier), []).append(t)
        released = False
        for group in groups.values():
            released |= self._released(group)
        return released

    def _group(self, t: Runner, barrier: Barrier) -> Hashable:
        scope = barrier.scope
        if scope in (BarrierScope.BLOCK, BarrierScope.NAMED):
            return (scope, t.block)
        if scope is BarrierScope.TILE and barrier.size:
            return (scope, t.block, t.thread.linear // barrier.size)
        if scope in (BarrierScope.TILE, BarrierScope.WARP):
            return (scope, t.block, t.thread.linear // t.thread.warp_size, t.mask)
        return (scope,)

    def _released(self, waiting: Sequence[Runner]) -> bool:
        first = waiting[0]
        wait = first.wait
        other = next((t for t in waiting if t.wait is not wait), None)
        if wait is None or other is not None:
            if wait is not None and wait.barrier.scope is BarrierScope.BLOCK:
                self._note_missed(first, other)
            return False  # threads at different barriers: what happens is not defined
        wide = wait.barrier.scope not in (BarrierScope.TILE, BarrierScope.WARP)
        if wait.barrier.scope is BarrierScope.GRID:
            self._note_missed(first, self._gone_with_its_block())
        if wait.barrier.scope is BarrierScope.CLUSTER or (
            wait.barrier.scope is BarrierScope.GRID and not self.whole
        ):
            return False
        if len(waiting) < sum(1 for t in self.runners if self._expected(t, first, wait)):
            return False
        if wait.barrier.scope is BarrierScope.BLOCK:
            self._note_missed(first, next((t for t in self.runners if _is_gone(t, first)), None))
        offers = {t.number if wide else t.axes[Axis.LANE]: t.offered[0] for t in waiting if t.offered}
        for t in waiting:
            t.status, t.wait, t.offers = Status.READY, None, offers
            t.passed += wide
            t.turns = 0
        return True

    def _note_missed(self, present: Runner, absent: Runner | None) -> None:
        if absent is None:
            return
        for one, other in ((present, absent), (absent, present)):
            if one.wait is not None:
                barrier = one.wait.barrier
                self.missed.setdefault(barrier.site.range, Missed(barrier, one, other, self.runners))

    def _note_parted_lanes(self) -> None:
        """Nobody gets on: lanes that a ``__syncwarp`` waits for, and that wait elsewhere for who is there."""
        waiting = [t for t in self.runners if t.status is Status.WAITING]
        for t in waiting:
            if t.wait is None or not t.wait.barrier.scope.of_lanes or t.wait.barrier.implied:
                continue
            barrier = t.wait.barrier
            if barrier.site.range in self.missed or (t.mask is None and t.wait.mask is not None):
                continue
            away = (x for x in waiting if x.wait not in (None, t.wait) and self._expected(x, t, t.wait))
            absent = next((x for x in away if x.wait is not None and self._expected(t, x, x.wait)), None)
            if absent is not None:
                self.missed[barrier.site.range] = Missed(barrier, t, absent, self.runners)

    def _gone_with_its_block(self) -> Runner | None:
        """A thread of a block that has ended as a whole."""
        running = {t.block for t in self.runners if t.status is not Status.DONE}
        return next((t for t in self.runners if t.block not in running), None)

    def _expected(self, t: Runner, first: Runner, wait: Wait) -> bool:
        """Whether the barrier waits for this thread: those that have ended are not waited for."""
        if t.status is Status.DONE:
            return False
        scope = wait.barrier.scope
        if scope is BarrierScope.GRID:
            return True
        if t.block != first.block:
            return False
        if scope in (BarrierScope.BLOCK, BarrierScope.NAMED):
            return True
        size = wait.barrier.size if scope is BarrierScope.TILE and wait.barrier.size else t.thread.warp_size
        if t.thread.linear // size != first.thread.linear // size:
            return False
        return first.mask is None or bool(first.mask >> t.axes[Axis.LANE] & 1)


def _is_gone(t: Runner, waiting: Runner) -> bool:
    return t.status is Status.DONE and t.block == waiting.block
