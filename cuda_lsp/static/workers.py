"""Solver processes that can be killed: prewarmed, with deadlines, restarted after a kill.

Z3's own time-outs are not always honoured, so each task runs in a spawned process that is killed when
its deadline passes; the answer is then "undecided", with that reason.  Tasks are pickled kernels;
results are delivered by callback from one dispatcher thread per process, in the order they come.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import pickle
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from attrs import define, field, frozen

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import GpuModel, LaunchConfig, Verdict
from cuda_lsp.static.second_opinion import refine_with_second_opinion
from cuda_lsp.static.solve import Budget, SolverResult

GRACE = 1.0
"""Seconds beyond a task's own budget before its process is killed."""

START_LIMIT = 30.0
"""Seconds a process may take to import Z3 and answer a first question."""


@frozen(eq=False)
class Task:
    """One kernel to decide. ``owner``: what cancels it (a document)."""

    owner: Hashable
    payload: bytes
    deadline: float  # seconds for the whole task
    deliver: Callable[[SolverResult], None]
    cancelled: threading.Event = field(factory=threading.Event)


def undecided(reason: str) -> SolverResult:
    return SolverResult(Verdict.UNDECIDED, (reason,))


def _serve(pipe: Connection) -> None:
    """Body of a solver process: warm up, then answer tasks until the pipe closes."""
    import sys

    sys.setrecursionlimit(20_000)
    importlib.import_module("z3").Solver().check()
    pipe.send("ready")
    while True:
        try:
            task = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(pickle.dumps(_answer(task)))


def _answer(task: bytes) -> SolverResult:
    kernel, launches, gpu, budget = pickle.loads(task)
    try:
        return refine_with_second_opinion(kernel, launches, gpu, budget)
    except Exception as error:  # noqa: BLE001  a bug in the solver must not silence the kernel
        return undecided(f"the solver failed: {type(error).__name__}: {error}")


@define(eq=False)
class _Process:
    """One solver process and the pipe to it."""

    process: Any
    pipe: Connection
    ready: bool = False

    @staticmethod
    def start() -> _Process:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True, name="cuda-lsp-solver")
        process.start()
        theirs.close()
        return _Process(process, ours)

    def wait_ready(self, stop: threading.Event) -> bool:
        if not self.ready and _poll(self.pipe, START_LIMIT, stop):
            try:
                self.ready = self.pipe.recv() == "ready"
            except EOFError:
                self.ready = False
        return self.ready

    def kill(self) -> None:
        self.process.kill()
        self.process.join(2)
        self.pipe.close()


def _poll(pipe: Connection, seconds: float, stop: threading.Event) -> bool:
    """Waits for the pipe to have something to read; False when ``stop`` is set or time is up."""
    step = 0.02
    for _ in range(max(1, round(seconds / step))):
        if pipe.poll(step):
            return True
        if stop.is_set():
            return False
    return False


class SolverPool:
    """``size`` prewarmed solver processes. ``submit`` returns at once; ``close`` kills them all."""

    def __init__(self, size: int = 1) -> None:
        self._tasks: queue.PriorityQueue[tuple[int, int, Task | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._closed = threading.Event()
        self._pending: set[Task] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        kernel: Kernel,
        launches: Sequence[LaunchConfig],
        gpu: GpuModel,
        budget: Budget,
        deliver: Callable[[SolverResult], None],
        *,
        owner: Hashable = None,
        priority: int = 0,
    ) -> Task:
        """Queues a kernel; ``deliver`` is called from a worker thread, unless the task is cancelled."""
        payload = pickle.dumps((kernel, tuple(launches), gpu, budget))
        task = Task(owner, payload, budget.kernel + GRACE, deliver)
        with self._lock:
            self._pending.add(task)
        self._tasks.put((priority, next(self._numbers), task))
        return task

    def cancel(self, owner: Hashable) -> None:
        """Drops the owner's waiting tasks and kills the one in progress; nothing is delivered for them."""
        with self._lock:
            for task in self._pending:
                if task.owner == owner:
                    task.cancelled.set()

    def close(self) -> None:
        """Kills the processes; undelivered tasks stay undelivered."""
        self._closed.set()
        with self._lock:
            for task in self._pending:
                task.cancelled.set()
        for _ in self._threads:
            self._tasks.put((1 << 30, next(self._numbers), None))
        for thread in self._threads:
            thread.join(3)

    # -- dispatcher threads

    def _work(self) -> None:
        process: _Process | None = None
        while not self._closed.is_set():
            process = process or _Process.start()
            task = self._tasks.get()[2]
            if task is None:
                break
            result: SolverResult | None = None
            if not task.cancelled.is_set():
                result, alive = self._run(process, task)
                if not alive:
                    process.kill()
                    process = None
            with self._lock:
                self._pending.discard(task)
            if result is not None and not task.cancelled.is_set():
                task.deliver(result)
        if process is not None:
            process.kill()

    def _run(self, process: _Process, task: Task) -> tuple[SolverResult | None, bool]:
        """The task's result (None: cancelled) and whether the process can go on."""
        if not process.wait_ready(self._closed):
            return undecided("the solver process did not start"), False
        try:
            process.pipe.send_bytes(task.payload)
            if _poll(process.pipe, task.deadline, task.cancelled):
                return pickle.loads(process.pipe.recv_bytes()), True
        except (EOFError, OSError):
            return undecided("the solver process ended unexpectedly"), False
        if task.cancelled.is_set():
            return None, False
        return undecided(f"the solver was stopped after {task.deadline:.1f} s"), False
