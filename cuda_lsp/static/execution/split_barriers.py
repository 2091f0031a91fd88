"""Barriers of which threads arrive and wait apart: barrier objects, and named barriers of some threads.

What a thread did before it arrived comes before what those that wait for the phase do afterwards; a copy that
is bound to a phase is done when it is complete (PTX ISA, ``mbarrier`` and ``bar``; CUDA C++ Programming
Guide, "Asynchronous Barrier"). Here an execution's operations are written down; at each barrier of the block,
and at the end, they are replayed (``barrier_replay``). Where arrivals may make other phases than those that
the replay takes them for, the block is said to be not decided.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field

from cuda_lsp.ir.program import Barrier, BarrierPhase, BarrierScope
from cuda_lsp.model import Space
from cuda_lsp.static.execution.barrier_phases import ARRIVES, NOBODY, Ints, Operation, Phases
from cuda_lsp.static.execution.barrier_replay import Replay
from cuda_lsp.static.execution.copies import own_access
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.trace import Access, Divergence, spread_out
from cuda_lsp.static.execution.values import Address, Data, Flags, Lanes, distinct


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
    phases: Phases
    meetings: set[int] = field(factory=set[int])  # barriers that stand for one meeting of lanes
    idle: bool = False
    """The last operation was a barrier of the whole block."""

    @staticmethod
    def of(threads: int, blocks: int, active: bool) -> SplitBarriers:
        """No operation yet, in so many blocks of so many threads."""
        each = [_Block(np.zeros(threads, np.int64)) for _ in range(blocks)]
        return SplitBarriers(threads, each, active, Phases(threads))

    # ------------------------------------------------------------------------------ operations

    def step(self, machine: Execution, s: Barrier, mask: Mask) -> bool:
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
        counts: Ints = np.broadcast_to(np.asarray(1 if count is None else count).astype(np.int64), lanes)
        parities = None if parity is None else np.broadcast_to(np.asarray(parity).astype(np.int64), lanes)
        plain = s.phase is BarrierPhase.SYNC and s.scope is BarrierScope.OBJECT
        if plain and self._of_everybody(keys, mask):
            self.idle = True
            return True
        for b, block in enumerate(self.blocks):
            part = slice(b * self.threads, (b + 1) * self.threads)
            here = mask.may[part]
            if here.any():
                mine = None if parities is None else parities[part]
                self._operate(machine, s, block, np.where(here, keys[part], NOBODY), counts[part], mine)
        return False

    def meet(self, machine: Execution, executing: Flags, group: Lanes, barrier: Barrier) -> None:
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
                key = self.phases.barrier(b, (machine.sequence, int(name)))
                self.phases.states[key].counts = [(0, int(members.sum()))]
                keys[members] = key
                self.meetings.add(key)
            if here.any():
                self._append(machine, block, barrier, keys, np.ones(self.threads, np.int64), None)

    def _keys(self, machine: Execution, s: Barrier, mask: Mask) -> Ints | None:
        """The number of the barrier in each lane; None: not known."""
        if s.object is None:
            place = machine.eval.scalar(s.id) if s.id is not None else 0
            space: object = s.scope
        else:
            value = machine.eval.value(s.object)
            if not isinstance(value, Address) or value.array.space is not Space.SHARED:
                return None
            place, space = value.offset, value.array.id
        if isinstance(place, Data):
            return None
        places: Ints = np.broadcast_to(np.asarray(place).astype(np.int64), mask.may.shape)
        if mask.may.ndim != 1:
            return None
        result = np.full(mask.may.shape, NOBODY)
        block_of = np.arange(len(result)) // self.threads
        for b in range(len(self.blocks)):
            here = mask.may & (block_of == b)
            for one in distinct(places[here]):
                key = self.phases.barrier(b, (space, int(one)))
                result[here & (places == one)] = key
        return result

    def _of_everybody(self, keys: Ints, mask: Mask) -> bool:
        """Whether all threads of each block meet here, in a phase that counts just them."""
        if not mask.may.all():
            return False
        by_block = np.reshape(keys, (-1, self.threads))
        if (by_block != by_block[:, :1]).any():
            return False
        for b, key in enumerate(int(k) for k in by_block[:, 0]):
            state = self.phases.states[key]
            number = int(state.arrivals[0])
            if state.expected(number) != self.threads or state.broken or self.blocks[b].lost:
                return False
            if (state.arrivals != number).any() or not self._complete_before(b, key, number):
                return False
        for b, key in enumerate(int(k) for k in by_block[:, 0]):
            state = self.phases.states[key]
            self.blocks[b].base.add(self.phases.phase(key, int(state.arrivals[0])))
            state.arrivals += 1
        return True

    def _complete_before(self, block: int, key: int, number: int) -> bool:
        return number == 0 or self.phases.phase(key, number - 1) in self.blocks[block].base

    def _operate(
        self, machine: Execution, s: Barrier, block: _Block, keys: Ints, counts: Ints, parity: Ints | None
    ) -> None:
        if s.phase is BarrierPhase.INIT:
            for key in distinct(keys[keys != NOBODY]):
                state = self.phases.states[int(key)]
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
                    self.phases.states[int(key)].counts = [(0, self.threads)]
            self._append(machine, block, s, keys, counts, parity)

    def _named(self, machine: Execution, keys: Ints, counts: Ints | None) -> Ints:
        """Arrivals at a named barrier are of whole warps; what it counts stands with each."""
        warp = machine.trace.gpu.warp_size
        weight = np.ones(self.threads, np.int64)
        for key in distinct(keys[keys != NOBODY]):
            mine = np.flatnonzero(keys == key)
            count = self.threads if counts is None else int(counts[mine[0]])
            self.phases.states[int(key)].counts = [(0, -(-count // warp) * warp)]
            for one in distinct(mine // warp):
                members = mine[mine // warp == one]
                weight[members[0]] += warp - len(members)
        return weight

    def _append(
        self, machine: Execution, block: _Block, s: Barrier, keys: Ints, weight: Ints, parity: Ints | None
    ) -> None:
        phase = np.full(self.threads, NOBODY)
        for key in distinct(keys[keys != NOBODY]):
            state, mine = self.phases.states[int(key)], keys == key
            arrives = s.phase in ARRIVES
            numbers = state.arrivals[mine] - (not arrives)
            named = {int(n): self.phases.phase(int(key), int(n)) for n in distinct(numbers) if n >= 0}
            phase[mine] = [named.get(int(n), NOBODY) for n in numbers]
            if arrives:
                state.arrivals[mine] += 1
            if s.phase is BarrierPhase.DROP:
                last = int(numbers.max())
                left = (state.expected(last + 1) or 0) - int(weight[mine].sum())
                state.counts = [*state.counts, (last + 1, left)]
        if s.phase is BarrierPhase.WAIT and parity is None and (phase[keys != NOBODY] == NOBODY).any():
            block.lost = (
                block.lost or f"line {s.site.range.start.line}: `{s.site.text}` waits without arriving"
            )
        operation = Operation(s, machine.sequence, phase, keys, weight, parity)
        block.operations.append(operation)
        columns = np.stack([block.label, keys, phase, weight, weight if parity is None else parity])
        _, label = np.unique(columns, axis=1, return_inverse=True)
        fresh = int(block.label.max()) + 1
        block.label = np.where(keys == NOBODY, block.label, fresh + np.reshape(label, -1))

    def _bind(self, machine: Execution, block: _Block, keys: Ints) -> None:
        start = self.blocks.index(block) * self.threads
        threads = np.flatnonzero(keys != NOBODY)
        phases = np.empty(len(threads), np.int64)
        for key in distinct(keys[threads]):
            own = keys[threads] == key
            numbers = self.phases.states[int(key)].arrivals[threads[own]]
            told = {int(n): self.phases.phase(int(key), int(n)) for n in distinct(numbers)}
            phases[own] = [told[n] for n in numbers.tolist()]
        machine.copies.bind(start + threads, phases)

    def _lose(self, machine: Execution, s: Barrier, why: str) -> None:
        what = f"line {s.site.range.start.line}: `{s.site.text}`: {why}"
        machine.not_modelled(what)
        for block in self.blocks:
            block.lost = block.lost or what

    def state(self, active: Mask) -> object:
        """Hashable; equal where the coming rounds of a loop of these lanes meet the same phases."""
        if not self.phases.states:
            return ()
        if not active.may.all():
            return (sum(len(b.operations) for b in self.blocks), len(self.phases.places))
        lasting = [s for i, s in enumerate(self.phases.states) if i not in self.meetings]
        return tuple((s.arrivals - (s.arrivals.min() // 2 * 2)).tobytes() for s in lasting)

    # --------------------------------------------------------------------------------- replay

    def settle(self, machine: Execution) -> None:
        """All threads meet, or the kernel ends: replay what they did since they last met."""
        if not self.active:
            return
        for b, block in enumerate(self.blocks):
            if block.operations and not block.lost:
                replay = Replay(self.phases, block.operations, block.label, block.base)
                replay.run()
                block.lost = replay.lost
                interval = machine.clock[b]
                machine.path.orders[b, interval] = order = replay.order()
                if order.ends:
                    machine.path.ended.setdefault(b, interval)
                self._judge(machine, b, block, replay)
            if block.lost:
                machine.trace.not_decided(block.lost)
                machine.path.blurred = block.lost
            self._check_own(machine, b, block)
            machine.copies.complete(slice(b * self.threads, (b + 1) * self.threads), block.base)
            block.operations = []
            block.label = np.zeros(self.threads, np.int64)
        machine.copies.touched.clear()
        known = set[int]().union(*(block.base for block in self.blocks))
        for phase in known & self.phases.filled.keys():
            del self.phases.filled[phase]
        for filling in self.phases.filled.values():
            filling.seen, filling.complete = None, set[int]()

    def _judge(self, machine: Execution, b: int, block: _Block, replay: Replay) -> None:
        """What everybody knows from now on, and who waits in vain."""
        for complete in replay.complete:
            block.base |= complete
        bound = machine.copies.phases()
        for key, number in (self.phases.places[p] for p in list(self.phases.filled)):
            phase = self.phases.phase(key, number)
            filling = self.phases.filled.get(phase)
            full = filling is not None and filling.arrived == self.phases.states[key].expected(number)
            if full and phase not in bound:
                block.base.add(phase)
        stuck = replay.stuck()
        if stuck is None and not block.lost and machine.path.counted:
            self._judge_late(machine, b, replay)
        if stuck is None or block.lost:
            return
        thread, operation, phase = stuck
        if not machine.path.counted:
            where = f"line {operation.barrier.site.range.start.line}: `{operation.barrier.site.text}`"
            machine.trace.not_decided(f"{where}: whether as many arrive as its barrier counts is not known")
            return
        key, number = self.phases.places[phase]
        expected, arrived = self.phases.states[key].expected(number), self.phases.filled[phase].arrived
        if operation.barrier.scope is BarrierScope.NAMED:
            number = machine.eval.scalar(operation.barrier.id) if operation.barrier.id is not None else 0
            machine.trace.not_decided(f"barrier {number} is not reached by as many threads as it counts")
            return
        why = (
            f"{operation.barrier.site.text} waits for ever: its barrier counts {expected} arrivals a phase, "
        )
        why += "one comes" if arrived == 1 else f"{arrived or 'none'} come"
        lane = b * self.threads + thread
        machine.path.divergences.append(Divergence(operation.barrier, lane, lane, False, None, why))

    def _judge_late(self, machine: Execution, b: int, replay: Replay) -> None:
        """Who waits in vain when others were quicker."""
        overtaken = replay.overtaken()
        if overtaken is None:
            return
        thread, operation, phase = overtaken
        site, lane = operation.barrier.site, b * self.threads + thread
        parity = self.phases.places[phase][1] & 1
        why = (
            f"{site.text} waits for ever if it comes late: nothing makes it come before the phase with "
            f"parity {parity} is complete, and the next phase never is"
        )
        machine.path.divergences.append(Divergence(operation.barrier, lane, lane, False, None, why))

    def _check_own(self, machine: Execution, b: int, block: _Block) -> None:
        """A thread's own accesses of bytes that its copies are moving."""
        order = machine.path.orders.get((b, machine.clock[b]))
        start = b * self.threads
        for copy, a in machine.copies.touched:
            assert copy.finishes is not None
            for lane in np.flatnonzero(copy.finishes[start : start + self.threads] >= 0):
                done = block.base if a.clock[b] == machine.clock[b] and order is None else frozenset[int]()
                if order is not None:
                    done = order.knowledge(int(order.of[lane]), a.sequence)[1]
                phase = int(copy.finishes[start + lane])
                if phase not in done and meets(copy, a, start + int(lane)):
                    machine.trace.not_decided(own_access(copy, a))
                    break


def meets(copy: Access, a: Access, lane: int) -> bool:
    """Whether the two accesses of one thread may overlap."""
    if not all(np.reshape(x.may, (-1, x.may.shape[-1]))[:, lane].any() for x in (a, copy)):
        return False
    if isinstance(copy.offset, Data) or isinstance(a.offset, Data):
        return True
    offsets = (copy.offset, a.offset)
    mine, other = (
        np.reshape(spread_out(offset, x.may.shape), (-1, x.may.shape[-1]))[:, lane]
        for offset, x in zip(offsets, (copy, a), strict=True)
        if not isinstance(offset, Data)
    )
    return bool(((mine[:, None] < other + a.size) & (other < mine[:, None] + copy.size)).any())
