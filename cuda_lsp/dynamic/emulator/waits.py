"""Where threads wait: block barriers of all kinds, lanes of a warp for one another, and who is stuck where.

Source: PTX ISA 9.7.13 "bar", "barrier", "bar.warp.sync". A barrier opens when all it counts have come; a
barrier of the whole block also when the threads that are missing have left (and that is told).
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.cluster_waits import ClusterWaits
from cuda_lsp.dynamic.emulator.lanes import distinct
from cuda_lsp.dynamic.emulator.program import BarrierOp, Block
from cuda_lsp.dynamic.emulator.services import Services
from cuda_lsp.dynamic.emulator.threads import Threads
from cuda_lsp.dynamic.runs import WARP

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads


@define
class Waiting:
    """Threads that wait, or would have to: instruction number → threads, and the threads that have left."""

    places: dict[int, Array]
    exited: Array
    spinning: bool = False
    late: bool = False


@define(eq=False, slots=False)
class Waits:
    """The barriers of one launch. ``stuck``: what opened or ended although threads were missing.

    ``arrived``: when each thread came to a named barrier that it does not wait at, 0: not. ``counted``:
    barriers with a count at which threads wait.
    """

    services: Services
    at: Threads
    stuck: list[Waiting] = field(factory=list[Waiting])
    arrived: dict[tuple[int, int], Array] = field(factory=dict[tuple[int, int], Array])
    counted: dict[tuple[int, int], BarrierOp] = field(factory=dict[tuple[int, int], BarrierOp])
    _retried: bool = False

    def __attrs_post_init__(self) -> None:
        self.program, self.lanes, self.order = self.services.program, self.services.lanes, self.services.order
        self.threads = self.services.threads
        self.clusters = ClusterWaits(self.services, self.at)

    def lane_mask(self, block: Block) -> Array | int:
        """The lane mask that a wait names: a constant, or ``(threads,)`` u32 out of a register."""
        wait = block.wait
        assert wait is not None
        return wait.mask if wait.mask is not None else self.at.registers[wait.register].astype(np.uint32)

    def arrive_in_warp(self, block: Block, number: int, group: Array) -> Mask:
        """The lanes of ``group`` whose whole mask has arrived; None (and parked) when there are none."""
        assert block.wait is not None
        here = self.at.alive & (self.at.pc == number)
        named = np.broadcast_to(np.asarray(self.lane_mask(block), np.uint32), (self.threads,))
        living = self.lanes.mask(self.at.alive)[self.lanes.warp]
        if block.wait.anywhere:
            here, named = self._waiting_anywhere(here, named)
            released = np.zeros(self.threads, bool)
            for bits in distinct((named & living)[here]).tolist():  # who names others waits for others
                alike = here & (named & living == bits)
                present = self.lanes.mask(alike)[self.lanes.warp]
                released |= alike & (bits & ~present == 0)
        else:
            present = self.lanes.mask(here)[self.lanes.warp]
            released = here & (named & living & ~present == 0)
        complete = group & released
        # Lanes that came earlier are parked here and leave with the last.
        if not complete.any():
            self.at.parked[group] = 2
            return None
        self.order.warp_sync(released, named, self.at.alive)
        self.at.parked[group & ~complete] = 2
        at_this = released & (self.at.pc == number)
        self.at.parked[at_this] = 0
        others = released & ~at_this  # they stand at another wait of the same kind and go on from there
        self.at.parked[others] = 0
        self.at.pc = np.where(others, self.at.pc + 1, self.at.pc)
        # A wait alone in its block has nothing to execute but what follows it there.
        return at_this

    def _waiting_anywhere(self, here: Array, named: Array) -> tuple[Array, Array]:
        """``here`` and ``named`` with the lanes that are parked at other ``bar.warp.sync``."""
        waiting = np.array([b.wait is not None and b.wait.anywhere for b in self.program.blocks] + [False])
        parked = self.at.alive & waiting[self.at.pc] & (self.at.parked == 2) & ~here
        for number in distinct(self.at.pc[parked]).tolist():
            mask = np.asarray(self.lane_mask(self.program.blocks[number]), np.uint32)
            named = np.where(parked & (self.at.pc == number), mask, named)
        return here | parked, named

    def arrive(self, block: Block, number: int, group: Array, out: Mask) -> None:
        """The threads of ``group`` come to the block barrier that ends ``block``; with the last it opens.

        ``out``: whom the instruction's predicate lets take part; None: all.
        """
        op = block.barrier
        assert op is not None
        if out is not None:  # a predicated barrier: the others pass by
            skips = group & ~self.at.chosen(out, group)
            self.at.pc = np.where(skips, block.targets[0], self.at.pc)
            group = group & ~skips
        if op.cluster:
            self._meet(self.clusters.come(block, number, group))
            return
        self.at.pc = np.where(group, number, self.at.pc)
        identity = np.broadcast_to(np.asarray(self._operand(op.id)), (self.threads,))
        keys = set(zip(self.lanes.block[group].tolist(), identity[group].tolist(), strict=True))
        for key in sorted(keys):
            mine = group & (self.lanes.block == key[0]) & (identity == key[1])
            if op.arrive:
                arrived = self.arrived.get(key, np.zeros(self.threads, np.int64))
                self.arrived[key] = np.where(mine, self.order.arrives(), arrived)
                self.at.pc = np.where(mine, block.targets[0], self.at.pc)
            else:
                self.at.parked[mine] = 1
            self._try_counted(key, op)

    def _operand(self, value: int | str | None) -> Array:
        if isinstance(value, str):
            return self.at.registers[self.program.numbers[value]]
        return np.int64(value or 0)

    def _at(self, key: tuple[int, int]) -> Array:
        """Threads parked at a barrier of that identity."""
        parked = (self.at.parked == 1) & (self.lanes.block == key[0])
        found = np.zeros(self.threads, bool)
        for number in distinct(self.at.pc[parked]).tolist():
            op = self.program.blocks[number].barrier
            if op is not None:
                at = parked & (self.at.pc == number)
                identity = np.broadcast_to(np.asarray(self._operand(op.id)), (self.threads,))
                found |= at & (identity == key[1])
        return found

    def _try_counted(self, key: tuple[int, int], op: BarrierOp, last: bool = False) -> bool:
        """Open a barrier that counts its threads, if they are there. ``last``: nobody else can come."""
        if op.count is None:
            return False
        waiting = self._at(key)
        arrived = self.arrived.get(key, np.zeros(self.threads, np.int64))
        both: Any = waiting | (arrived > 0)
        count = np.broadcast_to(np.asarray(self._operand(op.count)), (self.threads,))
        expected = int(count[np.flatnonzero(both)[0]]) if both.any() else 0
        # Whole warps count: a warp that has arrived counts with its missing lanes (PTX ISA 9.7.13.1).
        warps = distinct(self.lanes.warp[both])
        missing = self.at.alive & ~both & (self.at.parked == 0) & np.isin(self.lanes.warp, warps)
        enough = len(warps) * WARP >= expected and (last or not missing.any())
        if not both.any() or (not enough and int(both.sum()) < expected):
            self.counted[key] = op
            return False
        self.counted.pop(key, None)
        self.arrived.pop(key, None)
        mine = self.lanes.block == key[0]
        if (both & mine).sum() == (mine & self.at.alive).sum() and not arrived.any():
            self.open(both)
        else:
            self.order.meet(np.where(waiting, self.order.arrives(), arrived), waiting)
        self._reduce(waiting)
        self._pass(waiting)
        return True

    def _pass(self, threads: Array) -> None:
        self.at.parked[threads] = 0
        self.at.pc = np.where(threads, self.at.pc + 1, self.at.pc)

    def release(self) -> bool:
        """Open every block barrier at which all living threads of a block wait. False: none is."""
        unparked = self.at.parked == 2
        passing = np.zeros(self.threads, bool)
        for b in self._complete():
            mine = slice(b * self.lanes.per_block, (b + 1) * self.lanes.per_block)
            alive = self.at.alive[mine]
            places = distinct(self.at.pc[mine][alive])
            ops = [self.program.blocks[p].barrier for p in places.tolist()]
            if len({op.id for op in ops if op}) > 1 or any(op and op.count is not None for op in ops):
                continue
            if len(places) > 1 or not alive.all():
                living = np.zeros(self.threads, bool)
                living[mine] = alive
                self.exited_at(self.program.blocks[int(places[0])], living)
            passing[mine] = alive
        opened = bool(passing.any())
        if opened:
            self.open(passing)
            self._reduce(passing)
            self._pass(passing)
        opened |= self._meet(self.clusters.release())
        if not opened and not (self.at.alive & (self.at.parked == 0)).any():
            for key, op in tuple(self.counted.items()):
                opened |= self._try_counted(key, op, last=True)
        if not opened and unparked.any() and not self._retried:
            # lanes that wait for one another may all have come by now: look at each group again
            self._retried = True
            self.at.parked[unparked] = 0
            return True
        self._retried = False
        return opened

    def _meet(self, going: Array) -> bool:
        """Threads go on behind a barrier of their cluster. False: there are none."""
        there = bool(going.any())
        if there and self.clusters.meets_blocks(going):
            self.open(going)
        return there

    def _complete(self) -> list[int]:
        """The blocks of which all living threads are parked at barriers."""
        blocks = self.lanes.block
        living = np.bincount(blocks[self.at.alive])
        parked = np.bincount(blocks[self.at.alive & (self.at.parked == 1)], minlength=len(living))
        return np.flatnonzero((living > 0) & (living == parked)).tolist()

    def open(self, threads: Mask) -> None:
        """A barrier of whole blocks: one interval ends, the next begins."""
        if self.services.detector is not None:
            self.services.asynchronous.linger()
            self.services.detector.interval_ends(threads)
        self.order.block_barrier(threads)

    def _reduce(self, threads: Array) -> None:
        """The result of ``barrier.red`` for the threads that pass."""
        for number in distinct(self.at.pc[threads]).tolist():
            op = self.program.blocks[number].barrier
            if op is None or op.reduce is None or op.predicate is None or op.result is None:
                continue
            negated = op.predicate.startswith("!")
            held = self.at.registers[self.program.numbers[op.predicate.lstrip("!")]]
            predicate = np.broadcast_to(np.asarray(held), (self.threads,)) ^ negated
            at = threads & (self.at.pc == number)
            slot = self.program.numbers[op.result]
            for b in distinct(self.lanes.block[at]).tolist():
                mine = at & (self.lanes.block == b)
                votes = predicate[threads & (self.lanes.block == b)]
                value: Any = {"popc": votes.sum(), "and": votes.all(), "or": votes.any()}[op.reduce]
                kind = np.dtype(self.program.registers[slot])
                self.at.registers[slot] = np.where(mine, kind.type(value), self.at.registers[slot])

    def exited_at(self, block: Block, living: Array) -> None:
        """A barrier opened although threads of the block have left, or wait at another one."""
        places = {block.last: living}
        for number in distinct(self.at.pc[living & (self.at.parked == 1)]).tolist():
            places[self.program.blocks[number].last] = living & (self.at.pc == number)
        gone = ~self.at.alive & np.isin(self.lanes.block, distinct(self.lanes.block[living]))
        if not any(w.places.keys() == places.keys() for w in self.stuck):
            self.stuck.append(Waiting(places, gone))

    def ended_by(self, number: int, threads: Array) -> None:
        """``threads`` came to an instruction that ends the launch."""
        self.stuck.append(Waiting({number: threads}, ~self.at.alive))

    def stop(self, spinning: bool = False, here: int | None = None, late: bool = False) -> None:
        """Say where all living threads are; ``here``: the block of all; ``late``: the deadline came."""
        if here is not None:
            self.at.pc[:] = here
        places = {
            self.program.blocks[number].last: self.at.alive & (self.at.pc == number)
            for number in distinct(self.at.pc[self.at.alive]).tolist()
        }
        self.stuck.append(Waiting(places, ~self.at.alive, spinning, late))
