"""The SIMT machine: which threads run next.

All threads that stand at one block of the program run together. Where they disagree, those furthest back
in the text go first, so that branches meet again at the earliest point; a thread that spins on another's
progress gets its turn taken away now and then. Threads at a barrier are parked until it opens. When nobody
can move, the launch is stuck and says who waits where.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from attrs import define

from cuda_lsp.dynamic.emulator.endless import Endless
from cuda_lsp.dynamic.emulator.native.launch import NativeLaunch
from cuda_lsp.dynamic.emulator.native.library import LIBRARY
from cuda_lsp.dynamic.emulator.program import Block
from cuda_lsp.dynamic.emulator.services import Services, Stopped
from cuda_lsp.dynamic.emulator.threads import Threads
from cuda_lsp.dynamic.emulator.waits import Waits

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads

_LOOK = 512  # steps between looks whether the launch goes on at all
_SLOW = 4096  # threads: a step of so many takes longer than a look at the clock
_PATIENCE = 64  # jumps back before those who make them rest until the others have gone on
_WORTH_MAKING = 0.25  # seconds that a launch has run when the C engine is made for it
_SHORT_PATIENCE = 8  # where threads may wait for one another in a loop


@define(eq=False, slots=False)
class Machine:
    """One launch of some blocks. ``deadline``: monotonic; ``backwards``: the opposite order of warps.

    ``compiled``: in the C engine; None: once it is there. ``native``: the launch in it.
    """

    services: Services
    deadline: float
    backwards: bool = False
    failure: str | None = None
    late: bool = False
    jumps: int = 0  # back, by some of the threads
    compiled: bool | None = None
    native: NativeLaunch | None = None

    def __attrs_post_init__(self) -> None:
        self.program, self.order = self.services.program, self.services.order
        self.threads = self.services.threads
        self.at = Threads(self.services)
        self.waits = Waits(self.services, self.at)
        self.endless = Endless(self.services, self.at)
        self.begun = time.monotonic()
        self.patience = _SHORT_PATIENCE if self.program.polls else _PATIENCE

    # -------------------------------------------------------------------------------- schedule

    def run(self) -> None:
        """Execute to the end, or until stuck, stopped or out of time."""
        with np.errstate(all="ignore"):
            try:
                self._run()
            except Stopped as stop:
                self.failure = str(stop)
                if stop.number is not None and stop.threads is not None:
                    self.waits.ended_by(stop.number, stop.threads)
        if self.services.detector is not None:
            self.services.asynchronous.linger()
            self.services.detector.finish(cut=self.failure is not None)

    def _run(self) -> None:
        blocks, steps = self.program.blocks, 0
        often = 16 if self.threads < _SLOW else 1
        here: int | None = 0  # where all living threads are, None: apart
        everyone: Mask = None  # the mask of living threads, None: all threads
        while True:
            if self.native is not None and not self.native.is_full:
                ended, (here, everyone, steps, self.jumps) = self.native.advance(
                    here, everyone, steps, self.jumps
                )
                if ended:
                    return
            elif self.native is None and (self.compiled or (steps and steps % (2 * often) == 0)):
                # shorter launches end before it pays
                self._join(often)
            steps += 1
            if steps % often == 0 and time.monotonic() > self.deadline:
                self.late = True
                self.waits.stop(spinning=True, here=here, late=True)
                raise Stopped("the kernel did not finish before the deadline")
            if steps % _LOOK == 0 and self.endless.seen_before((self.jumps % _PATIENCE, here)):
                self.waits.stop(spinning=True, here=here)
                self.failure = "the kernel is stuck: threads wait in a loop for what no thread does"
                return
            if here is not None:
                if here >= len(blocks):
                    return
                block = blocks[here]
                here, everyone = self._together(block, here, everyone)
                if here == -1:
                    return
                if here is not None:
                    continue
            here, everyone = self._apart()
            if here == -1:
                return

    def _join(self, often: int) -> None:
        """Go on in the C engine, where it is there; have it made, where this launch takes long."""
        if self.compiled is False or self.program.fetches:
            return
        library = LIBRARY.get() if self.compiled else LIBRARY.at_once()
        if library is not None:
            self.native = NativeLaunch(
                library, self.services, self.at, self.deadline, self.backwards, often, _LOOK, self.patience,
                self.compiled is True,
            )  # fmt: skip
        elif time.monotonic() - self.begun > _WORTH_MAKING:
            LIBRARY.want()

    def _run_block(self, block: Block, number: int, group: Mask) -> Mask:
        if self.native is not None:
            self.native.meet(number)
        return block.run(self.services, self.at.registers, group)

    def _together(self, block: Block, number: int, everyone: Mask) -> tuple[int | None, Mask]:
        """All living threads execute one block; where they are then (None: apart, -1: gone)."""
        if block.wait is not None:
            self.order.warp_sync(everyone, self.waits.lane_mask(block), everyone)
        out = self._run_block(block, number, everyone)
        match block.kind:
            case "next" | "jump":
                return block.targets[0], everyone
            case "branch":
                return self._branch(block, out, everyone)
            case "exit":
                if out is None:
                    self.at.alive[:] = False
                    return -1, None
                left = self.at.chosen(out, everyone)
                self.at.alive &= ~left
                self.at.pc[:] = block.targets[0]
                if not self.at.alive.any():
                    return -1, None
                return block.targets[0], self.at.alive.copy()
            case "barrier" if self._plain(block, out):
                self.waits.open(None if everyone is None else everyone)
                if everyone is not None:
                    self.waits.exited_at(block, everyone)
                return block.targets[0], everyone
            case _:
                self.at.pc[:] = number
                self._leave(block, number, self.at.alive.copy(), out)
                return None, None

    def _plain(self, block: Block, out: Mask) -> bool:
        op = block.barrier
        return (
            op is not None
            and not op.cluster
            and op.count is None
            and not op.arrive
            and op.reduce is None
            and out is None
            and (isinstance(op.id, int))
        )

    def _branch(self, block: Block, out: Array, everyone: Mask) -> tuple[int | None, Mask]:
        if np.ndim(out) == 0:  # all threads agree
            return block.targets[0 if out else 1], everyone
        taken = self.at.chosen(out, everyone)
        count = int(np.count_nonzero(taken))
        if count == 0:
            return block.targets[1], everyone
        if count == (self.threads if everyone is None else int(np.count_nonzero(everyone))):
            return block.targets[0], everyone
        self.at.pc = np.where(taken, block.targets[0], block.targets[1])
        return None, None

    def _apart(self) -> tuple[int | None, Mask]:
        """One group of threads executes one block."""
        ready = self.at.alive & (self.at.parked == 0)
        if self.services.resting.any():
            eager = ready & ~self.services.resting
            if eager.any():
                ready = eager
            else:
                self.services.resting[:] = False
        places = self.at.pc[ready]
        if not len(places):
            if not self.at.alive.any():
                return -1, None
            if not self.waits.release():
                self.waits.stop()
                self.failure = "the kernel is stuck: its threads wait for one another"
                return -1, None
            return None, None
        number = int(places.max() if self.backwards else places.min())
        tired = self.jumps % self.patience == self.patience - 1  # after one more step: all get on
        if number >= len(self.program.blocks):
            self.at.alive &= self.at.pc != number
            return None, None
        block = self.program.blocks[number]
        group = ready & (self.at.pc == number)
        if block.wait is not None:
            group = self.waits.arrive_in_warp(block, number, group)
            if group is None:
                return None, None
        out = self._run_block(block, number, group)
        self._leave(block, number, group, out)
        if tired:  # they may wait for those who never got a turn
            self.jumps += 1
            self.services.resting |= group
            self.waits.release()
        if block.leads_back and (self.at.pc[group] <= number).any():
            self.jumps += 1
        return self._reunited()

    def _leave(self, block: Block, number: int, group: Array, out: Mask) -> None:
        match block.kind:
            case "next" | "jump":
                self.at.pc = np.where(group, block.targets[0], self.at.pc)
            case "branch":
                taken = self.at.chosen(out, group)
                self.at.pc = np.where(group, np.where(taken, block.targets[0], block.targets[1]), self.at.pc)
            case "table":
                index = np.broadcast_to(np.asarray(out), (self.threads,)).astype(np.int64)
                table = np.asarray(block.targets)
                self.at.pc = np.where(group, table[np.clip(index, 0, len(table) - 1)], self.at.pc)
            case "exit":
                left = group if out is None else self.at.chosen(out, group)
                self.at.alive &= ~left
                self.at.pc = np.where(group, block.targets[0], self.at.pc)
            case _:
                self.waits.arrive(block, number, group, out)

    def _reunited(self) -> tuple[int | None, Mask]:
        if self.at.parked.any():
            return None, None
        places = self.at.pc[self.at.alive]
        if len(places) and (places == places[0]).all():
            return int(places[0]), None if len(places) == self.threads else self.at.alive.copy()
        return (None, None) if len(places) else (-1, None)
