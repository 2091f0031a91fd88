"""Loops that no thread will leave: the state of a launch that comes back is a proof, time alone is none.

The machine is deterministic, so that a launch whose threads, registers and memory are what they were
before, at the same place of the schedule, goes on like that for ever: a lock that is never released, a flag
that nobody sets, lanes that wait for a lane behind them. Looked for by Brent's algorithm, once a launch has
run for a while. Launches that read a clock, that copy asynchronously or whose memory is large are not
looked at.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.services import Services
from cuda_lsp.dynamic.emulator.threads import Threads
from cuda_lsp.dynamic.ptx.opcodes import Role, row_of

_AFTER = 1.0  # seconds
_LARGEST = 64 << 20  # bytes of memory
_OUTSIDE = (
    Role.MBARRIER,
    Role.COPY,
    Role.COPY_WAIT,
    Role.CLUSTER,
)  # what they wait for is not in the memory compared


@define(eq=False, slots=False)
class Endless:
    """Asked now and then whether the launch has come to a state for the second time."""

    services: Services
    at: Threads
    since: float = field(factory=time.monotonic)
    kept: tuple[Any, ...] | None = None
    memory: Any = None
    looks: int = 0
    until: int = 1

    def __attrs_post_init__(self) -> None:
        program, size = self.services.program, self.services.memory.size()
        roles = {row_of(flat.code).role for flat in program.kernel.instructions}
        self.possible = size <= _LARGEST and roles.isdisjoint(_OUTSIDE)

    def seen_before(self, place: tuple[int, int | None]) -> bool:
        """Whether all is as it was. ``place``: where the schedule stands, and where all threads are."""
        if not self.possible or time.monotonic() - self.since < _AFTER:
            return False
        now, memory = self._state(place), self.services.memory
        if self.kept == now and np.array_equal(self.memory, memory.image()):
            return True
        self.looks += 1
        if self.looks >= self.until:
            self.kept, self.memory = now, memory.image()
            self.looks, self.until = 0, 2 * self.until
        return False

    def _state(self, place: tuple[int, int | None]) -> tuple[Any, ...]:
        at = self.at
        arrays = (at.alive, at.pc, at.parked, self.services.resting, *at.registers)
        return (place, *(np.asarray(a).tobytes() for a in arrays))
