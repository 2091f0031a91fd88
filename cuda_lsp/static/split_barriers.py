"""Barriers of which threads arrive and wait apart: barrier objects, and named barriers of some threads.

A phase is complete when as many arrivals have come as it counts (PTX ISA, ``mbarrier`` and ``bar``; CUDA C++
Programming Guide, "Asynchronous Barrier"). What a thread did before it arrived comes before what those that
wait for the phase do afterwards; a copy that is bound to a phase is done when it is complete. The operations
of one block between two block barriers are replayed by classes of threads that do the same, each as far as
its waits allow, whatever the order in which branches were executed; what a class then knows of the others is
a vector clock (Mattern 1989).  The n-th arrival of a thread is taken for the n-th phase, and that is checked:
it holds when the thread knows that the phase before is complete. Where it does not, the block is said to be
not decided.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from cuda_lsp.ir.program import Barrier, BarrierPhase, BarrierScope
from cuda_lsp.model import Space
from cuda_lsp.static.trace import Access, Divergence, Path
from cuda_lsp.static.values import Address, Data, Flags, Lanes, distinct

if TYPE_CHECKING:
    from cuda_lsp.static.machine import Machine
    from cuda_lsp.static.masks import Mask

Ints = NDArray[np.int64]
NOBODY = -1
_ARRIVES = (BarrierPhase.ARRIVE, BarrierPhase.SYNC, BarrierPhase.DROP)
_WAITS = (BarrierPhase.WAIT, BarrierPhase.SYNC)


@frozen(eq=False)
class Operation:
    """One execution of one barrier operation in a block; arrays are ``(threads,)``.

    ``phase``: number of the phase that each thread arrives at or waits for, ``NOBODY`` for the others.
    ``object``: the barrier's number; ``weight``: arrivals of each thread. ``parity``: waits for the first phase
    with it that it does not know of.
    """

    barrier: Barrier
    sequence: int
    phase: Ints
    object: Ints
    weight: Ints
    parity: Ints | None = None

    @property
    def arrives(self) -> bool:
        return self.barrier.phase in _ARRIVES

    @property
    def waits(self) -> bool:
        return self.barrier.phase in _WAITS


@frozen(eq=False)
class Order:
    """Who knows what, in one interval of a block.

    ``of``: class of each thread, ``(threads,)``. For each class: the ``times`` (sequences) of its waits, and
    what it knows from each on: ``known`` up to which sequence of each class, ``(classes,)``, and the phases
    that are ``complete``.
    """

    of: Ints
    times: list[list[int]]
    known: list[list[Ints]]
    complete: list[list[frozenset[int]]]

    def knowledge(self, late: int, at: int) -> tuple[Ints, frozenset[int]]:
        """What class ``late`` knows at sequence ``at``."""
        index = bisect_right(self.times[late], at) - 1
        return self.known[late][index], self.complete[late][index]


@define(eq=False)
class _Phase:
    """Arrivals so far, and what those who came knew; ``seen``: ``(classes,)``, None: none in this interval."""

    arrived: int = 0
    seen: Ints | None = None
    complete: set[int] = field(factory=set[int])
    first: int | None = None


@define(eq=False)
class _Object:
    """A barrier of one block. ``counts``: arrivals of a phase, by the phase from which on it holds."""

    name: str
    counts: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    arrivals: Ints = field(factory=lambda: np.zeros(0, np.int64))  # of each thread so far
    generation: int = 0
    broken: bool = False

    def expected(self, phase: int) -> int | None:
        found = [count for since, count in self.counts if since <= phase]
        return found[-1] if found else None


@define(eq=False)
class _Block:
    """The operations of one block since its last block barrier."""

    label: Ints
    base: set[int] = field(factory=set[int])  # phases that everybody knows to be complete
    operations: list[Operation] = field(factory=list[Operation])
    lost: str | None = None


@define(eq=False)
class SplitBarriers:
    """All such barriers of one execution. ``active``: the kernel has some."""

    threads: int
    blocks: list[_Block]
    active: bool
    objects: dict[tuple[int, object], int] = field(factory=dict[tuple[int, object], int])
    states: list[_Object] = field(factory=list[_Object])
    phases: dict[tuple[int, int, int], int] = field(factory=dict[tuple[int, int, int], int])
    phase_of: list[tuple[int, int]] = field(factory=list[tuple[int, int]])  # object, number in it
    filled: dict[int, _Phase] = field(factory=dict[int, _Phase])
    own: list[tuple[Access, Access]] = field(factory=list[tuple[Access, Access]])
    idle: bool = False
    """The last operation was a barrier of the whole block."""

    @staticmethod
    def of(threads: int, blocks: int, active: bool) -> SplitBarriers:
        each = [_Block(np.zeros(threads, np.int64)) for _ in range(blocks)]
        return SplitBarriers(threads, each, active)

    # ------------------------------------------------------------------------------ operations

    def step(self, machine: Machine, s: Barrier, mask: Mask) -> bool:
        """The lanes of ``mask`` execute ``s``. True: it was a barrier of the whole block."""
        self.idle = False
        keys = self._keys(machine, s, mask)
        count = machine.eval.scalar(s.count) if s.count is not None else None
        parity = machine.eval.scalar(s.parity) if s.parity is not None else None
        known = mask.sure and mask.may.ndim == 1 and not isinstance(count, Data)
        if keys is None or not known or isinstance(parity, Data):
            self._lose(machine, s, "which threads it orders is not known")
            return False
        machine.sequence += 1
        lanes = mask.may.shape
        counts: Ints = np.broadcast_to(np.asarray(1 if count is None else count, np.int64), lanes)
        parities = None if parity is None else np.broadcast_to(np.asarray(parity, np.int64), lanes)
        if s.phase is BarrierPhase.SYNC and self._of_everybody(keys, mask):
            self.idle = True
            return True
        for b, block in enumerate(self.blocks):
            part = slice(b * self.threads, (b + 1) * self.threads)
            here = mask.may[part]
            if here.any():
                mine = None if parities is None else parities[part]
                self._operate(machine, s, block, np.where(here, keys[part], NOBODY), counts[part], mine)
        return False

    def meet(self, machine: Machine, executing: Flags, group: Lanes, barrier: Barrier) -> None:
        """A barrier of warps or tiles, which carries on what its threads know."""
        if not self.active:
            return
        machine.sequence += 1
        warp = machine.trace.gpu.warp_size
        for b, block in enumerate(self.blocks):
            here = executing[b * self.threads : (b + 1) * self.threads]
            names = group[b * self.threads : (b + 1) * self.threads] + (np.arange(self.threads) // warp << 33)
            keys = np.full(self.threads, NOBODY)
            for name in distinct(names[here]):
                members = here & (names == name)
                key = self._number(b, (machine.sequence, int(name)), barrier.site.text)
                self._state(key).counts = [(0, int(members.sum()))]
                keys[members] = key
            if here.any():
                self._append(machine, block, barrier, keys, np.ones(self.threads, np.int64), None)

    def _keys(self, machine: Machine, s: Barrier, mask: Mask) -> Ints | None:
        """The number of the barrier in each lane; None: not known."""
        if s.object is None:
            place: object = machine.eval.scalar(s.id) if s.id is not None else 0
            space: object = s.scope
        else:
            value = machine.eval.value(s.object)
            if not isinstance(value, Address) or value.array.space is not Space.SHARED:
                return None
            place, space = value.offset, value.array.id
        if isinstance(place, Data) or not isinstance(place, int | np.ndarray):
            return None
        places: Ints = np.broadcast_to(np.asarray(place, np.int64), mask.may.shape)
        if mask.may.ndim != 1:
            return None
        result = np.full(mask.may.shape, NOBODY)
        block_of = np.arange(len(result)) // self.threads
        for b in range(len(self.blocks)):
            here = mask.may & (block_of == b)
            for one in distinct(places[here]):
                key = self._number(b, (space, int(one)), s.site.text)
                result[here & (places == one)] = key
        return result

    def _number(self, block: int, key: object, name: str) -> int:
        found = self.objects.get((block, key))
        if found is None:
            found = self.objects[block, key] = len(self.states)
            self.states.append(_Object(name, arrivals=np.zeros(self.threads, np.int64)))
        return found

    def _state(self, key: int) -> _Object:
        return self.states[key]

    def _of_everybody(self, keys: Ints, mask: Mask) -> bool:
        """Whether all threads of each block meet here, in a phase that counts just them."""
        if not mask.may.all():
            return False
        by_block = np.reshape(keys, (-1, self.threads))
        if (by_block != by_block[:, :1]).any():
            return False
        for b, key in enumerate(int(k) for k in by_block[:, 0]):
            state = self._state(key)
            number = int(state.arrivals[0])
            if state.expected(number) != self.threads or state.broken or self.blocks[b].lost:
                return False
            if (state.arrivals != number).any() or not self._complete_before(b, key, number):
                return False
        for b, key in enumerate(int(k) for k in by_block[:, 0]):
            state = self._state(key)
            self.blocks[b].base.add(self._phase(key, int(state.arrivals[0])))
            state.arrivals += 1
        return True

    def _complete_before(self, block: int, key: int, number: int) -> bool:
        return number == 0 or self._phase(key, number - 1) in self.blocks[block].base

    def _phase(self, key: int, number: int) -> int:
        name = (key, self._state(key).generation, number)
        found = self.phases.get(name)
        if found is None:
            found = self.phases[name] = len(self.phase_of)
            self.phase_of.append((key, number))
        return found

    def _operate(
        self, machine: Machine, s: Barrier, block: _Block, keys: Ints, counts: Ints, parity: Ints | None
    ) -> None:
        if s.phase is BarrierPhase.INIT:
            for key in distinct(keys[keys != NOBODY]):
                state = self._state(int(key))
                state.counts = [(0, int(counts[keys == key][0]))]
                state.arrivals = np.zeros(self.threads, np.int64)
                state.generation += 1
                state.broken = False
        elif s.phase is BarrierPhase.BIND:
            self._bind(machine, block, keys)
        else:
            if s.scope is BarrierScope.NAMED:
                counts = self._named(machine, keys, counts if s.count is not None else None)
            elif s.scope is BarrierScope.BLOCK:
                for key in distinct(keys[keys != NOBODY]):
                    self._state(int(key)).counts = [(0, self.threads)]
            self._append(machine, block, s, keys, counts, parity)

    def _named(self, machine: Machine, keys: Ints, counts: Ints | None) -> Ints:
        """Arrivals at a named barrier are of whole warps; what it counts stands with each."""
        warp = machine.trace.gpu.warp_size
        weight = np.ones(self.threads, np.int64)
        for key in distinct(keys[keys != NOBODY]):
            mine = np.flatnonzero(keys == key)
            count = self.threads if counts is None else int(counts[mine[0]])
            self._state(int(key)).counts = [(0, -(-count // warp) * warp)]
            for one in distinct(mine // warp):
                members = mine[mine // warp == one]
                weight[members[0]] += warp - len(members)
        return weight

    def _append(
        self, machine: Machine, block: _Block, s: Barrier, keys: Ints, weight: Ints, parity: Ints | None
    ) -> None:
        phase = np.full(self.threads, NOBODY)
        for key in distinct(keys[keys != NOBODY]):
            state, mine = self._state(int(key)), keys == key
            arrives = s.phase in _ARRIVES
            numbers = state.arrivals[mine] - (not arrives)
            named = {int(n): self._phase(int(key), int(n)) for n in distinct(numbers) if n >= 0}
            phase[mine] = [named.get(int(n), NOBODY) for n in numbers]
            if arrives:
                state.arrivals[mine] += 1
            if s.phase is BarrierPhase.DROP:
                last = int(numbers.max())
                left = (state.expected(last + 1) or 0) - int(weight[mine].sum())
                state.counts = [*state.counts, (last + 1, left)]
        if s.phase is BarrierPhase.WAIT and parity is None and (phase[keys != NOBODY] == NOBODY).any():
            block.lost = block.lost or f"line {s.site.range.start.line}: `{s.site.text}` waits without arriving"
        operation = Operation(s, machine.sequence, phase, keys, weight, parity)
        block.operations.append(operation)
        columns = np.stack([block.label, keys, phase, weight, weight if parity is None else parity])
        _, label = np.unique(columns, axis=1, return_inverse=True)
        fresh = int(block.label.max()) + 1
        block.label = np.where(keys == NOBODY, block.label, fresh + np.reshape(label, -1))

    def _bind(self, machine: Machine, block: _Block, keys: Ints) -> None:
        start = self.blocks.index(block) * self.threads
        for thread in np.flatnonzero(keys != NOBODY):
            key = int(keys[thread])
            number = int(self._state(key).arrivals[thread])
            machine.copies.bind(start + int(thread), self._phase(key, number))

    def _lose(self, machine: Machine, s: Barrier, why: str) -> None:
        what = f"line {s.site.range.start.line}: `{s.site.text}`: {why}"
        machine.not_modelled(what)
        for block in self.blocks:
            block.lost = block.lost or what

    def state(self, active: Mask) -> object:
        """Hashable; equal where the coming rounds of a loop of these lanes meet the same phases."""
        if not self.states:
            return ()
        if not active.may.all():
            return (sum(len(b.operations) for b in self.blocks), len(self.phase_of))
        counts = [s.arrivals - (s.arrivals.min() // 2 * 2) for s in self.states if len(s.counts)]
        return tuple(c.tobytes() for c in counts)

    # --------------------------------------------------------------------------------- replay

    def settle(self, machine: Machine) -> None:
        """All threads meet, or the kernel ends: replay what they did since they last met."""
        for b, block in enumerate(self.blocks):
            if block.operations and not block.lost:
                replay = _Replay(self, block)
                replay.run()
                interval = machine.clock[b]
                machine.path.orders[b, interval] = replay.order()
                self._judge(machine, b, block, replay)
            if block.lost:
                machine.trace.not_decided(block.lost)
                machine.path.blurred = block.lost
            self._check_own(machine, b, block)
            machine.copies.complete(slice(b * self.threads, (b + 1) * self.threads), block.base)
            block.operations = []
            block.label = np.zeros(self.threads, np.int64)
        self.own.clear()
        known = set[int]().union(*(block.base for block in self.blocks))
        self.filled = {phase: filling for phase, filling in self.filled.items() if phase not in known}
        for filling in self.filled.values():
            filling.seen, filling.complete = None, set[int]()

    def _judge(self, machine: Machine, b: int, block: _Block, replay: _Replay) -> None:
        """What everybody knows from now on, and who waits in vain."""
        for complete in replay.complete:
            block.base |= complete
        bound = machine.copies.phases()
        for key, number in (self.phase_of[p] for p in list(self.filled)):
            phase = self._phase(key, number)
            filling = self.filled.get(phase)
            full = filling is not None and filling.arrived == self._state(key).expected(number)
            if full and phase not in bound:
                block.base.add(phase)
        stuck = replay.stuck()
        if stuck is None or block.lost:
            return
        thread, operation, phase = stuck
        key, number = self.phase_of[phase]
        expected, arrived = self._state(key).expected(number), self.filled[phase].arrived
        if operation.barrier.scope is BarrierScope.NAMED:
            number = machine.eval.scalar(operation.barrier.id) if operation.barrier.id is not None else 0
            machine.trace.not_decided(f"barrier {number} is not reached by as many threads as it counts")
            return
        why = f"{operation.barrier.site.text} waits for ever: its barrier counts {expected} arrivals a phase, "
        why += "one comes" if arrived == 1 else f"{arrived or 'none'} come"
        lane = b * self.threads + thread
        machine.path.blurred = why  # what stands behind it never happens
        machine.path.divergences.append(Divergence(operation.barrier, lane, lane, False, None, why))

    def _check_own(self, machine: Machine, b: int, block: _Block) -> None:
        """A thread's own accesses of bytes that its copies are moving."""
        order = machine.path.orders.get((b, machine.clock[b]))
        start = b * self.threads
        for copy, a in self.own:
            assert copy.finishes is not None
            for lane in np.flatnonzero(copy.finishes[start : start + self.threads] >= 0):
                done = block.base if a.clock[b] == machine.clock[b] and order is None else frozenset[int]()
                if order is not None:
                    done = order.knowledge(int(order.of[lane]), a.sequence)[1]
                phase = int(copy.finishes[start + lane])
                if phase not in done and meets(copy, a, start + int(lane)):
                    machine.trace.not_decided(own_access(copy, a))
                    break


