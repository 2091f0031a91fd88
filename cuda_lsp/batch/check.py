"""``check`` on files: who analyses each, and the order in which their reports are told."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say, Work
from cuda_lsp.batch.results import Results
from cuda_lsp.imports import importing
from cuda_lsp.model import FileReport
from cuda_lsp.readings import Reading, Readings

if TYPE_CHECKING:
    from cuda_lsp.batch.cluster.executor import Cluster

Heard = Callable[[Reading, Analysed], None]


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
    heard: Heard = lambda reading, found: None,
    *,
    cache: bool = True,
    executor: str | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Generator[Iterator[FileReport]]:
    """While files are analysed: their reports, each told as soon as those before it are.

    Behind them come the headers with kernels that they include, and those of the files that others include.
    ``jobs`` files at once; None: as many as there are processors. ``cache``: what earlier runs have found
    is believed where nothing has changed, but for plans, which are made anew. ``heard`` is told each reading
    that is done, ``tick`` is called several times a second. All processes end with the context.
    ``executor``: the address of a cluster whose workers analyse in place of this machine (raises NoCluster).
    """
    limits = limits or FileLimits()
    if executor is not None:
        paths = [path.absolute() for path in paths]  # they mean the same everywhere
    results = Results.of(asked, limits) if cache and asked.plan is None else None
    asked = evolve(asked, noting=results is not None)
    readings = Readings(paths, _parts(paths) if len(paths) > 1 else ())
    first = _unknown(readings, results, heard)
    with _workers(first, asked, jobs or cores(), limits, tick, executor) as pool:
        yield _in_order(readings, pool, results, heard)


def _workers(
    first: Sequence[Reading],
    asked: Asked,
    jobs: int,
    limits: FileLimits,
    tick: Callable[[], None],
    executor: str | None,
) -> Pool | Cluster:
    if executor is None:
        return Pool(first, _work(lambda path: asked), jobs, limits, tick)
    from cuda_lsp.batch.cluster.executor import Cluster

    return Cluster(first, asked, executor, limits, tick)


def each(asked: Mapping[Path, Asked], jobs: int | None = None) -> list[Analysed]:
    """Some files, each by itself and as it is asked for, in this order."""
    with Pool(
        [Reading(path) for path in asked], _work(asked.__getitem__), jobs or cores(), FileLimits()
    ) as pool:
        found = {reading.path: found for reading, found in pool.reports()}
    return [found[path] for path in asked]


def _work(asked_of: Callable[[Path], Asked]) -> Work:
    def work(reading: Reading, say: Say) -> Analysed:
        with importing():
            from cuda_lsp.batch.analysis import analysed

        return analysed(reading, asked_of(reading.path), say)

    return work


def _parts(paths: Sequence[Path]) -> list[Path]:
    """Files that are read as parts of others, where those include them."""
    from cuda_lsp.frontend.surroundings.units import included_sources, is_header

    return [*(path for path in paths if is_header(path)), *included_sources(paths)]


def _unknown(readings: Readings, results: Results | None, heard: Heard) -> list[Reading]:
    """What is to be read next and was not read before; nothing when all is read."""
    while wave := readings.wave():
        unknown: list[Reading] = []
        for reading in wave:
            report = results.known(reading) if results else None
            if report is None:
                unknown.append(reading)
            else:
                readings.take(reading, report)
                heard(reading, Analysed(report))
        if unknown:
            return unknown
    return []


def _in_order(
    readings: Readings, pool: Pool | Cluster, results: Results | None, heard: Heard
) -> Iterator[FileReport]:
    """Reports in the order of ``readings``; those that are found are kept."""
    told = 0
    more = True
    while more:
        for reading, found in pool.reports():
            readings.take(reading, found.report)
            heard(reading, found)
            if results:
                results.keep(reading, found)
            whole = readings.whole()
            yield from whole[told:]
            told = len(whole)
        unknown = _unknown(readings, results, heard)
        pool.add(unknown)
        more = bool(unknown)
    yield from readings.reports()[told:]
    if results:
        results.close()
