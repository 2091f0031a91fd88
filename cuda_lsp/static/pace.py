"""How much of a text is analysed before something is told of it.

Who types waits for some hundredths of a second. A keystroke outside of all kernels may change each of them:
the nearest is looked at, then as many as there is time for. The others are put off, and shown as they were
until nobody types; those whose code was decided before stay decided (``carried``).
"""

from __future__ import annotations

import math
import time

from attrs import field, frozen

from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.source_text import differing
from cuda_lsp.static import budgets
from cuda_lsp.static.deadline import passed


@frozen
class Pace:
    """``until`` and ``last`` are moments of ``time.thread_time``.

    ``until``: behind it an execution is cut, but has ``least`` seconds; inf: none is.
    ``last``: behind it no kernel is begun but the first, those nearest to ``line`` before the others.
    ``decided``: kernels whose code was decided before are put off. ``whole``: what was cut is kept.
    """

    until: float = math.inf
    last: float = math.inf
    line: int = 1
    decided: bool = False
    whole: bool = True
    least: float = field(factory=lambda: budgets.LEAST_EXECUTION_S)

    @classmethod
    def of_trial(cls) -> Pace:
        """Of a text that no document has: all kernels are looked at."""
        return cls(time.thread_time() + budgets.TYPING_S)

    @classmethod
    def of_opening(cls) -> Pace:
        """Of a file that was just opened."""
        return cls(time.thread_time() + budgets.OPENING_S)

    @classmethod
    def of_keystroke(cls, before: str, text: str) -> Pace:
        """Of the text that comes after the one before."""
        until = time.thread_time() + budgets.TYPING_S
        line = text.count("\n", 0, differing(before, text)[0]) + 1
        return cls(until, until, line, decided=True, whole=False)

    @classmethod
    def between_keystrokes(cls, line: int, *, decided: bool) -> Pace:
        """Of a text of which something is told already."""
        now = time.thread_time()
        return cls(now, now + budgets.EARLY_S, line, decided, least=budgets.TYPING_S)

    def begins(self, number: int) -> bool:
        """Whether so many kernels were looked at and there is time for one more."""
        return not number or not passed(self.last)

    def keeps(self, number: int, cut: bool) -> bool:
        """Whether what is found of this kernel is told, or was only begun."""
        return self.whole or not number or not cut

    def until_of(self, number: int) -> float:
        """When the execution of this kernel is cut."""
        return max(self.until, time.thread_time() + (self.least if self.whole or not number else 0.0))

    def nearness(self, kernel: KernelSource) -> int:
        """Lines between a kernel and where somebody types."""
        return max(kernel.range.start.line - self.line, self.line - kernel.range.end.line, 0)