def own_access(copy: Any, a: Access) -> str:
    """A thread touches what its own copy may still move, for people."""
    what = f"touches {a.array.name} while the copy of line {copy.site.range.start.line} may be under way"
    return f"line {a.site.range.start.line}: `{a.site.text}` {what}"


def meets(copy: Access, a: Access, lane: int) -> bool:
    """Whether the two accesses of one thread may overlap."""
    if not np.reshape(a.may, (-1, a.may.shape[-1]))[:, lane].any():
        return False
    if not np.reshape(copy.may, (-1, copy.may.shape[-1]))[:, lane].any():
        return False
    if isinstance(copy.offset, Data) or isinstance(a.offset, Data):
        return True
    mine, other = (
        np.reshape(np.broadcast_to(x.offset, x.may.shape), (-1, x.may.shape[-1]))[:, lane] for x in (copy, a)
    )
    return bool(((mine[:, None] < other + a.size) & (other < mine[:, None] + copy.size)).any())


class _Replay:
    """The operations of one block, class by class."""

    def __init__(self, barriers: SplitBarriers, block: _Block) -> None:
        labels, first, of = np.unique(block.label, return_index=True, return_inverse=True)
        self.barriers, self.block = barriers, block
        self.of: Ints = np.reshape(of, -1)
        self.first: Ints = first
        self.classes = len(labels)
        self.sizes = [int((self.of == c).sum()) for c in range(self.classes)]
        self.todo = [[o for o in block.operations if o.object[thread] != NOBODY] for thread in first]
        self.at = [0] * self.classes
        self.arrived = [False] * self.classes
        self.known: list[Ints] = [np.zeros(self.classes, np.int64) for _ in labels]
        self.complete: list[set[int]] = [set(block.base) for _ in labels]
        self.times = [[-1] for _ in labels]
        self.knowledge = [[k.copy()] for k in self.known]
        self.completed = [[frozenset(c)] for c in self.complete]

    def run(self) -> None:
        """Until nobody gets on."""
        moved = True
        while moved and not self.block.lost:
            moved = False
            for c in range(self.classes):
                while self.at[c] < len(self.todo[c]) and self._advance(c, self.todo[c][self.at[c]]):
                    self.at[c] += 1
                    self.arrived[c] = False
                    moved = True

    def order(self) -> Order:
        return Order(self.of, self.times, self.knowledge, self.completed)

    def stuck(self) -> tuple[int, Operation, int] | None:
        """A thread that waits in vain: thread, operation, phase."""
        for c in range(self.classes):
            if self.at[c] < len(self.todo[c]):
                operation = self.todo[c][self.at[c]]
                phase = self._awaited(c, operation)
                if phase is not None:
                    self.barriers.filled.setdefault(phase, _Phase())
                    return int(self.first[c]), operation, phase
        return None

    def _advance(self, c: int, o: Operation) -> bool:
        """Class ``c`` executes ``o`` unless it has to wait."""
        if o.arrives and not self.arrived[c]:
            self._arrive(c, o)
            self.arrived[c] = True
        return not o.waits or self._wait(c, o)

    def _arrive(self, c: int, o: Operation) -> None:
        thread = self.first[c]
        phase, key = int(o.phase[thread]), int(o.object[thread])
        state, number = self.barriers.states[key], self.barriers.phase_of[phase][1]
        expected = state.expected(number)
        before = self.barriers._phase(key, number - 1) if number else None  # noqa: SLF001  # pyright: ignore
        if state.broken:
            return
        where = f"line {o.barrier.site.range.start.line}: `{o.barrier.site.text}`"
        if expected is None:
            self.block.lost = f"{where}: how many arrivals its barrier counts is not known"
            return
        if before is not None and before not in self.complete[c]:
            self.block.lost = f"{where}: which arrivals make one phase is not known"
            return
        filling = self.barriers.filled.setdefault(phase, _Phase())
        if filling.seen is None:
            filling.seen = np.zeros(self.classes, np.int64)
        earlier = filling.seen > 0
        filling.arrived += int(o.weight[self.of == c].sum())
        concurrent = bool((self.known[c][earlier] < filling.seen[earlier]).all())
        filling.seen = np.maximum(filling.seen, self.known[c])
        filling.seen[c] = max(int(filling.seen[c]), o.sequence)
        filling.complete |= self.complete[c]
        if filling.arrived > expected:  # some get on without waiting for the others
            if concurrent and o.barrier.scope is BarrierScope.OBJECT and number == 0:
                state.broken = True
            else:
                self.block.lost = f"{where}: which arrivals make one phase is not known"

    def _awaited(self, c: int, o: Operation) -> int | None:
        """The phase that class ``c`` waits for; None: it goes on at once."""
        thread = self.first[c]
        if o.parity is None:
            return int(o.phase[thread])
        key, number = int(o.object[thread]), 0
        phases = self.barriers._phase  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        while phases(key, number) in self.complete[c]:
            number += 1
        return phases(key, number) if number & 1 == int(o.parity[thread]) & 1 else None

    def _wait(self, c: int, o: Operation) -> bool:
        phase = self._awaited(c, o)
        if phase is None or self.block.lost:
            return True
        key, number = self.barriers.phase_of[phase]
        state = self.barriers.states[key]
        if state.broken:
            return True
        filling = self.barriers.filled.get(phase)
        if filling is None or filling.arrived < (state.expected(number) or 0):
            return phase in self.block.base
        if filling.seen is not None:
            self.known[c] = np.maximum(self.known[c], filling.seen)
        self.complete[c] |= filling.complete | {phase}
        self.times[c].append(o.sequence)
        self.knowledge[c].append(self.known[c].copy())
        self.completed[c].append(frozenset(self.complete[c]))
        return True


