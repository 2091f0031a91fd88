"""Headers of a project that no flag tells the folder of, looked for by their names near the file.

Sources of a project seldom stand beside its build commands: ``#include "tensor/view.cuh"`` then names a file
that is there, under a folder that only the build knows. Such a header is looked for in the usual folders of
those above the file, and then in the whole project, where the nearest file with that name counts. Beyond the
project's root (the nearest folder under version control, or the topmost that has build files) nothing is
read, and headers of systems and of the toolkit are never looked for. Looked for when a file is opened and
its kernels do not parse without, never while typing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from cuda_lsp import files

_REPOSITORY = (".git", ".hg", ".svn")
_BUILD = ("CMakeLists.txt", "Makefile", "meson.build", "setup.py", "pyproject.toml", "BUILD.bazel")
_USUAL = ("", "include", "src", "inc")
_MAX_LEVELS = 12
_MAX_FOLDERS = 20_000
_SUFFIXES = (".h", ".cuh", ".hpp", ".hxx", ".hh", ".inl", ".inc", ".cu")


def project_root(path: Path) -> Path | None:
    """The root of the project that ``path`` belongs to, as far as its folders tell."""
    folders = list(path.absolute().parents)[:_MAX_LEVELS]
    for folder in folders:
        if any(files.exists(folder / mark) for mark in _REPOSITORY):
            return folder
    built = [folder for folder in folders if any(files.is_regular(folder / mark) for mark in _BUILD)]
    return built[-1] if built else None


def folders_of(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Folders that make ``#include``s of ``names`` in ``path`` found, in the order of the names."""
    root = project_root(path)
    if root is None:
        return ()
    found = (_usual_folder(path, root, name) or _nearest_folder(path, root, name) for name in names)
    return tuple(dict.fromkeys(str(folder) for folder in found if folder is not None))


def forget() -> None:
    """Look again: headers may have come or gone."""
    headers_of.cache_clear()


def _usual_folder(path: Path, root: Path, name: str) -> Path | None:
    for folder in path.absolute().parents:
        for usual in _USUAL:
            if files.is_regular(folder / usual / name):
                return folder / usual
        if folder == root:
            break
    return None


def _nearest_folder(path: Path, root: Path, name: str) -> Path | None:
    """The folder from which the header with this name is seen that stands nearest to ``path``."""
    wanted = Path(name).parts
    if ".." in wanted or not wanted or not wanted[-1].endswith(_SUFFIXES):
        return None
    seen = [p for p in headers_of(root).get(wanted[-1], ()) if p.parts[-len(wanted) :] == wanted]
    if not seen:
        return None
    here = path.absolute().parts
    nearest = min(seen, key=lambda p: (len(p.parts) - 2 * in_common(p.parts, here), p))
    return Path(*nearest.parts[: -len(wanted)])


def in_common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many parts two paths begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@lru_cache(maxsize=4)
def headers_of(root: Path) -> dict[str, tuple[Path, ...]]:
    """Every header below ``root`` by its file name."""
    found: dict[str, list[Path]] = {}
    for folder, names in _walk(root):
        for file in names:
            if file.endswith(_SUFFIXES):
                found.setdefault(file, []).append(Path(folder, file))
    return {name: tuple(paths) for name, paths in found.items()}


def _walk(root: Path) -> Iterator[tuple[str, list[str]]]:
    for count, (folder, below, names) in enumerate(files.walk(root, _SUFFIXES)):
        if count >= _MAX_FOLDERS:
            return
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield folder, names
