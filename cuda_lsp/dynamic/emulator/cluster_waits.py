"""Where blocks of a cluster wait for one another: ``barrier.cluster``, in two steps, to arrive and to wait.

Source: PTX ISA 9.0, 9.7.13.4 "barrier.cluster": a phase ends when every thread of the cluster that has not
left has arrived. What a thread did before it arrived is known to those that wait, unless it arrived
``relaxed``: then only what a fence had published. What it does between its arrival and its wait nobody
learns of.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.lanes import distinct
from cuda_lsp.dynamic.emulator.program import Block
from cuda_lsp.dynamic.emulator.services import Services
from cuda_lsp.dynamic.emulator.threads import Threads

Array = Any

PARKED = 3


@define(eq=False)
class _Phase:
    """One that has ended: what each thread told of itself (a time, 0: nothing), when the first arrived, who
    took part and who has not passed yet."""

    told: Array
    first: int
    members: Array
    left: Array


@define(eq=False, slots=False)
class ClusterWaits:
    """The cluster barriers of one launch. ``arrived``: when each thread came, ``told``: until when it tells
    what it did, both 0 before it comes. ``passes``: its phase has ended, and it has not waited yet."""

    services: Services
    at: Threads
    phases: dict[int, _Phase] = field(factory=dict[int, _Phase])  # by cluster: the last one

    def __attrs_post_init__(self) -> None:
        self.order, self.lanes = self.services.order, self.services.lanes
        self.cluster = self.lanes.cluster
        self.arrived = np.zeros(self.services.threads, np.int64)
        self.told = np.zeros(self.services.threads, np.int64)
        self.passes = np.zeros(self.services.threads, bool)

    def come(self, block: Block, number: int, group: Array) -> Array:
        """The threads of ``group`` execute the arrival or the wait that ends ``block``. Which go on."""
        assert block.barrier is not None
        if not block.barrier.arrive:
            self.at.pc = np.where(group, number, self.at.pc)
            self.at.parked[group] = PARKED
            return self._pass(group)
        now = self.order.arrives()
        self.arrived[group] = now
        self.told[group] = self.order.fenced_at[group] if block.barrier.relaxed else now
        self.at.pc = np.where(group, block.targets[0], self.at.pc)
        return self._complete(distinct(self.cluster[group]).tolist())

    def release(self) -> Array:
        """End the phases of which the missing threads have left. Which threads go on."""
        return self._complete(distinct(self.cluster[self.at.parked == PARKED]).tolist())

    def _complete(self, clusters: list[int]) -> Array:
        """End the phase of each of these clusters whose living threads have all arrived."""
        ended = np.zeros(len(self.arrived), bool)
        for number in clusters:
            mine = self.cluster == number
            living = mine & self.at.alive
            if not living.any() or not self.arrived[living].all():
                continue
            came = mine & (self.arrived > 0)
            told = np.where(came, self.told, 0)
            self.phases[number] = _Phase(told, int(self.arrived[came].min()), living, living.copy())
            self.arrived[mine] = self.told[mine] = 0
            self.passes |= living
            ended |= living
        return self._pass(ended & (self.at.parked == PARKED))

    def _pass(self, waiting: Array) -> Array:
        """Let those of ``waiting`` go on whose phase has ended."""
        going = waiting & self.passes
        if not going.any():
            return going
        self.passes &= ~going
        self.at.parked[going] = 0
        self.at.pc = np.where(going, self.at.pc + 1, self.at.pc)
        for number in distinct(self.cluster[going]).tolist():
            phase, mine = self.phases[number], going & (self.cluster == number)
            self.order.meet(phase.told, mine)
            phase.left &= ~mine
            whole = bool((phase.told[self.cluster == number] > 0).all())
            if whole and not phase.left.any():
                self.order.gate(number, phase.first)
        return going

    def meets_blocks(self, going: Array) -> bool:
        """Whether it was a barrier of whole blocks, too: all that live in them go on, who told all they did,
        and nothing was accessed since the first of them arrived."""
        detector = self.services.detector
        if detector is None:
            return True
        blocks = np.isin(self.lanes.block, distinct(self.lanes.block[going]))
        if (self.at.alive & blocks & ~going).any():
            return False
        phases = [self.phases[number] for number in distinct(self.cluster[going]).tolist()]
        if any((phase.told[going & phase.members] == 0).any() for phase in phases):
            return False
        last = detector.pending.until()
        return last is None or last < min(phase.first for phase in phases)
