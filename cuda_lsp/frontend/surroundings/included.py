"""Which files a text includes, directly and through others, told from the text alone.

libclang tells either what stands before the first declaration or what stands behind it, not both (its list
of inclusions leaves out the one or the other when the former are precompiled). What conditional compilation
leaves out counts as well: a file too many is harmless here.

A project may hold a ``z.h`` that is a link to ``/dev/zero``, or a pipe that nobody writes to. clang would
read them until memory ends, or wait for ever: what is no regular file, or too large, is found here first.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from cuda_lsp import files
from cuda_lsp.blanked import blanked
from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.surroundings.noted import note_all
from cuda_lsp.model import ToolError

_INCLUDE = re.compile(r'#[ \t]*(?:include(?:_next)?|import|define[ \t]+\w+)[ \t]*["<]([^">\n]+)[">]')
_ASKED_FOR = re.compile(r'__has_include(?:_next)?[ \t]*\([ \t]*["<]([^">\n]+)[">]')
_GUARDED = re.compile(r"\A#[ \t]*(?:pragma[ \t]+once|ifndef|if[ \t]+!)")
_MOST_FILES = 2000


@frozen
class Refusal:
    """``name``, included in the file ``where``, leads to ``path``, which clang must not open."""

    name: str
    where: Path
    path: str
    reason: str


@frozen
class Inclusions:
    """``texts``: the files that are included, by their resolved paths, with what they say.

    ``with_kernels``: those of the project that hold kernels. ``around``: those through which a unit comes to
    the file that is looked at, the unit among them.
    """

    texts: Mapping[Path, str] = field(factory=dict[Path, str])
    refused: tuple[Refusal, ...] = ()
    with_kernels: tuple[Path, ...] = ()
    around: frozenset[Path] = frozenset()

    def told(self, source: SourceText) -> list[ToolError]:
        """What the user should know of refused files."""
        told: list[ToolError] = []
        for refusal in {(r.name, r.where): r for r in self.refused}.values():
            match = next((m for m in _mentions(source.text) if m[1] == refusal.name), None)
            extent = None
            if match is not None and refusal.where == source.path:
                start = len(source.text[: match.start()].encode("utf-8", "replace"))
                extent = source.range(start, start + len(match[0].encode("utf-8", "replace")))
            message = f"header {refusal.name!r} is not read: {refusal.reason}"
            told.append(ToolError(f"{message}, so what it declares is unknown", extent))
        return told


def mentioned(text: str) -> tuple[str, ...]:
    """Names of files that preprocessing a text may look for."""
    return tuple(match[1] for match in _mentions(text))


def _mentions(text: str) -> Iterator[re.Match[str]]:
    for match in _INCLUDE.finditer(text):  # the sign is found fast, beginnings of lines are not
        start = match.start()
        while start and text[start - 1] in " \t":
            start -= 1
        if not start or text[start - 1] == "\n":
            yield match
    yield from _ASKED_FOR.finditer(text)


def inclusions(roots: Iterable[tuple[Path, str]], folders: Sequence[str]) -> Inclusions:
    """What the texts of ``roots`` include; ``folders`` are those of the include path."""
    found: dict[Path, str] = {}
    refused: list[Refusal] = []
    edges: list[_Edge] = []
    pending = list(roots)
    if files.is_noting():
        note_all(pending, folders, mentioned, _MOST_FILES)
    while pending:
        where, content = pending.pop()
        for name, times in Counter(mentioned(content)).items():
            path = _candidate(where, name, folders)
            header = Path(files.target(path)) if path is not None else None
            if path is not None and header is not None:
                edges.append(_Edge(where, header, path, name, times))
            if path is None or header is None or header in found or len(found) >= _MOST_FILES:
                continue
            try:
                found[header] = files.read_text(path)
            except OSError as error:
                refused.append(Refusal(name, where, path, error.strerror or "unreadable"))
            else:
                pending.append((header, found[header]))
    return Inclusions(found, (*refused, *_read_too_often(edges, found)))


@frozen
class _Edge:
    """A file includes another, spelt ``path``, so many ``times``."""

    where: Path
    header: Path
    path: str
    name: str
    times: int


def _read_too_often(edges: Sequence[_Edge], texts: Mapping[Path, str]) -> list[Refusal]:
    """Headers without guards that are read again wherever they are included, at the first that is too much.

    Circles are clang's affair: it gives up 200 files deep.
    """
    if max((edge.times for edge in edges), default=0) < 2:
        return []
    into: dict[Path, list[_Edge]] = {}
    for edge in edges:
        into.setdefault(edge.header, []).append(edge)
    known: dict[Path, int] = {}

    def readings(path: Path) -> int:
        if path not in known:
            known[path] = 1  # for circles
            if path in into and not _GUARDED.match(blanked(texts.get(path, "")).lstrip()):
                known[path] = sum(edge.times * readings(edge.where) for edge in into[path])
        return known[path]

    reason = f"it is included more than {budgets.MOST_INCLUSIONS:,} times"
    return [
        Refusal(edge.name, edge.where, edge.path, reason)
        for edge in edges
        if readings(edge.header) > budgets.MOST_INCLUSIONS
    ]


def contents_digest(paths: Iterable[Path], seed: bytes) -> bytes:
    """Changes when one of the files does, or ``seed``."""
    sha = hashlib.sha256(seed)
    for path in sorted(paths):
        try:
            sha.update(str(path).encode("utf-8", "replace") + files.read_bytes(path))
        except OSError:  # gone since it was parsed: as good as a different header
            sha.update(b"unreadable")
    return sha.digest()


def resolved(where: Path, name: str, folders: Sequence[str]) -> Path | None:
    """The regular file that ``#include "name"`` in ``where`` means; None: there is none."""
    path = _candidate(where, name, folders)
    return Path(files.target(path)) if path is not None and files.is_regular(path) else None


def _candidate(where: Path, name: str, folders: Sequence[str]) -> str | None:
    """The first thing of that name that is there and no folder, spelt as clang spells it."""
    for folder in (str(where.parent), *folders):
        path = os.path.join(folder, name)
        if files.kind(path) not in (files.ABSENT, files.FOLDER):
            return path
    return None
