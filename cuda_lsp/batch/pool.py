"""Processes that each analyse one file: started, limited, heard, buried, some at a time.

Each is a fork of this process, which has no threads and has analysed nothing: what is said of a file does
not hang on the files before it, all that it took goes back with the process, and whatever ends it ends
nothing else. Where several are to come, the analysis is imported before the first fork, once for all; the
only one imports it itself, while this process gets ready to print.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from attrs import define, evolve, field

from cuda_lsp.batch.asked import Analysed
from cuda_lsp.batch.limits import LOOK_S, MOST_REFUSALS, STILL_S, FileLimits
from cuda_lsp.children.confined import (
    OUT_OF_MEMORY,
    STUCK,
    Stillness,
    confine,
    end_of,
    most_resident,
    too_long,
)
from cuda_lsp.children.stat import Stat, resident
from cuda_lsp.imports import importing
from cuda_lsp.model import FileReport, KernelReport, Severity, ToolError, Verdict
from cuda_lsp.readings import Reading

Say = Callable[[FileReport], None]
Work = Callable[[Reading, Say], Analysed]
"""Analyses one file; a report that is not the last yet is said."""

_ANALYSIS = "cuda_lsp.batch.analysis"
_THREADS = "OPENBLAS_NUM_THREADS"
_CHUNK = 1 << 20
_STANDARD_OUTPUT = 1
_GONE = select.POLLERR | select.POLLHUP


class Pool:
    """Analyses files, ``jobs`` at once, the largest first; begins at once. Leaving it ends all processes.

    ``tick`` is called several times a second while they are waited for.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        work: Work,
        jobs: int,
        limits: FileLimits,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._waiting = sorted(readings, key=_size)  # the last one is next
        self._work = work
        self._jobs = jobs
        self._limits = limits
        self._tick = tick
        self._running: dict[int, _Worker] = {}
        self._refused: tuple[int, str] = (0, "")  # times in a row that the system gave no process; why
        self._poll = select.poll()
        self._poll.register(_STANDARD_OUTPUT, 0)
        self._prepare()

    def __enter__(self) -> Pool:
        self._fill()
        return self

    def __exit__(self, *_: object) -> None:
        while self._running:
            self._running.popitem()[1].abandon()

    def add(self, readings: Sequence[Reading]) -> None:
        """More to analyse, when ``reports`` has told all."""
        self._waiting = sorted(readings, key=_size)
        self._prepare()
        self._fill()

    def _prepare(self) -> None:
        if len(self._waiting) > 1:
            prepare()

    def reports(self) -> Iterator[tuple[Reading, Analysed]]:
        """Each file with its report, in the order in which they come.

        Raises BrokenPipeError when nobody reads the standard output any more.
        """
        while self._running or self._waiting:
            for descriptor, event in self._poll.poll(LOOK_S * 1000):
                worker = self._running.get(descriptor)
                if worker is None:
                    if event & _GONE:
                        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
                elif not worker.hear():
                    self._poll.unregister(descriptor)
                    report = self._running.pop(descriptor).buried()
                    self._fill()
                    yield worker.reading, report
            for worker in self._running.values():
                worker.look()
            self._tick()
            self._fill()
            if not self._running and self._refused[0] > MOST_REFUSALS:
                reading = self._waiting.pop()
                reason = f"could not be started: {self._refused[1]}"
                yield reading, Analysed(_lost(reading.path, None, reason), cut_short=True)

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._jobs:
            try:
                self._start(self._waiting[-1])
            except OSError as error:  # too many processes or files on this machine, for the moment
                self._refused = (self._refused[0] + 1, error.strerror or str(error))
                return
            self._waiting.pop()
            self._refused = (0, "")

    def _start(self, reading: Reading) -> None:
        """Fork; an interrupt comes before or behind, and never in the child."""
        ours, theirs = os.pipe()
        parent = os.getpid()
        inherited = resident(parent) or most_resident()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = os.fork()
            if process == 0:
                _be_the_worker(reading, self._work, self._limits, theirs, parent)
            os.set_blocking(ours, False)
            self._running[ours] = _Worker(reading, process, ours, self._limits, inherited)
            self._poll.register(ours, select.POLLIN)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def prepare() -> None:
    """Import what every process needs, before they are forked; once."""
    known = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"  # no threads: they would not survive a fork
    with importing():
        import_module(_ANALYSIS)
        import_module("cuda_lsp.static.second_tier")
        import_module("z3")
    if known is None:
        del os.environ[_THREADS]  # what is started under check is nobody's fork
    else:
        os.environ[_THREADS] = known
    gc.collect()
    gc.freeze()  # forks share these pages for as long as nobody writes to them


