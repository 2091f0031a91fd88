"""Byte offsets and byte columns of clang, turned into positions in code points.

Clang counts bytes of UTF-8; the rest of the program counts Unicode code points. A file of ASCII only, the
usual case, needs no conversion.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import AnyStr

from cuda_lsp import files
from cuda_lsp.model import Position, SourceRange

BLANK = bytes(c if c in b"\r\n" else 0x20 for c in range(256))
"""For ``bytes.translate``: spaces, and line ends as they are."""
_LATER_BYTE = re.compile(rb"[\x80-\xbf]")


def differing(before: AnyStr, after: AnyStr) -> tuple[int, int, int]:
    """The one stretch in which two texts differ: where it begins, and where it ends in either."""
    shorter = min(len(before), len(after))
    start = _longest(shorter, lambda n: before[:n] == after[:n])
    same = _longest(shorter - start, lambda n: before[len(before) - n :] == after[len(after) - n :])
    return start, len(before) - same, len(after) - same


def _longest(limit: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to ``limit`` for which ``holds``, which does for all smaller ones."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def open_comment(text: str) -> tuple[int, int] | None:
    """From a ``/*`` that nothing closes to the end of its line, as offsets; None: there is none."""
    start = text.rfind("/*")
    if start <= text.rfind("*/"):
        return None
    before = text[text.rfind("\n", 0, start) + 1 : start]
    end = text.find("\n", start)
    quoted = "//" in before or before.count('"') % 2
    return None if quoted else (start, len(text) if end < 0 else end)


class SourceText:
    """One version of one file: ``text`` as the editor has it, ``data`` as clang reads it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        # A lone surrogate (from an editor's broken file) has no UTF-8; it must not end the analysis.
        self.data = text.encode("utf-8", "replace")
        self.ascii = len(self.data) == len(text) and text.isascii()
        self._line_starts: list[int] | None = None
        self._later_bytes: list[int] | None = None

    @property
    def line_starts(self) -> list[int]:
        """Byte offset of the first byte of every line."""
        if self._line_starts is None:
            lengths = (len(line) + 1 for line in self.data.split(b"\n"))
            self._line_starts = [0, *accumulate(lengths)][:-1]
        return self._line_starts

    @property
    def _bytes_within_characters(self) -> list[int]:
        """Byte offsets of all bytes but the first of each character: in UTF-8 (RFC 3629), 10xxxxxx."""
        if self._later_bytes is None:
            self._later_bytes = [match.start() for match in _LATER_BYTE.finditer(self.data)]
        return self._later_bytes

    def position(self, offset: int) -> Position:
        """The position of a byte offset."""
        starts = self.line_starts
        line = bisect_right(starts, offset)
        first = starts[line - 1]
        if self.ascii:
            return Position(line, offset - first + 1)
        later = self._bytes_within_characters
        return Position(line, offset - first - bisect_left(later, offset) + bisect_left(later, first) + 1)

    def range(self, start: int, end: int) -> SourceRange:
        """The half-open stretch between two byte offsets."""
        return SourceRange(self.path, self.position(start), self.position(max(start, end)))

    def line(self, number: int) -> bytes:
        """Line ``number`` (1-based) without its end; empty when there is none."""
        starts = self.line_starts
        if not 1 <= number <= len(starts):
            return b""
        end = starts[number] - 1 if number < len(starts) else len(self.data)
        return self.data[starts[number - 1] : end].rstrip(b"\r")


@lru_cache(maxsize=8192)
def resolved_name(name: str) -> Path:
    """The path behind a file's name, links followed; asked of the disk once."""
    return Path(files.target(name))
