"""``--executor dask://HOST:PORT``: the files of a run, analysed by the workers of a dask cluster.

A result is believed when every answer that the analysis was given there is the one that this machine gives.
One that differs is of a file that was not sent: it is sent, and the file analysed again. What stays unknown
(an ``#include`` of a macro) is analysed here. So findings are those of a run here, wherever they come from.

dask gives the tasks of a worker that is gone to others, and keeps what they were made of on the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import distributed  # pyright: ignore[reportMissingTypeStubs]
from attrs import evolve, frozen

from cuda_lsp import files
from cuda_lsp.batch.asked import Analysed, Asked, NoCluster
from cuda_lsp.batch.cluster.station import Request, Station
from cuda_lsp.batch.cluster.tree import TooLarge, Tree, gathered
from cuda_lsp.batch.cluster.work import OtherProgram, analyse, identity
from cuda_lsp.batch.limits import LOOK_S, FileLimits
from cuda_lsp.frontend.surroundings.nearby_headers import project_root
from cuda_lsp.readings import Reading

_dask: Any = distributed  # it has types, but not for what is asked synchronously
SCHEME = "dask://"
_JOIN_S = 30.0
_AHEAD = 2  # tasks that wait, for each that runs: a worker has its next file when it is done
_MOST_ROUNDS = 6


@frozen
class _Job:
    """``sent``: what of outside its folder it was given."""

    reading: Reading
    top: Path
    rounds: int = 0
    sent: frozenset[str] = frozenset()


class Cluster:
    """Analyses files of absolute paths, like ``Pool``, elsewhere. Raises NoCluster when that cannot begin.

    ``analysed_here``: what could not be done there.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        asked: Asked,
        address: str,
        limits: FileLimits,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._asked = evolve(asked, noting=True, overrides=_absolute(asked), settings_file=_file(asked))
        self._limits, self._tick = limits, tick
        self._waiting: list[_Job] = []
        self._running: dict[Any, _Job] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._trees: dict[Path, Any] = {}  # futures, or the reason why there is none
        self._extras: dict[Path, set[str]] = {}
        self._answers: dict[files.Question, str] = {}
        self._here = ThreadPoolExecutor(1)
        self._station: Station | None = None
        self._client: Any = _client(address)
        self.analysed_here: list[Reading] = []
        self._queue(readings)

    def __enter__(self) -> Cluster:
        self._fill()
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._running:
            future.cancel()
        if self._station is not None:
            self._station.close()
        self._here.shutdown(cancel_futures=True)
        self._client.close()

    def add(self, readings: Sequence[Reading]) -> None:
        """More to analyse, when ``reports`` has told all."""
        self._queue(readings)
        self._fill()

    def reports(self) -> Iterator[tuple[Reading, Analysed]]:
        """Each file with its report, in the order in which they come. Raises NoCluster."""
        while self._running:
            self._tick()
            try:
                future = self._done.get(timeout=LOOK_S)
            except queue.Empty:
                if self._client.status == "closed":
                    raise NoCluster("the scheduler is gone") from None
                continue
            job = self._running.pop(future, None)
            if job is None:
                continue
            found = self._believed(job, self._result(job, future))
            self._fill()
            if found is not None:
                yield job.reading, found

    def _queue(self, readings: Sequence[Reading]) -> None:
        sizes = Counter({reading: _size(reading.path) for reading in readings})
        for reading, _ in reversed(sizes.most_common()):  # the last one is next
            path = reading.unit or reading.path
            self._waiting.append(_Job(reading, project_root(path) or path.parent))

    def _fill(self) -> None:
        try:
            threads = sum(self._client.nthreads().values()) if self._waiting else 0
        except OSError:
            raise NoCluster("the scheduler is gone") from None
        while self._waiting and len(self._running) < max(1, threads) * (1 + _AHEAD):
            self._start(self._waiting.pop())

    def _start(self, job: _Job) -> None:
        tree = self._tree(job.top)
        job = evolve(job, sent=frozenset(self._extras.get(job.top, ())))
        if tree is None or job.rounds > _MOST_ROUNDS:
            self._start_here(job)
            return
        future = self._client.submit(
            analyse, job.reading, self._asked, self._limits, tree, identity(), pure=False, retries=2
        )
        self._started(job, future)

    def _started(self, job: _Job, future: Any) -> None:
        self._running[future] = job
        future.add_done_callback(self._done.put)

    def _start_here(self, job: _Job) -> None:
        """In a process of this machine: this one has threads, which do not survive a fork."""
        self.analysed_here.append(job.reading)
        self._started(job, self._here.submit(self._analysed_here, job))

    def _analysed_here(self, job: _Job) -> Analysed:
        self._station = self._station or Station()
        return self._station.ask(Request(job.reading, self._asked, self._limits, os.getcwd()))

    def _tree(self, top: Path) -> Any:
        """The tree of a folder, as the scheduler has it; None: it is not sent."""
        if top not in self._trees:
            try:
                tree = gathered(top, sorted(self._extras.get(top, ())))
            except TooLarge:
                self._trees[top] = None
            else:
                key = f"cuda-lsp-tree-{tree.digest}"
                self._trees[top] = self._client.submit(_same, tree, key=key)
        return self._trees[top]

    def _result(self, job: _Job, future: Any) -> Analysed | None:
        """None: nobody there could do it. Raises NoCluster."""
        try:
            return future.result()
        except OtherProgram as error:
            raise NoCluster(f"a worker has {error}: install the same there") from None
        except (CancelledError, _dask.core.CommClosedError):
            raise NoCluster(f"the scheduler is gone, with {len(self._running) + 1} files") from None
        except (_dask.KilledWorker, OSError, EOFError):  # whoever took it died of it
            return None

    def _believed(self, job: _Job, found: Analysed | None) -> Analysed | None:
        """A result that is that of this machine; None: it is begun again."""
        if job.rounds > _MOST_ROUNDS:  # it was done here
            return found
        if found is not None and found.cut_short:  # what it was given is not known then
            return found
        if found is None or found.answers is None:
            self._start_here(evolve(job, rounds=_MOST_ROUNDS + 1))
            return None
        wrong = {question[1] for question, said in found.answers.items() if self._now(question) != said}
        if not wrong:
            return found
        extras = self._extras.setdefault(job.top, set())
        if wrong <= job.sent or not all(map(os.path.isabs, wrong)):  # sending it is no help
            self._start_here(evolve(job, rounds=_MOST_ROUNDS + 1))
            return None
        if not wrong <= extras:
            extras |= wrong
            self._trees.pop(job.top, None)
        self._start(evolve(job, rounds=job.rounds + 1))
        return None

    def _now(self, question: files.Question) -> str:
        if question not in self._answers:
            self._answers[question] = files.answer(question)
        return self._answers[question]


