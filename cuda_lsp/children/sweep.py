"""Ending processes with all that they started, also what left its session or was forked twice.

A process that adopts orphans becomes the parent of every descendant whose own parent has ended (Linux, "child
subreaper" in prctl(2)), so that none of them leaves the tree below it. Where there is no ``/proc`` only the
processes that we started ourselves are known.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_PATIENCE = 2.0  # seconds for what forks faster than it can be stopped


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind; without effect off Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(ancestor: int) -> list[int]:
    """The processes below one, parents before their children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended in the meantime
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(entry.parent.name))
    found = list(children.get(ancestor, ()))
    for process in found:
        found += children.get(process, ())
    return found


def end_descendants(ancestor: int) -> None:
    """Kill everything below a process. All of it is stopped first, so that nothing is forked meanwhile."""
    stopped: set[int] = set()
    until = time.monotonic() + _PATIENCE
    while (new := set(descendants(ancestor)) - stopped) and time.monotonic() < until:
        for process in new:
            _send(process, signal.SIGSTOP)
        stopped |= new
    for process in stopped:
        _send(process, signal.SIGKILL)
    if ancestor == os.getpid():
        _reap()


def end(process: int) -> None:
    """Kill a process that adopts orphans, and everything below it."""
    _send(process, signal.SIGSTOP)  # it starts nothing more
    end_descendants(process)
    _send(process, signal.SIGKILL)


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # ended; not ours any more
        os.kill(process, number)


def _reap() -> None:
    """Take the exit status of children that ended: adopted ones, which nobody else waits for."""
    until = time.monotonic() + _PATIENCE
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                if not descendants(os.getpid()):
                    return
                time.sleep(0.002)
