"""Processes that what they work on may crash, hang or fill: their limits, and what their end tells.

Used by whoever starts such a process and by the process itself. The words of an ``End`` are for people and
follow "the analysis of this text".
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

from attrs import define, frozen

from cuda_lsp.children.stat import Stat

OUT_OF_MEMORY = 77
"""The exit status of a process that found no memory for its work."""

STUCK = "does not come to an end"

_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_MUCH = 0.4  # of the memory it may take: what ends a process then is the lack of it
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
# Sent by who is short of memory, or wants us to end.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def confine(memory: int) -> None:
    """Limit this process to ``memory`` bytes of data; it writes no core file and ends with its parent."""
    # A crash that libclang survives leaves its memory, and nobody knows what else, behind.
    os.environ["LIBCLANG_DISABLE_CRASH_RECOVERY"] = "1"
    os.environ["LIBCLANG_NOTHREADS"] = "1"  # whoever calls clang is the thread that pays
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # the system has a lower one
        resource.setrlimit(resource.RLIMIT_DATA, (memory, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    end_with_parent()


def end_with_parent() -> None:
    """Have the system kill this process when the thread that started it ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


@frozen
class End:
    """Why a process ended. ``blamed``: its work is the cause for certain, else somebody else may be."""

    reason: str
    blamed: bool


def most_resident() -> int:
    """Bytes that this process ever had in memory: what a program that it starts is said to have used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def end_of(status: int, used: resource.struct_rusage, memory: int, inherited: int) -> End:
    """What ``os.wait4`` tells of a process confined to ``memory`` bytes: its wait status and what it used.

    ``inherited``: the bytes that it was said to have used before it began.
    """
    code = os.waitstatus_to_exitcode(status)
    if -code in _FROM_OUTSIDE:
        return End(f"was ended ({signal.Signals(-code).name})", blamed=False)
    taken = used.ru_maxrss * _RSS_UNIT - inherited
    if code == OUT_OF_MEMORY or taken > _MUCH * max(0, memory - inherited):
        return End(too_large(memory), blamed=True)
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return End(f"crashed, most likely in clang ({how})", blamed=True)


def too_large(memory: int) -> str:
    """Why a process that wanted more bytes than this was ended."""
    whole, rest = divmod(memory, 1 << 30)
    return f"takes more than {memory >> 20} MB" if rest else f"takes more than {whole} GB"


def too_long(seconds: float) -> str:
    """Why a process that worked longer than this was ended."""
    return f"takes more than {seconds:.3g} s"


_BLINK = 1.0  # seconds between two looks, after which nothing is known of what was in between


@define
class Stillness:
    """For how long a process has neither run nor waited for its turn, as far as somebody looked."""

    _used: float = 0.0
    _since: float = 0.0
    _looked: float = 0.0

    def seconds(self, found: Stat, now: float, *, otherwise_busy: bool = False) -> float:
        """It was ``found`` so at ``now``. ``otherwise_busy``: something else shows that it does work."""
        watched, self._looked = now - self._looked < _BLINK, now
        if otherwise_busy or not watched or found.used != self._used or found.state in "RD":
            self._used, self._since = found.used, now
        return now - self._since
