"""Which files are meant by the paths of a command line: files, folders, patterns, compilation databases."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from cuda_lsp import files

SUFFIXES = (".cu", ".cuh")
_DATABASE = ".json"


class NoSource(ValueError):
    """A path that leads to no file that can be read; the message is for people."""


def sources(paths: Iterable[Path]) -> list[Path]:
    """The files, those that patterns name, and those of folders and databases that hold kernels, each once.

    Raises NoSource.
    """
    return list(dict.fromkeys(file for path in paths for file in _meant(path)))


def databases(paths: Iterable[Path]) -> list[Path]:
    """Those of the paths that are compilation databases."""
    return [path for path in paths if path.suffix == _DATABASE and files.is_regular(path)]


def _meant(path: Path) -> list[Path]:
    if path.is_dir():
        from cuda_lsp.frontend.surroundings.units import kernel_files

        return kernel_files(path)
    if files.is_regular(path):
        return _compiled(path) if path.suffix == _DATABASE else [path]
    if glob.has_magic(str(path)) and not files.exists(path):
        found = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))
        if found := [name for name in found if files.is_regular(name)]:
            return found
        raise NoSource(f"{path} matches no file")
    raise NoSource(f"{path} {'is not a regular file' if files.exists(path) else 'does not exist'}")


def _compiled(database: Path) -> list[Path]:
    """The files of a compilation database that hold kernels; those that are not there are left out."""
    from cuda_lsp.frontend.surroundings.compile_commands import files_of
    from cuda_lsp.frontend.surroundings.units import with_kernels

    try:
        listed = files_of(database)
    except OSError as error:
        raise NoSource(f"{database}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NoSource(f"{database} is no compilation database: {error}") from None
    found = with_kernels(listed)
    if not found:
        raise NoSource(f"{database} compiles no file with kernels that is there")
    return found
