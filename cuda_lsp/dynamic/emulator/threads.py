"""Where each thread of a launch stands, as the machine keeps it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define

from cuda_lsp.dynamic.emulator.services import Services

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads


@define(eq=False, slots=False)
class Threads:
    """Where each thread of a launch stands: the block it executes next, and whether it may.

    ``parked``: 0 runs, 1 at a block barrier, 2 waits for lanes of its warp, 3 for blocks of its cluster.
    ``registers``: those that outlive a block.
    """

    services: Services

    def __attrs_post_init__(self) -> None:
        self.count = self.services.threads
        self.alive: Array = np.ones(self.count, bool)
        self.pc: Array = np.zeros(self.count, np.int64)
        self.parked: Array = np.zeros(self.count, np.int8)
        self.registers: list[Array] = [np.dtype(k).type(0) for k in self.services.program.registers]

    def chosen(self, predicate: Array, group: Mask) -> Array:
        """The threads of ``group`` for which a predicate holds, ``(n,)``."""
        if np.ndim(predicate) == 0:
            predicate = np.full(self.count, bool(predicate))
        return predicate if group is None else predicate & group
