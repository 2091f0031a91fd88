"""A project as it is sent to other machines, named by its content, and laid out there.

Sent is what the analysis may read: sources, headers, settings, databases, build files, and the names of all
folders. What else an analysis asks for is found out by comparing the answers that it got (``files.noting``),
and sent then. A tree is laid out once a machine, below a folder in which its paths are what they are here.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp import files
from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.frontend.toolchain import HEADERS

_SUFFIXES = frozenset({
    ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tpp", ".c", ".cc", ".cpp", ".cxx",
    ".toml", ".json", ".txt", ".cmake", ".mk", ".rsp",
})  # fmt: skip
_NAMES = frozenset(("makefile", "gnumakefile", "head"))
_MOST_BYTES = 256 << 20
_DONE = ".complete"


@frozen
class Tree:
    """A folder's files by the name of their content: ``digest`` of it all, ``packed`` the whole."""

    tops: tuple[str, ...]
    digest: str
    packed: bytes


class TooLarge(ValueError):
    """A folder is not sent."""


def gathered(top: Path, extras: Iterable[str] = ()) -> Tree:
    """All below a folder that an analysis may ask for, and other paths. Raises TooLarge."""
    found: dict[str, bytes | str | None] = {}  # contents; where a link leads; None: a folder
    _gather(str(top), found)
    for extra in extras:
        _take(extra, found)
        for inside in os.scandir(extra) if os.path.isdir(extra) else ():
            if inside.is_dir() or _is_asked_for(inside.name):
                _take(inside.path, found)
    data = pickle.dumps(sorted(found.items()), 5)
    tops = (str(top), *(os.path.dirname(extra) for extra in sorted(extras)))
    digest = hashlib.sha256(repr(tops).encode() + data).hexdigest()
    return Tree(tops, digest, zlib.compress(data, 1))


def _gather(top: str, found: dict[str, bytes | str | None]) -> None:
    room = _MOST_BYTES
    for folder, below, names in os.walk(top):
        for name in [*below, *names]:
            path = os.path.join(folder, name)
            if os.path.islink(path) or name in below or _is_asked_for(name):
                _take(path, found)
                room -= len(found.get(path) or b"")
        if room < 0:
            raise TooLarge(top)


def _is_asked_for(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in _SUFFIXES or name.lower() in _NAMES


def _take(path: str, found: dict[str, bytes | str | None]) -> None:
    """What cannot be read stays away: the answers differ then."""
    if os.path.islink(path):
        found[path] = os.readlink(path)
    elif files.kind(path) == files.FOLDER:
        found[path] = None
    elif files.is_regular(path):
        try:
            found[path] = files.read_bytes(path)
        except OSError as error:
            if files.size(path) > files.SOURCE_LIMIT:
                raise TooLarge(path) from error


def laid_out(tree: Tree, scratch: Path) -> tuple[str, str]:
    """The folder below which a tree lies on this machine, and the overlay that tells clang so."""
    folder = scratch / tree.digest[:32]
    if not (folder / _DONE).exists():
        _lay_out(tree, folder)
    return str(folder / "files"), str(folder / "overlay.json")


def _lay_out(tree: Tree, folder: Path) -> None:
    """Whole or not at all, whoever else does it at the same time. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
    place = str(new / "files")
    data = zlib.decompress(tree.packed)
    entries: list[tuple[str, bytes | str | None]] = pickle.loads(data)
    if hashlib.sha256(repr(tree.tops).encode() + data).hexdigest() != tree.digest:
        raise OSError("a tree came damaged")
    for path in tree.tops:
        os.makedirs(place + path, exist_ok=True)
    for path, content in entries:
        if content is None:
            os.makedirs(place + path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(place + path), exist_ok=True)
        if isinstance(content, str):
            here = os.path.normpath(os.path.join(os.path.dirname(path), content))
            os.symlink(os.path.relpath(place + here, os.path.dirname(place + path)), place + path)
        else:
            Path(place + path).write_bytes(content)
    (new / "overlay.json").write_text(_overlay(tree.tops, str(folder / "files")))
    (new / _DONE).touch()
    try:
        os.rename(new, folder)
    except OSError:  # another one was first
        if not (folder / _DONE).exists():
            raise


def _overlay(tops: Sequence[str], place: str) -> str:
    """Nothing of this machine is read but our own headers."""
    own = [str(HEADERS), str(cache_folder())]
    outer = [top for top in dict.fromkeys(tops) if not any(_is_in(top, other) for other in tops)]
    if any(_is_in(mine, top) for mine in own for top in outer):
        raise OSError("it would hide our own headers")
    pairs = [*((top, place + top) for top in outer), *((folder, folder) for folder in own)]
    return json.dumps({
        "version": 0,
        "use-external-names": False,
        "redirecting-with": "redirect-only",
        "roots": [
            {"name": name, "type": "directory-remap", "external-contents": where} for name, where in pairs
        ],
    })  # fmt: skip


def _is_in(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep)
