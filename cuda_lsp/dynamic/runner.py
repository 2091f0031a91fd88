"""Runs checks in a child process that can be stopped at any moment.

One child is kept warm between checks, because importing and opening a device take longer than most checks.
It is killed when a check is cancelled or overdue, and not used again after a kernel failed in it: a CUDA
error would poison the next run.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from typing import Any
from uuid import uuid4

from attrs import evolve, frozen

from cuda_lsp.children import NEUTRAL_FOLDER, python_command, working_folder
from cuda_lsp.children.sweep import MARK, end, end_marked, is_stopped
from cuda_lsp.dynamic.emulator.native.library import Maker, NoLibrary
from cuda_lsp.dynamic.job import CheckJob, CheckResult, Preparation
from cuda_lsp.dynamic.messages import receive, send
from cuda_lsp.dynamic.programs.build_command import BuildJob, Built
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramResult

Progress = Callable[[str], None]
Cancelled = Callable[[], bool]

_POLL = 0.02
_STOPPED = 1.0  # seconds for which the child may be stopped, as a debugger does it
_GRACE = 150.0  # seconds for what follows a build, beyond the build's own
_LATE = 1.5  # seconds beyond its deadline after which a check is ended, whatever it does
_AFTERWARDS = 10.0  # … and a program, which has to be taken apart
_WORTH = 1.0  # seconds: for less no process is started again


class CheckCancelled(Exception):
    """The caller asked to stop."""


@frozen
class _Death:
    """The child ended without an answer.

    ``stopped``: it was ended, because somebody had stopped it; ``late``: because its time was over.
    """

    status: int | None
    stopped: bool = False
    late: bool = False


class _Stopped(EOFError):
    """The child does nothing any more, and nobody knows for how long."""


class _Late(EOFError):
    """The child's time is over."""


