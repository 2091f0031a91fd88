"""``check`` on files: who analyses each, and the order in which their reports are told."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say
from cuda_lsp.model import FileReport
from cuda_lsp.readings import Reading, Readings


def cores() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextmanager
def checking(
    paths: Sequence[Path], asked: Asked, jobs: int | None = None, limits: FileLimits | None = None
) -> Generator[Iterator[FileReport]]:
    """While files are analysed: their reports, each told as soon as those before it are.

    Behind them come the headers with kernels that they include, and those of the files that others include.
    ``jobs`` files at once; None: as many as there are processors. All ends at once with the context.
    """

    def work(reading: Reading, say: Say) -> FileReport:
        from cuda_lsp.batch.analysis import analysed

        return analysed(reading, asked, say)

    readings = Readings(paths, _parts(paths) if len(paths) > 1 else ())
    with Pool(readings.wave(), work, jobs or cores(), limits or FileLimits()) as pool:
        yield _in_order(readings, pool)


def _parts(paths: Sequence[Path]) -> list[Path]:
    """Files that are read as parts of others, where those include them."""
    from cuda_lsp.frontend.surroundings.units import included_sources, is_header

    return [*(path for path in paths if is_header(path)), *included_sources(paths)]


def _in_order(readings: Readings, pool: Pool) -> Iterator[FileReport]:
    told = 0
    while True:
        for reading, report in pool.reports():
            readings.take(reading, report)
            whole = readings.whole()
            yield from whole[told:]
            told = len(whole)
        more = readings.wave()
        if not more:
            yield from readings.reports()[told:]
            return
        pool.add(more)
