"""Solver processes that can be killed: prewarmed, with deadlines, restarted after a crash.

Z3's own time-outs are not always honoured, so work is done in a spawned process (``solver_process``) that
is stopped when its deadline passes or nobody wants the answer any more.  Work is a pickled callable;
results are delivered by callback from one dispatcher thread per process, in the order they come. What a
process that was killed, or does not react, was asked is asked once more of a new one.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import queue
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from attrs import define, field, frozen

from cuda_lsp.children import NEUTRAL_FOLDER, python_command
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.answer import Failure
from cuda_lsp.static.solver_process import READY, STOP, STOPPED

log = logging.getLogger(__name__)


@frozen(eq=False)
class Task:
    """Work to do. ``owner``: what cancels it (a document)."""

    owner: Hashable
    payload: bytes
    deadline: float  # seconds for the whole task
    deliver: Callable[[Any], None]
    cancelled: threading.Event = field(factory=threading.Event)


@define(eq=False)
class _Process:
    """One solver process and the pipe to it."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    ready: bool = False

    @staticmethod
    def start() -> _Process:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", budgets.SEND_S, 0))
        with theirs:
            process = subprocess.Popen(
                python_command("cuda_lsp.static.solver_process", str(theirs.fileno())),
                cwd=NEUTRAL_FOLDER,
                stdin=subprocess.DEVNULL,  # ours are the editor's
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        return _Process(process, Connection(ours.detach()))

    def wait_ready(self, stop: threading.Event) -> bool:
        if not self.ready and _poll(self.pipe, budgets.START_S, stop):
            try:
                self.ready = self.pipe.recv_bytes() == READY
            except EOFError:
                self.ready = False
        return self.ready

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()


def _poll(pipe: Connection, seconds: float, stop: threading.Event) -> bool:
    """Waits for the pipe to have something to read; False when ``stop`` is set or time is up."""
    for _ in range(max(1, round(seconds / budgets.POLL_S))):
        if pipe.poll(budgets.POLL_S):
            return True
        if stop.is_set():
            return False
    return False


T = TypeVar("T")


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
        work: Callable[[], T],
        seconds: float,
        deliver: Callable[[T | Failure], None],
        *,
        owner: Hashable = None,
        priority: int = 0,
    ) -> Task:
        """Queues ``work`` (it is pickled), stopped ``budgets.STOP_GRACE_S`` after ``seconds``.

        ``deliver`` is called from a worker thread, unless the task is cancelled.
        """
        task = Task(owner, pickle.dumps(work), seconds + budgets.STOP_GRACE_S, deliver)
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
            process = process or self._started()
            task = self._tasks.get()[2]
            if task is None or process is None:
                break
            alive = True
            if not task.cancelled.is_set():
                result, alive = self._run(process, task)
                if isinstance(result, Failure) and result.lost and not task.cancelled.is_set():
                    if not alive:
                        process.kill()
                        process = self._started()
                    if process is None:
                        break
                    result, alive = self._run(process, task)
                if not task.cancelled.is_set():
                    task.deliver(result)
            with self._lock:
                self._pending.discard(task)
            if not alive:
                process.kill()
                process = None
        if process is not None:
            process.kill()

    def _started(self) -> _Process | None:
        """A new process, as soon as the system has one to give; None: the pool was closed before."""
        while not self._closed.is_set():
            try:
                return _Process.start()
            except OSError as error:
                log.warning("no solver process can be started: %s", error)
                self._closed.wait(budgets.NO_PROCESS_S)
        return None

    def _run(self, process: _Process, task: Task) -> tuple[Any, bool]:
        """The task's result and whether the process can go on."""
        if not process.wait_ready(self._closed):
            return Failure("the solver process did not start", lost=True), False
        try:
            process.pipe.send_bytes(task.payload)
            if _poll(process.pipe, task.deadline, task.cancelled):
                return pickle.loads(process.pipe.recv_bytes()), True
            process.pipe.send_bytes(STOP)
            if not process.pipe.poll(budgets.STOP_S if sys.platform == "linux" else budgets.STOP_ELSEWHERE_S):
                return Failure(f"the solver was stopped after {task.deadline:.1f} s", lost=True), False
            late = pickle.loads(process.pipe.recv_bytes())
        except (EOFError, OSError):
            return Failure("the solver process ended unexpectedly", lost=True), False
        stopped = Failure(f"the solver was stopped after {task.deadline:.1f} s")
        return (stopped if late == STOPPED else late), True
