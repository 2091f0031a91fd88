"""What runs in a worker of the cluster: the analysis of one file of a tree, by a process beside it."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import distributed  # pyright: ignore[reportMissingTypeStubs]
from attrs import frozen

from cuda_lsp import __version__
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.cluster.station import Request, Station
from cuda_lsp.batch.cluster.tree import Tree, laid_out
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.readings import Reading

_MADE_OF = ("libclang", "z3-solver", "numpy")
_idle: queue.SimpleQueue[Station] = queue.SimpleQueue()


@frozen
class Identity:
    """Of the program that analyses; two that are equal say the same of the same file."""

    version: str
    text: str
    made_of: tuple[str, ...]
    python: str

    def differs(self, here: Identity) -> str:
        """How it differs from another, for people."""
        if self.version != here.version:
            return f"cuda-lsp {self.version}, here it is {here.version}"
        if self.made_of != here.made_of:
            return f"{', '.join(self.made_of)}, here it is {', '.join(here.made_of)}"
        if self.python != here.python:
            return f"Python {self.python}, here it is {here.python}"
        return f"cuda-lsp {self.version} with other sources than here"


@cache
def identity() -> Identity:
    """Of this process's program."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(path for suffix in ("*.py", "*.h") for path in package.rglob(suffix)):
        digest.update(str(path.relative_to(package)).encode() + hashlib.sha256(path.read_bytes()).digest())
    made_of = tuple(f"{name} {metadata.version(name)}" for name in _MADE_OF)
    python = ".".join(map(str, sys.version_info[:2]))
    return Identity(__version__, digest.hexdigest(), made_of, python)


class OtherProgram(Exception):
    """A worker has another program than who asks; the message is for people."""


def _scratch() -> Path:
    """A folder that goes with the worker; dask clears what a killed one leaves."""
    worker: Any = distributed.get_worker()  # pyright: ignore[reportUnknownMemberType]
    return Path(worker.local_directory) / "cuda-lsp-trees"


def analyse(reading: Reading, asked: Asked, limits: FileLimits, tree: Tree, asker: Identity) -> Analysed:
    """A file of a tree. Raises OtherProgram."""
    if identity() != asker:
        raise OtherProgram(identity().differs(asker))
    place = laid_out(tree, _scratch())
    station: Station | None = None
    with contextlib.suppress(queue.Empty):
        station = _idle.get_nowait()
    station = station or Station()
    try:
        found = station.ask(Request(reading, asked, limits, "", place))
    except (OSError, EOFError):
        station.close()
        raise
    _idle.put(station)
    return found
