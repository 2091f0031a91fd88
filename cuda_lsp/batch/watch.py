"""Waits until a source or header changes: looks at times and sizes, twice a second."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from cuda_lsp import files

_BETWEEN_S = 0.5
_MOST_FILES = 50_000
_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".cc", ".cpp", ".toml", ".json")


class Watched:
    """The folders of some paths and all below them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._tops = sorted({path if path.is_dir() else path.absolute().parent for path in paths})
        self._known = self._look()

    def wait(self) -> None:
        """Return when something is not as it was when this was made, or as it was at the last return."""
        while (now := self._look()) == self._known:
            time.sleep(_BETWEEN_S)
        self._known = now

    def _look(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for top in self._tops:
            for where, below, names in files.walk(top, _SUFFIXES):
                below[:] = [name for name in below if not name.startswith(".")]
                for name in names:
                    place = os.path.join(where, name)
                    try:
                        status = os.stat(place)
                    except OSError:  # it goes at this moment: seen as gone
                        continue
                    found[place] = (status.st_mtime_ns, status.st_size)
                    if len(found) >= _MOST_FILES:
                        return found
        return found
