"""What both ways of running a program say of its process: its input, the end of its output, how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cuda_lsp.children.sweep import MARK
from cuda_lsp.dynamic.programs.job import ProgramJob

_LONGEST_OUTPUT = 1 << 16
_MOST_OUTPUT = 256 << 20  # bytes
FLOOD = "the program was stopped, because it wrote more than 256 MiB of output: give it less to say"
OVERDUE = "the program did not end before its deadline: raise --deadline, or give it a smaller problem"

GARBLED = (
    "the program was stopped, because it wrote into files of its check: let it use only files that it opened"
)


def input_of(job: ProgramJob) -> IO[bytes]:
    """Standard input of the program: the file that its run command gives it, else nothing. Raises OSError."""
    named = Path(job.input) if job.input else None
    return open(named if named is not None and named.is_file() else os.devnull, "rb")


def environment_of(job: ProgramJob) -> Mapping[str, str]:
    """Variables of the program; by one of them all that it starts is found again."""
    marked = {MARK: os.environ[MARK]} if MARK in os.environ else {}
    return {**(job.environment or os.environ), **marked}


def floods(output: IO[bytes]) -> bool:
    """Whether a program has written more than it may to its output, a file."""
    return os.fstat(output.fileno()).st_size > _MOST_OUTPUT


def end_of(output: IO[bytes]) -> str:
    """The last part of what a program wrote to a file."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _LONGEST_OUTPUT))
    return output.read().decode(errors="replace")


def crash(status: int) -> str | None:
    """How a signal ended the program; None: it ended by itself."""
    return f"the program crashed ({signal.Signals(-status).name})" if status < 0 else None
