"""What both ways of running a program say of its process: the end of its output, and how it ended."""

from __future__ import annotations

import os
import signal
from typing import IO

_LONGEST_OUTPUT = 1 << 16
OVERDUE = "the program did not end before its deadline: raise --deadline, or give it a smaller problem"


def end_of(output: IO[bytes]) -> str:
    """The last part of what a program wrote to a file."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _LONGEST_OUTPUT))
    return output.read().decode(errors="replace")


def crash(status: int) -> str | None:
    """How a signal ended the program; None: it ended by itself."""
    return f"the program crashed ({signal.Signals(-status).name})" if status < 0 else None
