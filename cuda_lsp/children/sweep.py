"""Ending processes with all that they started, also what left its session or was forked twice.

A process that adopts orphans becomes the parent of every descendant whose own parent has ended (Linux, "child
subreaper" in prctl(2)), so that none of them leaves the tree below it. What is left when that process itself
was killed is known by a mark in the environment that it was started with. Where there is no ``/proc`` only
the processes that we started ourselves are known.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from io import FileIO

from cuda_lsp.children.stat import Stat

MARK = "CUDA_LSP_TREE"
"""The variable that tells whose tree a process belongs to."""

_SET_CHILD_SUBREAPER = 36
_PATIENCE = 2.0  # seconds for what forks faster than it can be stopped
_WATCHED = 0.05  # seconds for which the youngest process is looked at


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind; without effect off Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(ancestor: int) -> list[int]:
    """The processes below one, parents before their children; none that have ended."""
    return [one.number for one in _below(ancestor)[0]]


def is_stopped(process: int) -> bool:
    """Whether it was stopped, by a signal or by who traces it."""
    return Stat.of(process).stopped


def kill_descendants(ancestor: int) -> None:
    """Kill everything below a process; this process must still wait for its children.

    All of it is stopped first, so that nothing is forked meanwhile. Who forks and leaves faster than all
    processes can be looked at is known by the dead that it leaves, and caught as it is born.
    """
    stopped: set[int] = set()
    dead: set[int] | None = None
    spared = {Stat.of(os.getpid()).session, Stat.of(ancestor).session}
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        alive, ended = _below(ancestor)
        new = [one for one in alive if one.number not in stopped]
        if not new and ended == dead:
            break
        for group in {one.group for one in new if one.session not in spared}:
            _send((-group,), signal.SIGSTOP)  # all of it at once
        _send([one.number for one in new], signal.SIGSTOP)
        stopped.update(one.number for one in new)
        if dead is not None and (new or ended - dead):
            _stop_newborn({ancestor} | stopped | ended, stopped, _WATCHED)
        dead = ended
    _send(stopped, signal.SIGKILL)


def end_descendants(ancestor: int) -> None:
    """Kill everything below a process, and wait for what are this process's own children."""
    kill_descendants(ancestor)
    if ancestor == os.getpid():
        _reap()


def end(process: int) -> None:
    """Kill a process that adopts orphans, and everything below it."""
    _send((process,), signal.SIGSTOP)  # it starts nothing more
    end_descendants(process)
    _send((process,), signal.SIGKILL)


def end_marked(mark: str) -> None:
    """Kill what was started with ``mark`` as its ``MARK``, whosever child it is by now."""
    wanted = f"{MARK}={mark}".encode()
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        found = [process for process in _numbers() if _has(process, wanted)]
        if not found:
            return
        _send(found, signal.SIGSTOP)
        _send(found, signal.SIGKILL)


def _has(process: int, variable: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return variable in file.read().split(b"\0")
    except OSError:  # it ended, or is another user's
        return False


def _below(ancestor: int) -> tuple[list[Stat], set[int]]:
    """What runs below a process, parents before children, and what has ended there and is not reaped."""
    children: dict[int, list[Stat]] = {}
    ended: dict[int, int] = {}
    for number in _numbers():
        found = Stat.of(number)
        if found.ended:
            ended[number] = found.parent
        elif found.known:
            children.setdefault(found.parent, []).append(found)
    below = list(children.get(ancestor, ()))
    for process in below:
        below += children.get(process.number, ())
    family = {ancestor, *(process.number for process in below)}
    return below, {number for number, parent in ended.items() if parent in family}


def _stop_newborn(family: set[int], stopped: set[int], seconds: float) -> None:
    """Stop each process that is born into the family, for a while: only the youngest of all are looked at.

    ``stopped`` gets what was stopped.
    """
    until = time.monotonic() + seconds
    with open("/proc/loadavg", "rb", buffering=0) as file:
        last = _youngest(file)
        while time.monotonic() < until:
            youngest = _youngest(file)
            for number in range(last + 1 if last < youngest else youngest, youngest + 1):
                found = Stat.of(number)
                if found.known and not found.ended and found.parent in family:
                    _send((number,), signal.SIGSTOP)
                    stopped.add(number)
                    family.add(number)
            last = youngest


def _youngest(loadavg: FileIO) -> int:
    """The process that was made last of all on the machine."""
    loadavg.seek(0)
    return int(loadavg.read(128).rsplit(maxsplit=1)[-1])


def _numbers() -> list[int]:
    """All processes."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _send(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # ended; not ours any more
            os.kill(process, number)


def reap_orphans(but: int) -> None:
    """Take the exit status of adopted processes that have ended; of ``but`` somebody else wants it."""
    me = os.getpid()
    for number in _below(me)[1]:
        if number != but and Stat.of(number).parent == me:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(number, os.WNOHANG)


def _reap() -> None:
    """Take the exit status of all children. That there are none proves that nothing is below any more."""
    until = time.monotonic() + _PATIENCE
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                kill_descendants(os.getpid())
                time.sleep(0.002)
