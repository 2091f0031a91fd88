"""``check`` on files: who analyses each, and the order in which their reports are told."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say
from cuda_lsp.batch.results import Results
from cuda_lsp.model import FileReport


def cores() -> int:
    """How many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@contextmanager
def checking(
    paths: Sequence[Path],
    asked: Asked,
    jobs: int | None = None,
    limits: FileLimits | None = None,
    *,
    cache: bool = True,
) -> Generator[Iterator[FileReport]]:
    """While files are analysed: their reports, each told as soon as those before it are.

    ``jobs`` files at once; None: as many as there are processors. ``cache``: what earlier runs have found
    is believed where nothing has changed. All processes end with the context.
    """
    limits = limits or FileLimits()
    results = Results.of(asked, limits) if cache else None
    asked = evolve(asked, noting=results is not None)
    known = {path: report for path in paths if results and (report := results.known(path))}

    def work(path: Path, say: Say) -> Analysed:
        from cuda_lsp.batch.analysis import analysed

        return analysed(path, asked, say)

    with Pool([path for path in paths if path not in known], work, jobs or cores(), limits) as pool:
        yield _in_order(paths, known, pool.reports(), results)


def _in_order(
    paths: Sequence[Path],
    known: dict[Path, FileReport],
    found: Iterable[tuple[Path, Analysed]],
    results: Results | None,
) -> Iterator[FileReport]:
    """Reports in the order of ``paths``; those that are ``found`` are kept."""
    coming = iter(found)
    for wanted in paths:
        while wanted not in known:
            path, said = next(coming)
            known[path] = said.report
            if results:
                results.keep(path, said)
        yield known.pop(wanted)
    if results:
        results.close()
