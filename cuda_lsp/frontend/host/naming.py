"""The files around a file, and which of them hold certain words: a question whose answer can be had again.

Others need not be known: a result hangs on those that name a kernel, or what launches it, and not on what
else a project changes.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_lsp import files
from cuda_lsp.frontend.surroundings.nearby_headers import project_root

_SUFFIXES = frozenset({".cu", ".cuh", ".h", ".hpp", ".hh", ".cc", ".cpp", ".cxx", ".inl", ".c"})
_ROOT_MARKS = (".git", "CMakeLists.txt", "Makefile", "compile_commands.json", "cuda-lsp.toml", "meson.build")
_MOST_FILES = 400  # looked at per folder tree
_MOST_FOLDERS = 200
_MOST_BYTES = 2 << 20  # of one file
_MOST_PARENTS = 5
_ASKED = "naming"


def naming(path: Path, words: Collection[str]) -> list[Path]:
    """The files around ``path`` that hold one of the words, those of its folder first."""
    return [Path(name) for name in json.loads(files.told(_ASKED, path, words))] if words else []


def _naming(path: str, words: Sequence[str]) -> str:
    sought = [word.encode() for word in words]
    contents = _contents(path).items()
    return json.dumps([str(file) for file, data in contents if any(word in data for word in sought)])


def answer_again() -> None:
    """From now on this process can say whether an answer is as it was."""
    files.answering(_ASKED, _naming)


answer_again()


@contextmanager
def one_moment() -> Generator[None]:
    """While this thread asks several questions nothing is taken to change: what is read once is not again."""
    _asked.moment = {}
    try:
        yield
    finally:
        _asked.moment = None


class _Asked(threading.local):
    moment: dict[str, dict[Path, bytes]] | None = None  # files and contents, by what they are around


_asked = _Asked()


def _contents(path: str) -> dict[Path, bytes]:
    moment = _asked.moment if _asked.moment is not None else {}
    if path not in moment:
        moment[path] = {file: _data(file) for file in _everywhere(Path(path))}
    return moment[path]


def _data(path: Path) -> bytes:
    try:
        return files.read_bytes(path, _MOST_BYTES)
    except OSError:  # gone, or not ours to read: it names nothing
        return b""


def _everywhere(path: Path) -> list[Path]:
    """The files of the last ring, those of the first one before others."""
    folders = folders_around(path)
    nearest = (file for folder in folders[:1] for file in files_of(folder, folders=1))
    furthest = (file for folder in folders[-1:] for file in files_of(folder))
    return list(dict.fromkeys((*nearest, *furthest)))


def folders_around(path: Path) -> list[Path]:
    """The folder of a file and those around it that are of its project."""
    if not files.is_regular(path):  # a text that was never saved has no neighbours
        return []
    folder = path.parent
    around = [folder, *folder.parents][: _MOST_PARENTS + 1]
    marked = (i for i, f in enumerate(around) if any(files.exists(f / mark) for mark in _ROOT_MARKS))
    project, root = next(marked, 0), project_root(path)
    depth = len(folder.absolute().parts) - len(root.parts) if root is not None else 0
    project = max(project, depth if depth < len(around) else 0)
    return around[: project + 1]


def files_of(folder: Path, *, folders: int = _MOST_FOLDERS) -> Iterator[Path]:
    """Source files of up to ``folders`` folders, breadth first."""
    pending = deque([folder])
    seen = count = 0
    while pending and seen < folders and count < _MOST_FILES:
        seen += 1
        try:
            inside = pending.popleft()
            for name, is_folder in files.names(inside, _SUFFIXES):
                if is_folder:
                    if not name.startswith("."):
                        pending.append(inside / name)
                else:
                    count += 1
                    yield inside / name
        except OSError:  # a folder that is not ours to read
            continue