class Runner:
    """Owns the child process. One check at a time; further callers wait for their turn."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()
        self._mark = uuid4().hex
        self._seen: CheckResult | None = None  # of a check that goes on
        self._maker = Maker()

    def run(
        self, job: CheckJob, progress: Progress = lambda stage: None, cancelled: Cancelled = lambda: False
    ) -> CheckResult:
        """Check one kernel. Raises CheckCancelled; everything else is in the result.

        A trial that hangs or faults on a GPU ends the process; the others are made in a new one.
        """
        end = time.monotonic() + job.deadline
        with self._turn_of(cancelled):
            result = self._checked(job, progress, cancelled)
            while result.left and (seconds := end - time.monotonic()) > _WORTH:
                done = len(job.trials) - result.left
                rest = evolve(job, trials=job.trials[done:], deadline=seconds, banks=False)
                more = self._checked(rest, progress, cancelled)
                result = _joined(result, more)
                if not more.results:
                    break
            return result

    def _checked(self, job: CheckJob, progress: Progress, cancelled: Cancelled) -> CheckResult:
        self._seen = None
        job = evolve(job, until=time.monotonic() + job.deadline)
        result = self._attempt(job, job.deadline + _LATE, progress, cancelled)
        if isinstance(result, _Death):
            problem = _death(job.kernel, result)
            known: CheckResult = self._seen or CheckResult(job.kernel)
            return evolve(known, problem=problem)
        if any(r.races.failure or (r.banks and r.banks.failure) for r in result.results):
            self._stop()
        return result

    def run_program(
        self, job: ProgramJob, progress: Progress = lambda stage: None, cancelled: Cancelled = lambda: False
    ) -> ProgramResult:
        """Build and check a program. Raises CheckCancelled; everything else is in the result."""
        with self._turn_of(cancelled):
            job = evolve(job, until=time.monotonic() + job.deadline)
            result = self._attempt(job, job.deadline + _AFTERWARDS, progress, cancelled)
            self._stop()  # its memory is large, and nothing of it is of use to the next check
            if isinstance(result, _Death):
                return ProgramResult(problem=_death(job.path.name, result))
            return result

    def run_build(
        self, job: BuildJob, progress: Progress = lambda stage: None, cancelled: Cancelled = lambda: False
    ) -> Built:
        """Run a project's build command and see what it makes. Raises CheckCancelled."""
        with self._turn_of(cancelled):
            result = self._attempt(job, _GRACE + job.deadline, progress, cancelled)
            if isinstance(result, _Death):
                return Built(problem=_death(f"`{job.build}`", result))
            return result

    def close(self) -> None:
        """End the child; the runner may be used again."""
        with self._turn:
            self._stop()
            self._maker.abandon()

    def prepare(self, what: Preparation) -> None:
        """Start the child now, so that the first check need not wait for it; nothing while one runs."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            child = self._started()
            assert child.stdin is not None
            send(child.stdin, what)  # type: ignore[arg-type]
        except OSError:  # the check that needs it will tell
            self._stop()
        finally:
            self._turn.release()

    @contextlib.contextmanager
    def _turn_of(self, cancelled: Cancelled) -> Generator[None]:
        """Hold the child once it is free. Raises CheckCancelled as soon as the caller stops waiting."""
        while not self._turn.acquire(timeout=_POLL):
            if cancelled():
                raise CheckCancelled
        try:
            yield
        finally:
            self._turn.release()

    def _attempt(self, job: Any, seconds: float, progress: Progress, cancelled: Cancelled) -> Any:
        """What the child answers, or its death."""
        try:
            return self._conversation(job, seconds, progress, cancelled)
        except (EOFError, BrokenPipeError) as problem:
            return _Death(self._stop(), isinstance(problem, _Stopped), isinstance(problem, _Late))
        except BaseException:
            self._stop()
            raise

    def _conversation(self, job: Any, seconds: float, progress: Progress, cancelled: Cancelled) -> Any:
        child = self._started()
        assert child.stdin is not None
        send(child.stdin, job)  # type: ignore[arg-type]
        deadline = time.monotonic() + seconds
        due = math.inf  # of the run that goes on
        while True:
            self._wait(child, min(deadline, due), cancelled)
            assert child.stdout is not None
            kind, content = receive(child.stdout)  # type: ignore[arg-type]
            if kind == "result":
                return content
            if kind == "progress":
                due = due if content == "running" else math.inf
                progress(content)
            elif kind == "wanted":
                with contextlib.suppress(NoLibrary, OSError):  # it goes on without
                    self._maker.begin()
            elif kind == "seen":
                self._seen = content
            elif kind == "due":
                due = time.monotonic() + content

    def _wait(self, child: subprocess.Popen[bytes], deadline: float, cancelled: Cancelled) -> None:
        """Until the child says something. Raises CheckCancelled; _Late, _Stopped as they say."""
        selector = selectors.DefaultSelector()
        selector.register(child.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        moving = time.monotonic()
        with selector:
            while not selector.select(_POLL):
                now = time.monotonic()
                self._maker.finish()
                if cancelled():
                    raise CheckCancelled
                if now > deadline:
                    raise _Late
                if not is_stopped(child.pid):
                    moving = now
                elif now > moving + _STOPPED:
                    raise _Stopped

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                python_command("cuda_lsp.dynamic.worker", working_folder()),
                cwd=NEUTRAL_FOLDER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, MARK: self._mark},
            )
        return self._child

    def _stop(self) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        end(child.pid)
        status = child.wait()
        end_marked(self._mark)  # what was left to itself, where the child was killed before it could tidy up
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return status


def _joined(first: CheckResult, more: CheckResult) -> CheckResult:
    """With the trials that were made afterwards; both have the same sites."""
    return evolve(
        first,
        results=(*first.results, *more.results),
        problem=first.problem or more.problem,
        left=more.left if more.results else first.left,
        seconds=first.seconds + more.seconds,
    )


def _death(kernel: str, death: _Death) -> str:
    status = death.status
    if death.stopped:
        return f"the process that ran {kernel} was stopped by somebody, and ended: run the check again"
    if status is not None and status < 0 and status != -signal.SIGKILL:
        name = signal.Signals(-status).name
        return f"the process that ran {kernel} crashed ({name}); run the check again, or on the other engine"
    if death.late:
        return f"{kernel} was not done when its time was over: raise --deadline, or try a smaller launch"
    return f"the process that ran {kernel} was ended, out of memory: try a smaller launch or problem"
