"""One text as repairs read it: positions and offsets, the code without comments, its statements."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from cuda_lsp.blanked import blanked
from cuda_lsp.model import Finding, Position, SourceRange
from cuda_lsp.repairs.statements import Statement, Statements

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_END = re.compile(r"\r\n|\r|\n")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\(?:\r\n|[\s\S])|[^\\\r\n])*", re.MULTILINE)


class Source:
    """A file's text. Offsets are code points."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, _LINE.findall(self.text)))]

    @cached_property
    def plain(self) -> str:
        """The text with spaces in place of comments, strings and what the preprocessor reads."""
        return _DIRECTIVE.sub(lambda m: re.sub(r"[^\r\n]", " ", m[0]), blanked(self.text))

    @cached_property
    def statements(self) -> Statements:
        """The statements of its functions."""
        return Statements(self.plain)

    def offset(self, place: Position) -> int:
        """Where a place of this text is; its end where there is no such line."""
        if place.line > len(self._starts):
            return len(self.text)
        return min(self._starts[place.line - 1] + place.column - 1, len(self.text))

    def position(self, offset: int) -> Position:
        """The line and column of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return Position(line + 1, offset - self._starts[line] + 1)

    def line_start(self, offset: int) -> int:
        """Where the line begins."""
        return self._starts[bisect_right(self._starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Behind the end of its line."""
        end = _END.search(self.text, offset)
        return end.end() if end else len(self.text)

    def indent(self, offset: int) -> str:
        """The white space that the line begins with."""
        found = re.compile(r"[ \t]*").match(self.text, self.line_start(offset))
        return found[0] if found else ""

    def begins_line(self, offset: int) -> bool:
        """Whether only white space stands before it on its line."""
        return not self.text[self.line_start(offset) : offset].strip()

    def ends_line(self, offset: int) -> bool:
        """Whether only white space stands behind it on its line."""
        end = _END.search(self.text, offset)
        return not self.text[offset : end.start() if end else len(self.text)].strip()

    @cached_property
    def newline(self) -> str:
        """How the lines of this text end."""
        found = _END.search(self.text)
        return found[0] if found else "\n"

    def has(self, extent: SourceRange) -> bool:
        """Whether a place is in this file."""
        return extent.path == self.path

    def extent(self, extent: SourceRange) -> tuple[int, int]:
        """Both ends as offsets."""
        return self.offset(extent.start), self.offset(extent.end)

    def statement_at(self, extent: SourceRange) -> Statement | None:
        """The innermost statement around a place of this file."""
        path = self.statements.path(self.offset(extent.start)) if self.has(extent) else ()
        return path[-1] if path else None

    def here(self, finding: Finding) -> bool:
        """Whether all that it tells of is in this file, calls aside."""
        sites = (finding.site, *(related.site for related in finding.related[:1]))
        return all(self.has(site.range) for site in sites)
