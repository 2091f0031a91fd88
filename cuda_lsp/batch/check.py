"""``check`` on files: who analyses each, and the order in which their reports are told."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say
from cuda_lsp.model import FileReport


def cores() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextmanager
def checking(
    paths: Sequence[Path], asked: Asked, jobs: int | None = None, limits: FileLimits | None = None
) -> Generator[Iterator[FileReport]]:
    """While files are analysed: their reports, each told as soon as those before it are.

    ``jobs`` files at once; None: as many as there are processors. All ends at once with the context.
    """

    def work(path: Path, say: Say) -> FileReport:
        from cuda_lsp.batch.analysis import analysed

        return analysed(path, asked, say)

    with Pool(paths, work, jobs or cores(), limits or FileLimits()) as pool:
        yield _in_order(paths, pool.reports())


def _in_order(paths: Sequence[Path], found: Iterable[tuple[Path, FileReport]]) -> Iterator[FileReport]:
    known: dict[Path, FileReport] = {}
    remaining = list(reversed(paths))
    for path, report in found:
        known[path] = report
        while remaining and remaining[-1] in known:
            yield known.pop(remaining.pop())