def _size(reading: Reading) -> int:
    try:
        return reading.path.stat().st_size
    except OSError:  # its analysis says so
        return 0


@define
class _Worker:
    """The process of one file, and what was heard of it."""

    reading: Reading
    process: int
    pipe: int
    limits: FileLimits
    inherited: int  # bytes that it had as a fork
    heard: bytearray = field(factory=bytearray)
    stillness: Stillness = field(factory=Stillness)
    began: float = field(factory=time.perf_counter)
    killed: str | None = None

    def hear(self) -> bool:
        """Take what it has said; False: it says nothing more."""
        try:
            said = os.read(self.pipe, _CHUNK)
        except BlockingIOError:
            return True
        self.heard += said
        return bool(said)

    def look(self) -> None:
        """Kill it if it does nothing at all."""
        found = Stat.of(self.process)
        patience = STILL_S if found.known else self.limits.seconds
        if self.stillness.seconds(found, time.monotonic()) > patience:
            self.killed = STUCK
            self._kill()

    def buried(self) -> Analysed:
        """Its report, once it has ended; what ended it, if it is not whole."""
        os.close(self.pipe)
        _, status, used = os.wait4(self.process, 0)
        said = _said_in(self.heard)
        if status == 0 and said:
            return said[-1]
        known = said[-1].report if said else None
        lost = _lost(self.reading.path, known, self._reason(status, used, known))
        return Analysed(evolve(lost, seconds=time.perf_counter() - self.began), cut_short=True)

    def abandon(self) -> None:
        """End it at once; nobody asks for its file any more."""
        self._kill()
        os.close(self.pipe)
        os.waitpid(self.process, 0)

    def _kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)  # nobody else waits for it, so the number is still its own

    def _reason(self, status: int, used: resource.struct_rusage, known: FileReport | None) -> str:
        if self.killed:
            return self.killed
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            limit = self.limits.reading if known is None else self.limits.seconds
            more = "; --deadline allows more" if limit == self.limits.seconds else ""
            return too_long(_whole(limit)) + more
        return end_of(status, used, self.limits.memory, self.inherited).reason


def _said_in(heard: bytearray) -> list[Analysed]:
    """What came whole."""
    stream = io.BytesIO(heard)
    said: list[Analysed] = []
    with contextlib.suppress(EOFError, pickle.UnpicklingError):  # killed in the middle of it
        while True:
            said.append(pickle.load(stream))
    return said


def _lost(path: Path, known: FileReport | None, reason: str) -> FileReport:
    """The report of a file whose process has died: what was known of it before, and why no more is."""
    if known is None:
        return FileReport(
            path, errors=(ToolError(f"not analysed: its analysis {reason}", severity=Severity.ERROR),)
        )
    why = f"its analysis {reason}"
    kernels = tuple(_left_open(kernel, why) for kernel in known.kernels)
    error = ToolError(f"not analysed to its end: its analysis {reason}", severity=Severity.ERROR)
    return evolve(known, kernels=kernels, errors=(*known.errors, error))


def _left_open(kernel: KernelReport, why: str) -> KernelReport:
    if kernel.refined or kernel.verdict is not Verdict.UNDECIDED:
        return kernel
    return evolve(kernel, reasons=(*kernel.reasons, why))


# ------------------------------------------------------------------------------------- in the child


def _be_the_worker(reading: Reading, work: Work, limits: FileLimits, pipe: int, parent: int) -> None:
    """Analyse one file, tell of it, and end; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent ends us
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        confine(limits.memory)
        if os.getppid() != parent:
            return  # it ended before we were to end with it
        _silence()
        _allow(limits.reading)

        def say(report: FileReport) -> None:
            _tell(pipe, Analysed(report))
            _allow(limits.seconds)

        _tell(pipe, work(reading, say))
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - a bug of ours costs one file, and is told
        said = f"internal error {type(error).__name__}: {error}"[:300]
        failure = ToolError(f"not analysed: {said}; please report this file", severity=Severity.ERROR)
        _tell(pipe, Analysed(FileReport(reading.path, errors=(failure,)), cut_short=True))
        status = 0
    finally:
        os._exit(status)


def _silence() -> None:
    """Nothing of a terminal or a report that others read is ours."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, _STANDARD_OUTPUT)


def _allow(seconds: float) -> None:
    """Processor time since the beginning after which the system ends this process."""
    soft, hard = _whole(seconds), resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _whole(seconds: float) -> int:
    """The system counts whole seconds."""
    return max(1, round(seconds))


def _tell(pipe: int, said: Analysed) -> None:
    left = memoryview(pickle.dumps(said, 5))
    while left:
        left = left[os.write(pipe, left) :]