# -------------------------------------------------------------------------------------- questions


def orders(path: Path, a: Access, b: Access, lanes_a: Lanes, lanes_b: Lanes, threads: int) -> Flags:
    """Where such a barrier stands between the two accesses, in one direction or the other (one block)."""
    found = np.zeros(len(lanes_a), bool)
    if not len(lanes_a):
        return found
    block = int(lanes_a[0]) // threads
    order = path.orders.get((block, a.clock[block]))
    if order is None or a.clock[block] != b.clock[block]:
        return found
    for x, of_x, y, of_y in ((a, lanes_a, b, lanes_b), (b, lanes_b, a, lanes_a)):
        early, late = order.of[of_x % threads], order.of[of_y % threads]
        finishes = None if x.finishes is None else x.finishes[of_x]
        for c in distinct(late):
            known, complete = order.knowledge(int(c), y.sequence)
            mine = late == c
            before = known[early] > x.sequence
            if finishes is not None:
                done = np.isin(finishes, list(complete))
                before = np.where(finishes >= 0, done, before)
            found |= mine & before
    return found


def order_all(path: Path, a: Access, b: Access, block: int, threads: int) -> bool:
    """Whether every two threads are ordered there."""
    order = path.orders.get((block, a.clock[block]))
    if order is None or a.clock[block] != b.clock[block]:
        return False
    here = slice(block * threads, (block + 1) * threads)
    firsts: list[Ints] = []
    for x in (a, b):
        lanes = np.flatnonzero(np.reshape(x.may, (-1, x.may.shape[-1])).any(axis=0)[here])
        _, first = np.unique(order.of[lanes], return_index=True)
        firsts.append(lanes[first] + block * threads)
    lanes_a, lanes_b = (np.ravel(m) for m in np.meshgrid(*firsts))
    return bool(orders(path, a, b, lanes_a, lanes_b, threads).all())
