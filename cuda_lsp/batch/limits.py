"""What one file may cost the command line, each number with its reason."""

from __future__ import annotations

from attrs import frozen

READING_S = 60.0
"""Of processor time, for reading a file and executing its kernels: what has not come to its end then hangs.
In the editor it is 10 s; here nobody waits, and generated sources of megabytes are read as well."""

FILE_S = 600.0
"""Of processor time, for a file with all proofs: the solver's budgets end a kernel after some seconds, and
files of real code have up to a hundred kernels."""

FILE_MEMORY_MB = 2048
"""Of data: a normal file takes 100 to 400 MB, and machines have two to four gigabytes for each core."""

LEAST_MEMORY_MB = 512
"""Of data: the analysis itself takes 150 MB."""

STILL_S = 10.0
"""Of the clock, in which a process that neither runs nor waits for its turn must do something."""

LOOK_S = 0.25
"""Of the clock, between two looks at the processes."""

MOST_REFUSALS = 40
"""Looks in a row at which the system gave no process: ten seconds, then a file is given up."""

KEPT_RESULTS_BYTES = 256 << 20
"""Of all results that are kept: one takes some ten kilobytes."""

KEPT_SHARE = 0.8
"""Of these, what stays when there is no room: it is not looked for with every run then."""

ABANDONED_S = 3600.0
"""After which nobody writes any more on what is not finished."""


@frozen
class FileLimits:
    """``seconds`` of processor time, ``memory`` in bytes, that the process of one file may take."""

    seconds: float = FILE_S
    memory: int = FILE_MEMORY_MB << 20

    @property
    def reading(self) -> float:
        """What of the seconds may go by until the first tier has its report."""
        return min(READING_S, self.seconds)
