"""Units: files that are compiled, and what they include. A header is read as a part of one.

A header's kernels mean what they mean in the file that includes it: its macros, types and template arguments
stand there. ``units_of`` finds who includes a file, directly or through others, nearest first, by the
``#include`` lines of the files around it; ``kernel_headers`` tells which files of the project a unit brings
kernels from. All this reads the disk: when a file is opened or checked, never while typing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.surroundings.included import mentioned
from cuda_lsp.frontend.surroundings.nearby_headers import project_root

_COMPILED = frozenset({".cu", ".cc", ".cpp", ".cxx", ".c"})
_INCLUDED = frozenset({".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc"})
_MAX_FILES = 5000
_MAX_CHAIN = 6  # includers of includers
_MAX_UNITS = 3
_MAX_BYTES = 1 << 20
_MAX_FOLDERS = 4000
_MAX_ABOVE = 2  # folders above a file that no project holds


@frozen
class Unit:
    """A file that reads others, as it was on disk."""

    path: Path
    text: str


def unit_at(path: Path) -> Unit | None:
    """The file as a unit; None: it cannot be read."""
    try:
        return Unit(path.absolute(), files.read_text(path))
    except OSError:
        return None


def is_header(path: Path) -> bool:
    """Whether a file of this name is compiled only as a part of others, as builds have it."""
    return path.suffix in _INCLUDED


def units_of(path: Path) -> list[Unit]:
    """The nearest units that include the file, those of CUDA first; at most three."""
    target = path.absolute()
    names = _includers(project_root(target), target.parent)
    seen, level, found = {_real(target)}, [target], list[Path]()
    for _ in range(_MAX_CHAIN):
        above: list[Path] = []
        for file in level:
            for includer in sorted(names.get(file.name, {}), key=lambda p: (_distance(p, file), p)):
                if _real(includer) not in seen and _includes(includer, names[file.name][includer], file):
                    seen.add(_real(includer))
                    above.append(includer)
        found += above
        level = above
        if not level or len(found) > _MAX_FILES:
            break
    # Of a chain of headers that nothing compiles, the last one is all there is.
    compiled = [p for p in found if not is_header(p)] or found[-1:]
    best = sorted(compiled, key=lambda p: p.suffix != ".cu")  # stable: the nearest stay first
    return [unit for p in best[:_MAX_UNITS] if (unit := unit_at(p)) is not None]


def includers(changed: Iterable[Path]) -> frozenset[Path]:
    """The project's files that include one of these, directly or through others, as far as names tell."""
    found: dict[Path, None] = {}
    for path in {_real(path) for path in changed}:
        names = _includers(project_root(path), path.parent)
        level = {path.name}
        while level:
            above = {_real(file) for name in level for file in names.get(name, {})} - found.keys()
            found.update(dict.fromkeys(above))
            level = {file.name for file in above}
    return frozenset(found)


def kernel_headers(unit: Path, texts: Mapping[Path, str]) -> tuple[Path, ...]:
    """Files of the project among ``texts``, what a unit includes, that hold kernels, sorted."""
    root = _real(project_root(unit) or unit.absolute().parent)
    own = _real(unit)
    inside = (p for p in texts if p != own and p.is_relative_to(root))
    return tuple(sorted(path for path in inside if holds_kernels(texts[path])))


def kernel_files(folder: Path) -> list[Path]:
    """The ``.cu`` files below a folder, and all other sources and headers that hold kernels."""
    return sorted(with_kernels(Path(where, name) for where, names in _walk(folder) for name in names))


def with_kernels(paths: Iterable[Path]) -> list[Path]:
    """Those that are there and are called ``.cu`` or hold kernels."""
    return [p for p in paths if files.is_regular(p) and (p.suffix == ".cu" or _holds_kernels(p))]


def _holds_kernels(path: Path) -> bool:
    try:
        return holds_kernels(files.read_text(path))
    except OSError:  # too large, or not ours to read
        return path.suffix == ".cuh"  # its report says so


def included_sources(paths: Sequence[Path]) -> frozenset[Path]:
    """Those of the sources (``.cu``) that another of them includes, by a name that leads straight to it."""
    found: dict[Path, None] = {}
    for path in paths:
        try:
            text = files.read_text(path)
        except OSError:
            continue
        names = (name for name in mentioned(text) if Path(name).suffix in _COMPILED)
        found.update(dict.fromkeys(_real(path.parent / name) for name in names))
    return frozenset(path for path in paths if _real(path) in found and not is_header(path))


def holds_kernels(text: str) -> bool:
    """Whether there is a ``__global__`` outside of comments and strings."""
    return "__global__" in text and "__global__" in blanked(text)


def on_the_way(target: Path, texts: Mapping[Path, str]) -> frozenset[Path]:
    """The files of ``texts`` that lead to ``target`` by what they include, as far as names tell."""
    names, found = {target.name}, dict[Path, None]()
    for _ in range(_MAX_CHAIN):
        more = [
            path
            for path, text in texts.items()
            if path not in found and any(os.path.basename(name) in names for name in mentioned(text))
        ]
        if not more:
            break
        found.update(dict.fromkeys(more))
        names |= {path.name for path in more}
    return frozenset(found)


def forget() -> None:
    """Look again: files may have come or gone."""
    _includers.cache_clear()


@lru_cache(maxsize=4)
def _includers(project: Path | None, folder: Path) -> dict[str, dict[Path, list[str]]]:
    """For each file name which files of the project include something of that name, and how they call it.

    Without a project: the files of ``folder``, of those in it and above it.
    """
    found: dict[str, dict[Path, list[str]]] = {}
    for file in _files(project, folder):
        try:
            text = files.read_text(file, _MAX_BYTES)
        except OSError:  # vanished, no regular file, or too large: one includer less
            continue
        for name in mentioned(text):
            found.setdefault(os.path.basename(name), {}).setdefault(file, []).append(name)
    return found


def _files(project: Path | None, folder: Path) -> list[Path]:
    """The sources and headers of a project, or around a folder, at most ``_MAX_FILES``."""
    if project is not None:
        tree = list(islice(_walk(project), _MAX_FOLDERS))
    else:
        tree = list(islice(_walk(folder, 1), _MAX_FOLDERS))
        tree += [entry for above in folder.parents[:_MAX_ABOVE] for entry in _walk(above, 0)]
    return list(islice((Path(where, name) for where, names in tree for name in names), _MAX_FILES))


def _walk(top: Path, depth: int = 100) -> Iterator[tuple[str, list[str]]]:
    """Folders with the names of their sources and headers, ``depth`` levels down."""
    for where, below, names in files.walk(top, _COMPILED | _INCLUDED):
        level = len(Path(where).parts) - len(top.parts)
        below[:] = [name for name in below if not name.startswith(".")] if level < depth else []
        yield where, names


def _includes(includer: Path, written: Iterable[str], target: Path) -> bool:
    """Whether one of the names that the includer uses may be ``target``."""
    for name in written:
        beside = includer.parent / name
        if files.is_regular(beside):
            if _real(beside) == _real(target):
                return True
            continue
        parts = tuple(part for part in Path(name).parts if part not in ("..", "."))
        if target.parts[-len(parts) :] == parts:
            return True
    return False


def _distance(one: Path, other: Path) -> int:
    """Folders between two files."""
    common = len(os.path.commonpath([one.parent, other.parent]).split(os.sep))
    return len(one.parent.parts) + len(other.parent.parts) - 2 * common


def _real(path: Path) -> Path:
    return Path(files.target(path))
