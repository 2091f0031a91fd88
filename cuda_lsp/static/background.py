"""What the keystroke path leaves to the solver processes: executions that it had to cut, and proofs.

A kernel is on its way from the text that asks for it to the text that does not: edits of one kernel do
not disturb the others of its file.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Kernel
from cuda_lsp.static import budgets
from cuda_lsp.static.proofs import proof
from cuda_lsp.static.solver.answer import Budget, Failure, SolverResult
from cuda_lsp.static.stored_values import first_tier
from cuda_lsp.static.tiers import FirstTier
from cuda_lsp.static.work import PATIENCE

if TYPE_CHECKING:
    from cuda_lsp.static.workers import SolverPool

Answer = FirstTier | SolverResult | Failure
Answered = Callable[[Path, str, Answer], FirstTier | None]
"""Takes in an answer for the kernel of a file with this key; what is known then, None: no more is wanted."""


_ASIDE = "kernels that no text has"
_WAITING_S = 2.0  # for the work that a process is at


def budget_of(settings: Settings) -> Budget:
    """The solver's limits."""
    seconds = settings.solver_budget / 1000
    return Budget(kernel=seconds, query=min(budgets.QUERY_S, seconds))


class Background:
    """The kernels that are on their way. ``answered`` is called from a thread of the pool."""

    def __init__(self, processes: int, settings_of: Callable[[Path], Settings], answered: Answered) -> None:
        self._processes = processes
        self._settings_of = settings_of
        self._answered = answered
        self._pool: SolverPool | None = None
        self._under_way: dict[Path, set[str]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Start the processes before they are needed."""
        if self._pool is None and not self._closed:
            from cuda_lsp.static.workers import SolverPool  # who checks files by itself needs none

            self._pool = SolverPool(self._processes)

    def want(self, path: Path, kernels: Mapping[str, tuple[Kernel, FirstTier]]) -> int:
        """Settle these kernels of a file, by key, and no others any more; how many there is work for."""
        work = {key: found for key, found in kernels.items() if self.has_work(found[1])}
        with self._lock:
            before = self._under_way.get(path, set[str]())
            self._under_way[path] = set(work)
        for key in before - work.keys():
            if self._pool:
                self._pool.cancel((path, key))
        if self._pool and work.keys() - before:
            self._pool.cancel(_ASIDE)
        for key, found in work.items():  # in their order
            if key not in before:
                self._submit(path, key, *found)
        return len(work)

    def once(self, kernel: Kernel, first: FirstTier) -> Answer | None:
        """The next thing that is to be found of a kernel that no text has; blocks.

        None: nothing is, or it was dropped because texts came that need proofs.
        """
        self.start()
        pool = self._pool
        if pool is None or not self.has_work(first):
            return None
        work, seconds = self._work(kernel, first)
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        task = pool.submit(work, seconds, answers.put, owner=_ASIDE, priority=0 if first.cut else 2)
        for _ in range(math.ceil((seconds + _WAITING_S) / budgets.POLL_S)):
            with contextlib.suppress(queue.Empty):
                return answers.get(timeout=budgets.POLL_S)
            if task.cancelled.is_set():
                return None
        return None

    def _work(self, kernel: Kernel, first: FirstTier) -> tuple[Callable[[], Answer], float]:
        """What is to be done next of a kernel, and the seconds that it may take."""
        settings = self._settings_of(kernel.range.path)
        if first.cut:
            return partial(first_tier, kernel, settings), budgets.HANGING_S
        budget = budget_of(settings)
        launches, gpu = first.report.launches, settings.gpu
        return partial(proof, kernel, launches, gpu, budget), PATIENCE * budget.kernel

    def close(self) -> None:
        """End the processes for good."""
        self._closed = True
        if self._pool:
            self._pool.close()
            self._pool = None

    def has_work(self, first: FirstTier) -> bool:
        """Whether there is more to find of a kernel than this."""
        return first.cut or (not first.report.refined and self._settings_of(first.report.range.path).solver)

    def _submit(self, path: Path, key: str, kernel: Kernel, first: FirstTier) -> None:
        self.start()
        pool = self._pool
        if pool is None:
            return

        def deliver(answer: Answer) -> None:
            known = self._answered(path, key, answer)
            more = known is not None and not isinstance(answer, SolverResult) and self.has_work(known)
            with self._lock:
                under_way = self._under_way.get(path, set[str]())
                wanted = key in under_way
                if not more:
                    under_way.discard(key)
            if known is not None and more and wanted:
                self._submit(path, key, kernel, known)

        work, seconds = self._work(kernel, first)
        pool.submit(work, seconds, deliver, owner=(path, key), priority=0 if first.cut else 1)
