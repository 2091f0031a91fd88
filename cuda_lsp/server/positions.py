"""Between our ranges (1-based code points) and the client's (0-based, in its own units)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris
from pygls.workspace import TextDocument

from cuda_lsp.model import Position, SourceRange


def to_client(extent: SourceRange, document: TextDocument | None) -> lsp.Range:
    """``extent`` in the client's units; ``document`` None: another file, whose text is not at hand."""
    plain = lsp.Range(
        lsp.Position(extent.start.line - 1, extent.start.column - 1),
        lsp.Position(extent.end.line - 1, extent.end.column - 1),
    )
    if document is None or _units_are_code_points(plain, document.lines):
        return plain
    return document.position_codec.range_to_client_units(document.lines, plain)


def range_at(start: int, end: int, document: TextDocument) -> lsp.Range:
    """What stands between two offsets (code points) of the text, in the client's units."""
    places: list[lsp.Position] = []
    for offset in (start, end):
        line = 0
        while line + 1 < len(document.lines) and offset > len(document.lines[line]):
            offset -= len(document.lines[line])
            line += 1
        places.append(lsp.Position(line, offset))
    return document.position_codec.range_to_client_units(document.lines, lsp.Range(*places))


def _units_are_code_points(extent: lsp.Range, lines: Sequence[str]) -> bool:
    """Whether only ASCII stands before the ends of a range: pygls counts letter by letter."""
    return all(
        place.line < len(lines) and lines[place.line][: place.character].isascii()
        and place.character <= len(lines[place.line])
        for place in (extent.start, extent.end)
    )  # fmt: skip


def from_client(position: lsp.Position, document: TextDocument) -> Position:
    """A client's position as ours."""
    plain = document.position_codec.position_from_client_units(document.lines, position)
    return Position(plain.line + 1, plain.character + 1)


def path_of(uri: str) -> Path:
    """The file of a document; untitled ones get a name of their own."""
    name = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return Path(name) if name else Path("/untitled") / (uri.rsplit(":", 1)[-1].strip("/") or "1")


def uri_of(path: Path) -> str:
    """The URI of a file."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def contains(extent: SourceRange, position: Position) -> bool:
    """Whether ``position`` lies in or right behind ``extent``."""
    return extent.start <= position <= extent.end
