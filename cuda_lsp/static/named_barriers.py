"""Named barriers of some threads: ``bar.sync id, count`` and ``bar.arrive id, count``.

A phase of such a barrier is complete when as many threads have arrived as it counts, whole warps at a time
(PTX ISA, ``bar``). What a thread did before it arrived comes before what those that wait there do afterwards.
Phases are matched in the order of execution; where warps run ahead of each other, as producers and consumers
in loops do, that order is not known, and the barrier is said to be not decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from cuda_lsp.ir.program import Barrier, BarrierPhase
from cuda_lsp.static.trace import Access, Path, Phase
from cuda_lsp.static.values import Data, Flags, Lanes, distinct

if TYPE_CHECKING:
    from cuda_lsp.static.machine import Machine
    from cuda_lsp.static.masks import Mask

NEVER = -1


@define(eq=False)
class NamedBarriers:
    """The phases that are not complete yet, by block and number of the barrier."""

    open: dict[tuple[int, int], Phase] = field(factory=dict[tuple[int, int], Phase])

    def step(self, machine: Machine, s: Barrier, mask: Mask) -> None:
        """The lanes of ``mask`` arrive, and wait unless they only arrive."""
        line = s.site.range.start.line
        number = machine.eval.scalar(s.id) if s.id is not None else 0
        count = machine.eval.scalar(s.count) if s.count is not None else machine.trace.threads
        sure = mask.sure and mask.may.ndim == 1 and not isinstance(number, Data)
        if not sure or not isinstance(count, int) or s.phase is BarrierPhase.WAIT:
            machine.not_modelled(f"line {line}: `{s.site.text}` orders some threads of the block")
            return
        machine.sequence += 1
        numbers: Lanes = np.broadcast_to(np.asarray(number), mask.may.shape)
        block_of = np.arange(len(mask.may)) // machine.trace.threads
        for block in range(machine.blocks):
            here = mask.may & (block_of == block)
            for one in sorted(set[int](numbers[here].tolist())):
                self._arrive(machine, s, (block, one), here & (numbers == one), count)

    def _arrive(self, machine: Machine, s: Barrier, key: tuple[int, int], lanes: Flags, count: int) -> None:
        phase = self.open.setdefault(key, Phase.start(len(lanes)))
        again = (phase.arrived[lanes] != NEVER).any()
        phase.arrived[lanes] = machine.sequence
        if s.phase is BarrierPhase.SYNC:
            phase.passed[lanes] = machine.sequence
        total = _whole_warps(phase.arrived != NEVER, machine.trace.threads, machine.trace.gpu.warp_size)
        if again or total > count:
            at = s.site.range.start.line
            machine.not_modelled(f"line {at}: `{s.site.text}`: which arrivals make one phase is not known")
            del self.open[key]
        elif total == count:
            machine.path.phases.append(phase)
            del self.open[key]

    def finish(self, machine: Machine) -> None:
        """At the end of the kernel: what was never completed is said."""
        if self.open:
            number = min(number for _, number in self.open)
            machine.trace.not_decided(f"barrier {number} is not reached by as many threads as it counts")


def _whole_warps(lanes: Flags, threads: int, warp: int) -> int:
    found = np.flatnonzero(lanes)
    warps = len(distinct(found // threads * threads + found % threads // warp))
    return warps * warp


def orders(path: Path, a: Access, b: Access, lanes_a: Lanes, lanes_b: Lanes) -> Flags:
    """Where a named barrier stands between the two accesses, in one direction or the other."""
    found = np.zeros(len(lanes_a), bool)
    for phase in path.phases:
        for x, of_x, y, of_y in ((a, lanes_a, b, lanes_b), (b, lanes_b, a, lanes_a)):
            arrived, passed = phase.arrived[of_x], phase.passed[of_y]
            found |= (x.sequence < arrived) & (passed != NEVER) & (passed < y.sequence)
    return found


def may_chain(path: Path) -> bool:
    """One thread carries the order of one phase into another: longer chains are not followed."""
    return any(
        bool(((a.passed != NEVER) & (b.arrived > a.passed)).any())
        for a in path.phases
        for b in path.phases
        if a is not b
    )
