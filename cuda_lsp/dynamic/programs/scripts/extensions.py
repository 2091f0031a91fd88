"""Shared libraries that compilers make for a Python program, as it runs or before: of which sources, and how.

PyTorch's ``cpp_extension`` lets ninja or setuptools call nvcc and a host compiler; others call them as they
like. Each of these writes down what it was asked (``recorder``), and what was seen is kept for the folder, so
that a library with nothing left to build is known too.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Mapping
from filecmp import cmp
from functools import lru_cache
from pathlib import Path

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.programs.build_command import all_steps, folder_key, remembered
from cuda_lsp.dynamic.programs.build_commands import Linked, Step, linked
from cuda_lsp.dynamic.programs.job import Unit
from cuda_lsp.dynamic.programs.recorder import recorded
from cuda_lsp.dynamic.ptx.names import HASH

_NOWHERE = Path("/")  # a program that is made of nothing


@frozen
class BuiltSource:
    """What one device code of a library is made of: one source, or all whose device code is linked."""

    library: Path
    units: tuple[Unit, ...]


@define
class Extensions:
    """What is known of a program's libraries. ``folder``: where it runs; ``log``: of its compilers."""

    folder: Path
    cache: Path
    log: Path | None = None
    _read: int = -1  # bytes of the log
    _steps: Mapping[Path, Step] = field(factory=dict[Path, Step])

    def made_of(self, library: Path) -> Linked | None:
        """A library's sources, and those of others that it is linked with; itself comes last.

        None: its build was not seen, or it holds no device code.
        """
        path = self._built(Path(os.path.realpath(library)))
        if path is None:
            return None
        found = linked(_NOWHERE, self.steps(), (path,))
        return found if any(unit.device for unit in found.units) else None

    def sources_of(self, library: Path) -> tuple[BuiltSource, ...]:
        """Each device code that a library holds."""
        found = self.made_of(library)
        number = len(found.libraries) if found is not None else 0
        own = (unit for unit in (found.units if found else ()) if unit.device and unit.library == number)
        units = [evolve(unit, library=0) for unit in own]  # their names are to stay what they are
        alone = [BuiltSource(library, (unit,)) for unit in units if not unit.relocatable]
        together = tuple(unit for unit in units if unit.relocatable)
        return (*alone, *((BuiltSource(library, together),) if together else ()))

    @property
    def seen(self) -> int:
        """Bytes of the log: what is known of builds changes with them."""
        return self.log.stat().st_size if self.log is not None and self.log.exists() else 0

    def steps(self) -> Mapping[Path, Step]:
        """All that compilers made, as far as it was seen by now."""
        size = self.seen
        if size != self._read:
            started = tuple(recorded(self.log.read_bytes())) if self.log is not None and size else ()
            self._steps = all_steps(remembered(self.folder, self.cache, started))
            self._read = size
        return self._steps

    def _built(self, path: Path) -> Path | None:
        """The library as it was built; it may be a copy that was opened."""
        steps = self.steps()
        if path in steps:
            return path if steps[path].shared else None
        alike = (other for other, step in steps.items() if step.shared and other.name == path.name)
        return next((other for other in alike if other.is_file() and cmp(other, path, shallow=False)), None)


def folder_for_torch(folder: Path, cache: Path) -> Path:
    """Where PyTorch builds what a program of this folder gives it at run time (``TORCH_EXTENSIONS_DIR``)."""
    return cache / "extensions" / folder_key(folder)


def mapped() -> Iterator[Path]:
    """The shared libraries of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        names = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count(" /")}
    yield from (Path(name) for name in sorted(names) if ".so" in name)


@lru_cache(4096)
def registered(name: str, library: Path) -> str | None:
    """A variable as a library's host code names it; None: it does not, or there are several.

    ``name``: as of ``ptx.names.stable``, which takes away what differs between builds.
    """
    pattern = rb"[0-9a-f]{8}".join(re.escape(part.encode()) for part in name.split(HASH))
    found = set(re.findall(rb"\0(" + pattern + rb")\0", _content(library)))
    return found.pop().decode() if len(found) == 1 else None


@lru_cache(1)
def _content(library: Path) -> bytes:
    return library.read_bytes()


class _Place(ctypes.Structure):
    """``Dl_info`` of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def file_at(address: int) -> Path | None:
    """The library of this process in which an address lies."""
    place = _Place()
    found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place))
    return Path(os.fsdecode(place.file)) if found and place.file else None
