"""What the system tells of a process or thread at this moment, in ``/proc`` (proc(5))."""

from __future__ import annotations

import os

from attrs import frozen

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST = 1024  # bytes


def resident(process: int) -> int:
    """Bytes that a process has in memory; 0: it has ended, or there is no ``/proc``."""
    try:
        with open(f"/proc/{process}/statm", "rb", buffering=0) as file:
            return int(file.read(_LONGEST).split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


@frozen
class Stat:
    """``used``: processor time, seconds. Not ``known``: it has ended, or there is no ``/proc``."""

    number: int = 0
    state: str = "?"
    parent: int = 0
    group: int = 0
    session: int = 0
    used: float = 0.0
    known: bool = False

    @staticmethod
    def of(process: int, thread: int | None = None) -> Stat:
        """Look at a process, or at one of its threads."""
        inside = "" if thread is None else f"/task/{thread}"
        try:
            with open(f"/proc/{process}{inside}/stat", "rb", buffering=0) as file:
                fields = file.read(_LONGEST).rpartition(b")")[2].split()
            state, parent, group, session = fields[:4]
            used = (int(fields[11]) + int(fields[12])) / _TICKS
        except (OSError, ValueError, IndexError):
            return Stat()
        number = process if thread is None else thread
        return Stat(number, state.decode(), int(parent), int(group), int(session), used, known=True)

    @property
    def ended(self) -> bool:
        """Whether it has, and only its parent does not know yet."""
        return self.state in "ZX"

    @property
    def stopped(self) -> bool:
        """Whether it was, by a signal or by who traces it."""
        return self.state in "Tt"
