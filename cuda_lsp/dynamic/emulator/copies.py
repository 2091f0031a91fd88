"""Asynchronous copies under way and mbarriers, of one launch.

Source: PTX ISA 9.7.9.25 "Asynchronous copy" and 9.7.13.15 "mbarrier". A copy is made when it is issued, but
counts as going on until its threads wait for it: until then whoever touches its target races with it. An
mbarrier orders what its threads did before they arrived with what follows a successful wait.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.accesses import Accesses

Array = Any
Mask = Any


@define(eq=False)
class _Barrier:
    """One mbarrier. ``arrived``: who came in this phase, and when (access sequence); 0: not."""

    expected: int
    pending: int
    arrived: Array
    phase: int = 0
    transactions: int = 0
    complete: dict[int, Array] = field(factory=dict[int, Array])  # phase → who had arrived, when


@define(eq=False)
class _Copy:
    """A copy that threads of ``mask`` have not waited for. ``group``: commits of each thread before it."""

    number: int
    target: Array
    mask: Array
    size: int
    group: Array


@define(eq=False)
class Async:
    """Copies under way and mbarriers of one launch."""

    accesses: Accesses
    barriers: dict[int, _Barrier] = field(factory=dict[int, _Barrier])
    pending: list[_Copy] = field(factory=list[_Copy])
    commits: Array = None

    def __attrs_post_init__(self) -> None:
        self.commits = np.zeros(self.accesses.threads, np.int64)

    def _lanes(self, mask: Mask) -> Array:
        return np.arange(self.accesses.threads) if mask is None else np.flatnonzero(mask)

    def _spread(self, value: Array) -> Array:
        return np.broadcast_to(np.asarray(value), (self.accesses.threads,))

    # ------------------------------------------------------------------------------------ copies

    def copy(self, number: int, target: Array, source: Array, size: int, given: Mask, mask: Mask) -> None:
        """``cp.async``: ``size`` bytes a lane, zeros beyond the ``given`` ones."""
        moved = self.accesses.copy(number, target, source, size, given, mask)
        active = np.ones(self.accesses.threads, bool) if moved is None else moved.copy()
        self.pending.append(_Copy(number, self._spread(target), active, size, self.commits.copy()))

    def commit(self, mask: Mask) -> None:
        """Later copies of these threads belong to a new group."""
        self.commits[self._lanes(mask)] += 1

    def wait(self, allowed: int | None, mask: Mask) -> None:
        """All groups but the newest ``allowed`` of these threads are there; None: every copy is."""
        lanes = np.zeros(self.accesses.threads, bool)
        lanes[self._lanes(mask)] = True
        for copy in self.pending:
            done = lanes if allowed is None else lanes & (copy.group < self.commits - allowed)
            ended = copy.mask & done
            if ended.any():  # it may have written until now, whatever ordered its beginning
                self.accesses.log_write(copy.number, copy.target, ended, copy.size)
            copy.mask &= ~done
        self.pending = [copy for copy in self.pending if copy.mask.any()]

    def linger(self) -> None:
        """An interval ends: copies nobody has waited for still write in it."""
        for copy in self.pending:
            self.accesses.log_write(copy.number, copy.target, copy.mask.copy(), copy.size)

    def bulk(
        self, number: int, target: Array, source: Array, size: Array, barrier: Array, ranks: Array | None,
        mask: Mask,
    ) -> None:  # fmt: skip
        """``cp.async.bulk``: made at once, its bytes reported to an mbarrier. ``ranks``: a bit for each block
        of the cluster into whose memory it goes, to one place in all; None: where ``target`` says."""
        target, source, size = self._spread(target), self._spread(source), self._spread(size)
        barrier = self._spread(barrier)
        wanted = np.ones(self.accesses.threads, np.int64) if ranks is None else self._spread(ranks)
        arrivals: list[tuple[Array, Array]] = []
        for rank in range(int(wanted.max()).bit_length()):
            chosen = wanted.astype(np.int64) >> rank & 1 == 1
            here = chosen if mask is None else chosen & mask
            if not here.any():
                continue
            places = (target, barrier)
            if ranks is not None:
                places = tuple(self.accesses.peer(place, np.uint32(rank)) for place in places)
            for length in np.unique(size[here]).tolist():
                self.accesses.move(number, places[0], source, length, here & (size == length))
            arrivals.append((places[1], here))
        for place, here in arrivals:  # it is one copy: nobody knows of a part of it
            self.report(place, size, here)

    def report(self, barrier: Array, size: Array, mask: Mask) -> None:
        """So many bytes have come, which threads wrote: who waits for them knows it, and what these threads
        did before."""
        barrier, size, now = self._spread(barrier), self._spread(size), self.accesses.order.arrives()
        for lane in self._lanes(mask).tolist():
            self._at(int(barrier[lane])).arrived[lane] = now
        self.expect(barrier, -size.astype(np.int64), mask)
        self.accesses.wake()

    # --------------------------------------------------------------------------------- mbarriers

    def begin(self, address: Array, count: Array, mask: Mask) -> None:
        """``mbarrier.init``."""
        address, count = self._spread(address), self._spread(count)
        for lane in self._lanes(mask).tolist():
            expected = int(count[lane])
            nobody = np.zeros(self.accesses.threads, np.int64)
            self.barriers[int(address[lane])] = _Barrier(expected, expected, nobody)

    def _at(self, address: int) -> _Barrier:
        known = self.barriers.get(address)
        if known is None:  # never initialised: nobody can pass it
            known = self.barriers[address] = _Barrier(
                1 << 20, 1 << 20, np.zeros(self.accesses.threads, np.int64)
            )
        return known

    def expect(self, address: Array, size: Array, mask: Mask) -> None:
        """Bytes of bulk copies to wait for, or (negative) that have come."""
        address, size = self._spread(address), self._spread(size)
        for lane in self._lanes(mask).tolist():
            barrier = self._at(int(address[lane]))
            barrier.transactions += int(size[lane])
            self._complete(barrier)

    def arrive(self, address: Array, count: Array, mask: Mask, drops: bool = False) -> Array:
        """The phase in which each thread arrived. ``drops``: later phases do not expect it."""
        address, count = self._spread(address), self._spread(count)
        now = self.accesses.order.arrives()
        states = np.zeros(self.accesses.threads, np.uint64)
        for lane in self._lanes(mask).tolist():
            barrier = self._at(int(address[lane]))
            states[lane] = barrier.phase
            barrier.arrived[lane] = now
            barrier.pending -= int(count[lane])
            barrier.expected -= int(count[lane]) if drops else 0
            self._complete(barrier)
        self.accesses.wake()
        return states

    def _complete(self, barrier: _Barrier) -> None:
        if barrier.pending > 0 or barrier.transactions != 0:
            return
        barrier.complete = {barrier.phase: barrier.arrived}
        barrier.arrived = np.zeros(self.accesses.threads, np.int64)
        barrier.phase += 1
        barrier.pending = barrier.expected

    def passed(self, address: Array, state: Array, parity: bool, mask: Mask) -> Array:
        """Whether the phase of each thread is over; those for whom it is come after all who arrived in it."""
        address, state = self._spread(address), self._spread(state)
        found = np.zeros(self.accesses.threads, bool)
        order = self.accesses.order
        order.sequence += 1
        groups: dict[int, list[int]] = {}
        for lane in self._lanes(mask).tolist():
            groups.setdefault(int(address[lane]), []).append(lane)
        for where, lanes in groups.items():
            barrier, given = self._at(where), state[lanes].astype(np.int64)
            over = (barrier.phase & 1) != (given & 1) if parity else barrier.phase > given
            found[np.array(lanes)[over]] = True
            arrived = barrier.complete.get(barrier.phase - 1)
            if over.any() and arrived is not None:
                after = np.zeros(self.accesses.threads, bool)
                after[np.array(lanes)[over]] = True
                order.meet(arrived, after)
        missed = np.zeros(self.accesses.threads, bool)
        missed[self._lanes(mask)] = True
        self.accesses.rest(missed & ~found)
        return found
