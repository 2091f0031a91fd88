"""Files that only make sense inside another file: kernels included by a ``.cu``, headers without includes.

Such a fragment uses macros and types that its includer defined before the ``#include``. When a file's
kernels do not parse on their own, the nearest file that includes it is looked for, and what stands above
that ``#include`` is put in front (as a forced header: no position of the fragment moves), behind what that
file's own includer says. What stands below it is put behind the fragment where templates stay without
arguments, because there they get some. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.frontend.blanked import blanked

_SUFFIXES = frozenset({".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inl"})
_MAX_FILES = 400
_MAX_FOLDERS = 3  # the fragment's own, and those above it
_MAX_CHAIN = 3  # includers of includers
_MAX_INCLUDERS = 3
_MAX_BYTES = 1 << 20


@frozen
class Prelude:
    """``text`` is what ``includer`` says before it includes the fragment, ``tail`` what it says behind."""

    includer: Path
    text: str
    tail: str = ""

    @property
    def path(self) -> Path:
        """A name beside the includer, so that its own includes are found; no such file exists."""
        return self.includer.with_name(f".{self.includer.name}.cuda-lsp-prelude.h")

    @property
    def open_braces(self) -> int:
        """Scopes that are still open where the fragment begins (``extern "C" {``)."""
        plain = blanked(self.text)
        return max(0, plain.count("{") - plain.count("}"))


def find_preludes(fragment: Path) -> list[tuple[Prelude, ...]]:
    """What may stand before ``fragment``: for each file nearby that includes it what that file says first,
    alone and behind what its own includer says first, … (outermost first)."""
    found: list[tuple[Prelude, ...]] = []
    for prelude in _includers(fragment, _MAX_INCLUDERS):
        found.append((prelude,))
        chain = _chain(prelude)
        if len(chain) > 1:
            found.append(chain)
    return found


def _chain(inner: Prelude) -> tuple[Prelude, ...]:
    chain = [inner]
    while len(chain) < _MAX_CHAIN:
        outer = _includers(chain[0].includer, 1)
        if not outer or any(outer[0].includer == p.includer for p in chain):
            break
        chain.insert(0, outer[0])
    return tuple(chain)


def _includers(fragment: Path, most: int) -> list[Prelude]:
    """The starts of the nearest files that include ``fragment``."""
    name = re.escape(fragment.name)
    wanted = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*(?:"(?:[^"\n]*/)?{name}"|<(?:[^>\n]*/)?{name}>)', re.M)
    found: list[Prelude] = []
    for candidate in _neighbours(fragment):
        try:
            text = files.read_text(candidate, _MAX_BYTES)
        except OSError:  # vanished, no regular file, or too large: one includer less to try
            continue
        match = wanted.search(text)
        if match:
            found.append(Prelude(candidate, text[: match.start()], text[match.end() :].partition("\n")[2]))
            if len(found) == most:
                break
    return found


def _neighbours(fragment: Path) -> Iterator[Path]:
    """Source files of the fragment's folder, of those in it and above it, at most ``_MAX_FILES``."""
    count = 0
    for folder in _folders(fragment):
        try:
            found = [folder / n for n, is_folder in files.names(folder, _SUFFIXES) if not is_folder]
        except OSError:
            continue
        for file in found:
            if file.name == fragment.name:
                continue
            count += 1
            if count > _MAX_FILES:
                return
            yield file


def _folders(fragment: Path) -> Iterator[Path]:
    """The fragment's folder, those in it (``instances/``), those above it."""
    own, *above = fragment.parents[:_MAX_FOLDERS]
    yield own
    with contextlib.suppress(OSError):  # not readable: nothing to be seen in it
        yield from (
            own / name for name, is_folder in files.names(own, _SUFFIXES) if is_folder and name[0] != "."
        )
    yield from above
