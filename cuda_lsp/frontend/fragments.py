"""Files that only make sense inside another file: kernels included by a ``.cu``, headers without includes.

Such a fragment uses macros and types that its includer defined before the ``#include``. When a file's
kernels do not parse on their own, the nearest file that includes it is looked for, and what stands above
that ``#include`` is put in front (as a forced header: no position of the fragment moves). Looked for when a
file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

_SUFFIXES = frozenset({".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inl"})
_MAX_FILES = 200
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


def find_prelude(fragment: Path) -> Prelude | None:
    """The start of the nearest file that includes ``fragment``; None when there is none nearby."""
    wanted = re.compile(rf'^[ \t]*#[ \t]*include[ \t]*"(?:[^"\n]*/)?{re.escape(fragment.name)}"', re.M)
    for candidate in _neighbours(fragment):
        try:
            if candidate.stat().st_size > _MAX_BYTES:
                continue
            text = candidate.read_text(encoding="utf-8", errors="replace")
        except OSError:  # vanished or unreadable: one includer less to try
            continue
        match = wanted.search(text)
        if match and text[: match.start()].strip():
            return Prelude(candidate, text[: match.start()])
    return None


def _neighbours(fragment: Path) -> Iterator[Path]:
    """Source files of the fragment's folder, then of its parent's, at most ``_MAX_FILES``."""
    count = 0
    for folder in fragment.parents[:2]:
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
