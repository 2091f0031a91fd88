"""Where lines of a text stand that a program compiles at run time: in a literal of a Python file, or a file.

A text that holds a literal as it is has the literal's lines; what was put together, formatted or read from a
file has those that read the same. Lines that stand nowhere keep their number in the text itself.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from attrs import define, frozen

from cuda_lsp.files import read_text

_SUFFIXES = (".py", ".cu", ".cuh", ".h", ".hpp", ".txt", ".inl")
INSTALLED = frozenset({"site-packages", "dist-packages"})
_LEFT_OUT = INSTALLED | {"node_modules", "__pycache__"}
_MOST_FILES = 2000
_LEAST = 8  # characters of a literal, or of a line, that tell where it stands

Place = tuple[Path, int]


@frozen
class Literal:
    """A text in a Python file, from one line to another."""

    path: Path
    text: str
    first: int
    last: int


@define(eq=False, slots=False)
class Places:
    """The files of a project in which texts may stand. ``literals``: those that are to be believed first."""

    script: Path
    files: Mapping[Path, Sequence[str]]
    literals: Sequence[Literal]

    def lines_of(self, text: str) -> list[Place | None]:
        """For each line of ``text`` the file and the line in which it stands."""
        lines = text.split("\n")
        found: list[Place | None] = [None] * len(lines)
        for literal in self.literals:
            start = text.find(literal.text)
            if start >= 0 and _holds_lines(literal.text, text, start):
                self._take(literal, text.count("\n", 0, start), lines, found)
        for k, place in self._alike(lines, found):
            found[k] = place
        return found

    def _take(self, literal: Literal, first: int, lines: Sequence[str], found: list[Place | None]) -> None:
        count = literal.text.count("\n")
        straight = literal.last - literal.first == count
        written = self.files[literal.path]
        at = literal.first
        for k in range(count + 1):
            if straight:
                at = literal.first + k
            else:
                words = lines[first + k].strip()
                later = range(at, literal.last + 1)
                at = next((n for n in later if words and words in written[n - 1]), at)
            if found[first + k] is None and lines[first + k].strip():
                found[first + k] = (literal.path, at)

    def _alike(self, lines: Sequence[str], known: Sequence[Place | None]) -> Iterator[tuple[int, Place]]:
        """Lines that read as one of a file does, where those around them stand or as the only ones."""
        before: Place | None = None
        for k, line in enumerate(lines):
            if known[k] is not None:
                before = known[k]
                continue
            words = line.strip()
            if not words:
                continue
            place = self._next_to(before, words) or (self._only(words) if len(words) >= _LEAST else None)
            if place is not None:
                before = place
                yield k, place

    def _next_to(self, before: Place | None, words: str) -> Place | None:
        """The line below the one before, if it reads so."""
        if before is None:
            return None
        path, line = before
        written = self.files[path]
        return (path, line + 1) if line < len(written) and written[line].strip() == words else None

    def _only(self, words: str) -> Place | None:
        """The one line of the script that reads so."""
        places = self._by_words.get(words, [])
        return (self.script, places[0]) if len(places) == 1 else None

    @cached_property
    def _by_words(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.files.get(self.script, ()), 1):
            found.setdefault(line.strip(), []).append(number)
        return found


def places_in(script: Path) -> Places:
    """What stands in a script and the files of its folder."""
    script = script.resolve()
    paths = dict.fromkeys([script, *_files(script.parent)])
    files: dict[Path, Sequence[str]] = {}
    literals: list[Literal] = []
    for path in paths:
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError):  # too large, or no text: nothing of it is compiled
            continue
        files[path] = text.split("\n")
        literals += _literals(path, text) if path.suffix == ".py" else [_whole(path, text)]
    return Places(script, files, [literal for literal in literals if len(literal.text.strip()) >= _LEAST])


def _files(folder: Path) -> Iterable[Path]:
    found = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not Path(root, name, "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                found += 1
                if found > _MOST_FILES:
                    return
                yield Path(root, name)


def _holds_lines(part: str, text: str, start: int) -> bool:
    """Whether a part of a text is one of whole lines, and not a word that happens to be written somewhere."""
    if "\n" in part.strip():
        return True
    line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
    return line.strip() == part.strip()


def _whole(path: Path, text: str) -> Literal:
    return Literal(path, text, 1, text.count("\n") + 1)


def _literals(path: Path, text: str) -> list[Literal]:
    """The longest first: what a longer one says of a line counts."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # not this Python's, or not Python
        return []
    found = [
        Literal(path, node.value, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return sorted(found, key=lambda literal: -len(literal.text))


def marked(text: str, places: Sequence[Place | None], own: Path) -> str:
    """The text with ``#line`` wherever what follows stands elsewhere; ``own``: a file with the text."""
    out: list[str] = []
    expected: Place | None = None
    comment = continued = False
    for number, (line, place) in enumerate(zip(text.split("\n"), places, strict=True), 1):
        here = place or (own, number)
        if here != expected and not comment and not continued and (line.strip() or place):
            out.append(f'#line {here[1]} "{here[0]}"')
            expected = here
        out.append(line)
        expected = (expected[0], expected[1] + 1) if expected is not None else None
        continued = line.endswith("\\")
        comment = _in_comment(line, comment)
    return "\n".join(out)


def _in_comment(line: str, already: bool) -> bool:
    at = 0
    while True:
        if already:
            end = line.find("*/", at)
            if end < 0:
                return True
            at, already = end + 2, False
        opened, rest = line.find("/*", at), line.find("//", at)
        if opened < 0 or 0 <= rest < opened:
            return False
        at, already = opened + 2, True
