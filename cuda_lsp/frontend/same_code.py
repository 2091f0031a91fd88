"""Two texts with the same code, white space and comments apart, and where places of one are in the other.

Judged on the lines in which they differ, and meant to be cheap: what is not obvious (preprocessor lines that
changed, comments of ours, block comments that begin elsewhere) counts as other code, which costs an analysis.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from pathlib import Path

from attrs import frozen

from cuda_lsp.frontend.source_text import differing
from cuda_lsp.model import Position, SourceRange

_QUOTED = r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'"
_OURS = r"[^\n]*(?:cuda-lsp:|--blockDim=)"
_GAP = re.compile(rf"{_QUOTED}|(?P<gap>(?://(?!{_OURS})[^\n]*|/\*.*?\*/|\s+)+)|/\*.*", re.DOTALL)
"""A comment that does not end is code, all of it."""
_LINES = re.compile(rf"^(?:[ \t]*#|{_OURS}|[^\n]*\\$)[^\n]*", re.MULTILINE)
"""Of which each is a whole: preprocessor lines, those with comments of ours, those that go on."""
_OPERATOR = frozenset("+-*/%<>=!&|^~?:.")


@frozen
class SameCode:
    """``old`` and ``new``: the stretches of whole lines that differ, from line ``first`` on.

    ``places``: offsets of the letters of code in them, of which there are as many in either.
    """

    path: Path
    first: int
    old: str
    new: str
    places: tuple[list[int], list[int]]

    @classmethod
    def of(cls, path: Path, old: str, new: str) -> SameCode | None:
        """None: the code differs, or may."""
        begin, end, new_end = differing(old, new)
        begin = old.rfind("\n", 0, begin) + 1
        rest = _line_end(old, end) - end
        parts = old[begin : end + rest], new[begin : new_end + rest]
        commented = _commented(old, begin, end + rest, parts)
        if not commented and _differ(*parts):
            return None
        if _whole_lines(parts[0]) != _whole_lines(parts[1]) or old[:begin].endswith("\\\n"):
            return None
        if any('R"' in part for part in parts) or "__LINE__" in old:
            return None
        if commented:
            places: tuple[list[int], list[int]] = ([], [])
        else:
            places = _places(parts[0]), _places(parts[1])
            if not _agree(parts, places):
                return None
        return cls(path, old.count("\n", 0, begin) + 1, *parts, places)

    def moved(self, stretch: SourceRange) -> SourceRange | None:
        """Where a stretch of the old text is now; None: it is no code."""
        if stretch.path != self.path:
            return stretch
        start, end = self._begins(stretch.start), self._ends(stretch.end)
        return SourceRange(stretch.path, start, end) if start and end else None

    def respelled(self, stretch: SourceRange) -> bool:
        """Whether white space or comments within a stretch of the old text are others now."""
        if stretch.path != self.path:
            return False
        first, last = self._letters_before(stretch.start), self._letters_before(stretch.end)
        if first >= last:
            return False
        old, new = (part[of[first] : of[last - 1] + 1] for part, of in self._parts())
        return old != new

    def _parts(self) -> tuple[tuple[str, list[int]], tuple[str, list[int]]]:
        return (self.old, self.places[0]), (self.new, self.places[1])

    def _letters_before(self, place: Position) -> int:
        """How many letters of code of the stretch that differs stand before a place of the old text."""
        inside = self._offset(place)
        if isinstance(inside, int):
            return bisect_left(self.places[0], inside)
        return 0 if place.line < self.first else len(self.places[0])

    def _begins(self, place: Position) -> Position | None:
        inside = self._offset(place)
        if isinstance(inside, Position):
            return inside
        number = bisect_left(self.places[0], inside)
        return self._position(self.places[1][number]) if number < len(self.places[1]) else None

    def _ends(self, place: Position) -> Position | None:
        inside = self._offset(place)
        if isinstance(inside, Position):
            return inside
        number = bisect_left(self.places[0], inside)
        return self._position(self.places[1][number - 1] + 1) if number else None

    def _offset(self, place: Position) -> int | Position:
        """Within the stretch that differs; or where a place outside it is now."""
        last = self.first + self.old.count("\n")
        if place.line < self.first:
            return place
        if place.line > last:
            lines = self.new.count("\n") - self.old.count("\n")
            return Position(place.line + lines, place.column)
        begin = 0
        for _ in range(place.line - self.first):
            begin = self.old.index("\n", begin) + 1
        return begin + place.column - 1

    def _position(self, offset: int) -> Position:
        line = self.new.count("\n", 0, offset)
        return Position(self.first + line, offset - self.new.rfind("\n", 0, offset))


def _whole_lines(part: str) -> list[str]:
    """Lines of which each is a whole, without white space that ends them."""
    bare = ((line, line.rstrip(" \t")) for line in _LINES.findall(part))
    return [line if text.endswith("\\") else text for line, text in bare]


def _differ(old: str, new: str) -> bool:
    """Whether the letters of code are others for certain, seen at a glance: the usual case of a keystroke."""
    here, there = _letters(old), _letters(new)
    return here is not None and there is not None and here != there


def _letters(part: str) -> str | None:
    """Of code and of quoted text, but for ours in comments; None: that takes a closer look."""
    if "/*" in part or "*/" in part:
        return None
    if "//" in part:
        if '"' in part or "'" in part:
            return None
        part = "".join(line.partition("//")[0] for line in part.splitlines())
    return "".join(part.split())


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


def _commented(text: str, begin: int, end: int, parts: tuple[str, str]) -> bool:
    """Whether the whole stretch lies in a block comment."""
    opened = text.rfind("/*", 0, begin)
    if (
        opened < 0
        or opened < text.rfind("*/", 0, begin)
        or any("*/" in part or "/*" in part for part in parts)
    ):
        return False
    before = text[text.rfind("\n", 0, opened) + 1 : opened]
    return "//" not in before and '"' not in before and text.find("*/", end) >= 0


def _places(part: str) -> list[int]:
    """Offsets of the letters of code; quoted text counts whole."""
    found: list[int] = []
    done = 0
    for match in _GAP.finditer(part):
        if match["gap"] is not None:
            found += range(done, match.start())
            done = match.end()
    return [*found, *range(done, len(part))]


def _agree(parts: tuple[str, str], places: tuple[list[int], list[int]]) -> bool:
    """The same letters, in the same words and operators."""
    (old, new), (here, there) = parts, places
    if len(here) != len(there) or any(
        "/*" in _code(part, of) for part, of in zip(parts, places, strict=True)
    ):
        return False
    before = ""
    for k, (a, b) in enumerate(zip(here, there, strict=True)):
        letter = old[a]
        if letter != new[b]:
            return False
        apart = k > 0 and (a - here[k - 1] > 1) != (b - there[k - 1] > 1)
        if apart and (
            (_is_word(before) and _is_word(letter)) or (before in _OPERATOR and letter in _OPERATOR)
        ):
            return False
        before = letter
    return True


def _code(part: str, places: list[int]) -> str:
    return "".join(part[place] for place in places)


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_\"'"
