"""Files that only make sense inside another file: kernels included by a ``.cu``, headers without includes.

Such a fragment uses macros and types that its includer defined before the ``#include``. When a file's
kernels do not parse on their own, the nearest file that includes it is looked for, and what stands above
that ``#include`` is put in front (as a forced header: no position of the fragment moves), behind what that
file's own includer says. Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from cuda_lsp.frontend.launches import blanked

_SUFFIXES = frozenset({".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inl"})
_MAX_FILES = 200
_MAX_FOLDERS = 3  # the fragment's own, and those above it
_MAX_CHAIN = 3  # includers of includers
_MAX_BYTES = 1 << 20


@frozen
class Prelude:
    """``text`` is what ``includer`` says before it includes the fragment."""

    includer: Path
    text: str

    @property
    def path(self) -> Path:
        """A name beside the includer, so that its own includes are found; no such file exists."""
        return self.includer.with_name(f".{self.includer.name}.cuda-lsp-prelude.h")

    @property
    def open_braces(self) -> int:
        """Scopes that are still open where the fragment begins (``extern "C" {``)."""
        plain = blanked(self.text)
        return max(0, plain.count("{") - plain.count("}"))


def find_preludes(fragment: Path) -> tuple[Prelude, ...]:
    """What stands before ``fragment``, outermost file first: its includer, that file's includer, …

    Empty when nothing nearby includes it.
    """
    found: list[Prelude] = []
    while len(found) < _MAX_CHAIN:
        prelude = _find_prelude(fragment)
        if prelude is None or any(prelude.includer == p.includer for p in found):
            break
        found.insert(0, prelude)
        fragment = prelude.includer
    return tuple(found)


def _find_prelude(fragment: Path) -> Prelude | None:
    """The start of the nearest file that includes ``fragment``; None when there is none nearby."""
    name = re.escape(fragment.name)
    wanted = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*(?:"(?:[^"\n]*/)?{name}"|<(?:[^>\n]*/)?{name}>)', re.M)
    for candidate in _neighbours(fragment):
        try:
            if candidate.stat().st_size > _MAX_BYTES:
                continue
            text = candidate.read_text(encoding="utf-8", errors="replace")
        except OSError:  # vanished or unreadable: one includer less to try
            continue
        match = wanted.search(text)
        if match:
            return Prelude(candidate, text[: match.start()])
    return None


def _neighbours(fragment: Path) -> Iterator[Path]:
    """Source files of the fragment's folder, then of those above it, at most ``_MAX_FILES``."""
    count = 0
    for folder in fragment.parents[:_MAX_FOLDERS]:
        try:
            files = sorted(p for p in folder.iterdir() if p.suffix in _SUFFIXES)
        except OSError:
            continue
        for file in files:
            if file.name == fragment.name:
                continue
            count += 1
            if count > _MAX_FILES:
                return
            yield file
