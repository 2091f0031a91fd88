"""Which files are meant by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cuda_lsp.files import is_regular

SUFFIXES = (".cu", ".cuh")


class NoSource(ValueError):
    """A path that leads to no file that can be read; the message is for people."""


def sources(paths: Iterable[Path]) -> list[Path]:
    """The files, and those of folders that hold kernels, each once. Raises NoSource."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            from cuda_lsp.frontend.surroundings.units import kernel_files

            found += kernel_files(path)
        elif is_regular(path):
            found.append(path)
        else:
            raise NoSource(f"{path} {'is not a regular file' if path.exists() else 'does not exist'}")
    return list(dict.fromkeys(found))
