"""How long accesses are compared: counted work, so that no verdict depends on what else the machine does."""

from __future__ import annotations

import math

from attrs import define

from cuda_lsp.static.deadline import passed

LOOK, CELL, PAIR = 1.2e-5, 2.4e-8, 6e-8
"""Seconds: for two places, or one of an interval's arrays; for a byte range that one thread touches; for two
threads at one. A least-squares fit to kernels of real code."""


@define(eq=False)
class Comparing:
    """What is left: ``seconds`` of counted work, and until ``until`` (of ``time.thread_time``; who waits)."""

    seconds: float = math.inf
    until: float = math.inf

    def over(self, *, looks: int = 1, cells: int = 0, pairs: int = 0) -> bool:
        """Whether there is nothing left after so much more work."""
        self.seconds -= LOOK * looks + CELL * cells + PAIR * pairs
        return self.seconds < 0 or passed(self.until)
