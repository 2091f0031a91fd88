"""Results of earlier runs, kept by what they hang on, and believed only while all of that is the same.

The name of an entry is a digest of what is known before anything is read: the file's name and text, the
settings of the command line, the limits, and the program itself. In it stands every answer that the disk gave
the analysis (``files.noting``): contents of headers and neighbours, names that were looked for and are not
there, what lies in folders. One other answer, and the file is analysed. What was not known completely is not
kept.

Entries are written beside and renamed, so that several runs may share them, and carry a digest of themselves.
Nothing but data comes out of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from cuda_lsp import __version__, files
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import ABANDONED_S, KEPT_RESULTS_BYTES, KEPT_SHARE, FileLimits
from cuda_lsp.cache_folder import RESULTS, cache_folder
from cuda_lsp.frontend.host.naming import answer_again
from cuda_lsp.model import FileReport, Severity
from cuda_lsp.readings import Reading

answer_again()
_MAGIC = b"cuda-lsp result 1\n"
_DIGEST = hashlib.sha256().digest_size
_MADE_OF = ("libclang", "z3-solver", "numpy", "attrs")
_CLANGS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS", "CLANG_CONFIG_PATH")
"""Variables that change what clang reads; with one of them nothing is kept."""


@define
class Results:
    """The kept results of one run's question. ``close`` it: then room is made."""

    _run: bytes
    _folder: Path = field(factory=lambda: cache_folder() / RESULTS)
    _texts: dict[Path, bytes] = field(factory=dict[Path, bytes])  # digests, as they were looked up
    _answers: dict[files.Question, str] = field(factory=dict[files.Question, str])
    _written: bool = False

    @staticmethod
    def of(asked: Asked, limits: FileLimits) -> Results | None:
        """Those of a run that asks for this; None: what results hang on is not known completely."""
        if any(os.environ.get(name) for name in _CLANGS):
            return None
        try:
            where = os.getcwd()
        except FileNotFoundError:
            return None
        overrides = sorted(asked.overrides.items())
        question = (overrides, str(asked.settings_file), asked.solver, limits.seconds, limits.memory, where)
        return Results(_digest(repr(question).encode("utf-8", "surrogateescape"), program()))

    def known(self, reading: Reading) -> FileReport | None:
        """The report of a file, if all that it hangs on is as it was."""
        started = time.perf_counter()
        try:
            self._texts[reading.path] = hashlib.sha256(files.read_bytes(reading.path)).digest()
            content = files.read_bytes(self._entry(reading), KEPT_RESULTS_BYTES)
        except OSError:
            return None
        kept = _read(content)
        if kept is None or kept.answers is None:
            return None
        if any(self._now(question) != answer for question, answer in kept.answers.items()):
            return None
        with contextlib.suppress(OSError):  # another run has made room
            os.utime(self._entry(reading))  # the oldest go first
        return evolve(kept.report, seconds=time.perf_counter() - started)

    def keep(self, reading: Reading, found: Analysed) -> None:
        """Keep a result, if all that it hangs on is known; without room or rights nothing is kept."""
        lost = any(error.severity is Severity.ERROR for error in found.report.errors)
        if found.answers is None or lost or reading.path not in self._texts:
            return
        entry = self._entry(reading)
        with contextlib.suppress(OSError):
            entry.parent.mkdir(parents=True, exist_ok=True)
            _write(entry, _content(found))
            self._written = True

    def close(self) -> None:
        """Make room, the oldest first."""
        if self._written:
            with contextlib.suppress(OSError):  # the folder is gone: another run has cleaned
                _make_room(self._folder)

    def _entry(self, reading: Reading) -> Path:
        names = (
            os.fsencode(reading.path),
            os.fsencode(reading.unit or ""),
            repr(sorted(reading.left_open)).encode(),
        )
        name = hashlib.sha256(_digest(self._run, self._texts[reading.path], *names)).hexdigest()
        return self._folder / name[:2] / name[2:]

    def _now(self, question: files.Question) -> str:
        if question not in self._answers:
            self._answers[question] = files.answer(question)
        return self._answers[question]


def program() -> bytes:
    """A digest of what analyses: this program's files, as they were installed, and what it is made of."""
    package = Path(__file__).resolve().parents[1]
    parts = [__version__, sys.version, *(f"{name} {_version(name)}" for name in _MADE_OF)]
    for folder, below, names in os.walk(package):
        below[:] = sorted(name for name in below if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            parts.append(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}")
    return _digest("\0".join(parts).encode("utf-8", "surrogateescape"))


def _version(distribution: str) -> str:
    from importlib import metadata  # it takes long, and only who keeps results asks

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


# ------------------------------------------------------------------------------------------ entries


class _Data(pickle.Unpickler):
    """Takes objects of our model and no others."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "cuda_lsp.model" or (module, name) in _KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a result")


_KNOWN = frozenset(
    {("cuda_lsp.batch.asked", "Analysed"), ("pathlib", "PosixPath"), ("pathlib._local", "PosixPath")}
)


def _content(found: Analysed) -> bytes:
    data = zlib.compress(pickle.dumps(found, 5), 1)
    return _MAGIC + hashlib.sha256(data).digest() + data


def _read(content: bytes) -> Analysed | None:
    """None: it is damaged, or of another time."""
    head = len(_MAGIC) + _DIGEST
    data = content[head:]
    if content[:head] != _MAGIC + hashlib.sha256(data).digest():
        return None
    try:
        found: Any = _Data(io.BytesIO(zlib.decompress(data))).load()
    except (pickle.UnpicklingError, zlib.error, EOFError, AttributeError, TypeError, ValueError):
        return None
    return found if isinstance(found, Analysed) else None


def _write(entry: Path, content: bytes) -> None:
    """Another process sees all of it or nothing. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=entry.parent, prefix=_SCRATCH)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, entry)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


_SCRATCH = "new-"


def _make_room(folder: Path) -> None:
    """Raises OSError when the folder is gone."""
    entries: list[tuple[float, int, str]] = []
    for shelf in os.scandir(folder):
        with contextlib.suppress(OSError):  # another run is at it
            for entry in os.scandir(shelf):
                status = entry.stat(follow_symlinks=False)
                abandoned = entry.name.startswith(_SCRATCH) and time.time() - status.st_mtime > ABANDONED_S
                if abandoned:
                    os.unlink(entry)
                else:
                    entries.append((status.st_mtime, status.st_size, entry.path))
    taken = sum(size for _, size, _ in entries)
    if taken <= KEPT_RESULTS_BYTES:
        return
    for _, size, path in sorted(entries):
        if taken <= KEPT_SHARE * KEPT_RESULTS_BYTES:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        taken -= size
