"""Order among the lanes of one warp: vector clocks advanced by ``__syncwarp``, tiles and lane exchanges.

Theory: vector clocks (Mattern 1989; Fidge 1988), one component per lane, kept per warp because these
barriers never order lanes of different warps.  Block barriers are not counted here.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.static.execution.values import Flags, Lanes, distinct

Clocks = NDArray[np.int32]


@frozen(eq=False)
class WarpClock:
    """``seen[l, m]``: the newest step of lane ``m`` of its warp that padded lane ``l`` knows of."""

    seen: Clocks  # (padded lanes, warp size)
    threads: int  # of a block

    @staticmethod
    def start(blocks: int, threads: int, warp_size: int) -> WarpClock:
        """Nobody has seen anything of the others."""
        padded = blocks * (-(-threads // warp_size) * warp_size)
        seen = np.zeros((padded, warp_size), np.int32)
        rows = np.arange(padded)
        seen[rows, rows % warp_size] = 1
        return WarpClock(seen, threads)

    @property
    def warp_size(self) -> int:
        """Lanes of a warp."""
        return self.seen.shape[1]

    def rows(self, lanes: Lanes) -> Lanes:
        """Padded row of each lane (blocks are padded to whole warps)."""
        per_block = -(-self.threads // self.warp_size) * self.warp_size
        return lanes // self.threads * per_block + lanes % self.threads

    def synchronised(self, executing: Flags, group: Lanes) -> WarpClock:
        """The clock after lanes with equal ``group`` of one warp have met. Both ``(lanes,)``."""
        size = self.warp_size
        rows = self.rows(np.flatnonzero(executing))
        names = group[executing]
        seen: Clocks = np.array(self.seen)
        for name in distinct(names):
            members = np.zeros(len(seen), bool)
            members[rows[names == name]] = True
            heard = np.reshape(np.where(members[:, None], self.seen, 0), (-1, size, size)).max(axis=1)
            seen[members] = np.repeat(heard, size, axis=0)[members]
        seen[rows, rows % size] += 1
        return WarpClock(seen, self.threads)

    def knows(self, later: Lanes, earlier: Lanes, before: WarpClock) -> Flags:
        """Whether lane ``later`` (at this clock) is ordered after lane ``earlier`` at clock ``before``.

        Lanes of one warp, elementwise.
        """
        mine, theirs = self.rows(later), self.rows(earlier)
        return self.seen[mine, theirs % self.warp_size] >= before.seen[theirs, theirs % self.warp_size]
