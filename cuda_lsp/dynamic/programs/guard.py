"""Limits of a program under check, kept from beside it: time, output, memory, processes.

A thread looks at everything that the program started, several times a second. What is counted as memory is
what nothing but the program needs: the device's memory, which the emulator shares with it, is limited where
it is given out. Where there is no ``/proc`` only time and output are limited.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import IO

from attrs import define, field

from cuda_lsp.children.sweep import descendants, kill_descendants, reap_orphans
from cuda_lsp.dynamic.programs.process import FLOOD, OVERDUE, floods

MOST_PROCESSES = 512
_PAUSE = 0.02  # seconds between looks at time and output
_SHARE = 10  # of its own time that looking at processes may take: one of so many parts
_KIB = 1024


def usual_memory() -> int:
    """Bytes of the host that a program may use when nobody says how many: half of what there is."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def memory_of(processes: Iterable[int], resolved: bool = False) -> int:
    """Bytes that processes have to themselves; ``resolved``: what they share is counted once (slower)."""
    return sum(_resolved(process) if resolved else _quick(process) for process in processes)


def _quick(process: int) -> int:
    return _KIB * sum(_sizes(f"/proc/{process}/status", (b"RssAnon:", b"RssShmem:")))


def _resolved(process: int) -> int:
    """Its proportional share of each page (proc(5): ``Pss``), but of files."""
    return _KIB * sum(_sizes(f"/proc/{process}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")))


def _sizes(path: str, names: tuple[bytes, ...]) -> Iterable[int]:
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError:  # it has ended
        return
    for line in lines:
        if line.startswith(names):
            yield int(line.split()[1])


def bound_processes(process: int) -> None:
    """Let a user's program not start many more processes than there are; the superuser's may."""
    user, threads = os.getuid(), 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                threads += len(os.listdir(f"{entry.path}/task"))
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = threads + MOST_PROCESSES
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(OSError):  # it has ended
        resource.prlimit(process, resource.RLIMIT_NPROC, (soft, soft))


def _go_first() -> None:
    """Let this thread come before those who fork, where the machine allows it: the superuser's."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@define
class Guard:
    """Ends a program that goes beyond its limits; ``stopped`` is why, then. To be entered as a context.

    ``deadline``: monotonic. ``memory``: bytes; ``granted``: those among them that are the emulator's.
    """

    child: subprocess.Popen[bytes]
    output: IO[bytes]
    deadline: float
    memory: int
    granted: int = 0
    stopped: str | None = None
    _over: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Guard:
        if sys.platform == "linux":
            bound_processes(self.child.pid)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        if sys.platform == "linux":
            _go_first()
        looked, pause = 0.0, 0.0
        while not self._over.wait(_PAUSE):
            reason = self._told_by_clock_and_file()
            if reason is None and time.monotonic() - looked > pause:
                began = time.monotonic()
                reason = self._told_by_processes()
                looked = time.monotonic()
                pause = _SHARE * (looked - began)
            if reason is not None:
                self.stopped = reason
                kill_descendants(os.getpid())
                return

    def _told_by_clock_and_file(self) -> str | None:
        if time.monotonic() > self.deadline:
            return OVERDUE
        return FLOOD if floods(self.output) else None

    def _told_by_processes(self) -> str | None:
        reap_orphans(self.child.pid)
        below = descendants(os.getpid())
        if len(below) > MOST_PROCESSES:
            return (
                f"the program was stopped, because more than {MOST_PROCESSES} processes of it ran at once:"
                " does it fork in a loop?"
            )
        # What many share is counted as often as they are; only what seems too large is looked at closely.
        if memory_of(below) - self.granted > self.memory and (
            memory_of(below, resolved=True) - self.granted > self.memory
        ):
            return (
                f"the program was stopped, because it used more than {self.memory >> 20} MiB of memory with"
                " all that it started: raise program-memory, or give it a smaller problem"
            )
        return None