def _same(tree: Tree) -> Tree:
    return tree


def _client(address: str) -> Any:
    """A connection to a cluster whose workers have this program. Raises NoCluster."""
    try:
        client: Any = _dask.Client(
            address.replace(SCHEME, "tcp://", 1), timeout=_JOIN_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise NoCluster(f"{address} cannot be reached: {error}") from None
    try:
        client.wait_for_workers(1, timeout=_JOIN_S)
        programs = client.run(identity, on_error="return")
    except (OSError, TimeoutError, asyncio.TimeoutError):  # two classes before Python 3.11
        client.close()
        raise NoCluster(f"no worker has joined {address} in {_JOIN_S:.0f} s") from None
    for worker, program in programs.items():
        if program != identity():
            client.close()
            has_none = isinstance(program, BaseException)
            said = "no cuda-lsp" if has_none else program.differs(identity())
            raise NoCluster(f"the worker {worker} has {said}: install the same there")
    return client


def _absolute(asked: Asked) -> dict[str, Any]:
    """Settings of the command line, whose paths mean the same elsewhere."""
    told = dict(asked.overrides)
    if "include_dirs" in told:
        told["include_dirs"] = tuple(os.path.abspath(folder) for folder in told["include_dirs"])
    return told


def _file(asked: Asked) -> Path | None:
    return asked.settings_file and asked.settings_file.absolute()


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
