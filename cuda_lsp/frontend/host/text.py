"""Host code as it is searched: no comments, no strings but words that are arguments, no two spaces in a row.

What may stand between two words is then ``\\s?``, never ``\\s*``. So no pattern has many ways to share out a
long stretch of spaces between its parts, and a comment of four hundred characters is such a stretch.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.host.macros import Macros, macros_of

_TEMPLATE = re.compile(r"\w\s?<[^<>()]*>")
_HIDDEN = str.maketrans(",<>", "\0\1\2")
_DEEPEST = 6
"""Template arguments within template arguments."""
_SHOWN = str.maketrans("\0\1\2", ",<>")
_RUN = re.compile(r"\s\s+")
_SPACED = re.compile(r"(?<!operator)(?<!operator\s)(?<!<)<<(\s+)<(?![<=])")
_SPACED_END = re.compile(r">>(\s*)>")
_FOR = re.compile(r"\bfor\s?\(")
_HEAD = re.compile(r"\s?(?:for|if|while)\s?\(")
LEAVING = r"\s?(?:return\b[^;{}]*|throw\b[^;{}]*|(?:std\s?::\s?)?(?:exit|abort)\s?\([^;{}]*\))\s?;"
"""As a pattern: a statement that leaves the function."""
_LEAVES_AT_END = re.compile(rf"[;{{}}]{LEAVING}\Z")
_BRANCH = re.compile(r"\b(?:if\s?(?:constexpr\s?)?\([^;{}\[]{0,400}\)|else)\s?\Z")
_LONGEST_CONDITION = 400
_BRACKET = {bracket: re.compile(f"[{re.escape(bracket)}]") for bracket in ("()", "{}")}
FURTHEST = 5000
"""Characters between two parentheses, or the two ends of a configuration, that belong together."""
ELSE = re.compile(r"\s?else\s?(?:(if\s?(?:constexpr\s?)?\()|\{)")
"""Behind a branch: the next one. The group is there where it asks again."""
_MOST_KEPT, _LONGEST_KEPT = 128, 200_000
"""Texts, and characters of one."""

Made = TypeVar("Made")


def host_text(text: str) -> HostText:
    """Of a header, say, that is read again and again while its includer is understood: one for all."""
    return _known(text) if len(text) <= _LONGEST_KEPT else HostText(text)


_WORD_IN_QUOTES = re.compile(r'[(,]\s{0,40}("\w{1,60}")(?=\s{0,40}[,)])')
_SIGNS = {"and": "&& ", "or": "||", "not": "!  "}
_IN_WORDS = (" and ", " or ", "not ", "and\n", "or\n")
_TOKEN_IN_LETTERS = re.compile(r"(?<![\w.:>#])(?:and|or|not)(?!\w)")


class HostText:
    """The text of one file. Offsets are those of ``plain``, where nothing else is said."""

    def __init__(self, text: str) -> None:
        plain = _closed_up(_in_signs(_with_words(text, blanked(text))))
        pieces: list[str] = []
        self._ends: list[int] = []  # of the runs, in the text
        self._after: list[int] = []  # … in ``plain``
        done = length = 0
        for run in _RUN.finditer(plain):
            pieces += plain[done : run.start()], "\n" if "\n" in run[0] else " "
            length += run.start() - done + 1
            done = run.end()
            self._ends.append(done)
            self._after.append(length)
        pieces.append(plain[done:])
        self.text = text
        self.plain = "".join(pieces)
        self._defines: dict[re.Pattern[str], bool] = {}
        self._kept: dict[Callable[[HostText], Any], Any] = {}

    def kept(self, make: Callable[[HostText], Made]) -> Made:
        """What is made of the text alone, and not changed by who has it: made once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        return self._kept[make]

    def original(self, offset: int) -> int:
        """Where a character of ``plain`` that is no white space stands in the text."""
        run = bisect_right(self._after, offset) - 1
        return offset if run < 0 else offset - self._after[run] + self._ends[run]

    def reduced(self, offset: int) -> int:
        """Where a character of the text that is no white space stands in ``plain``."""
        run = bisect_right(self._ends, offset) - 1
        return offset if run < 0 else offset - self._ends[run] + self._after[run]

    @cached_property
    def parentheses(self) -> Mapping[int, int]:
        """Where each ``(`` is closed."""
        return closings(self.plain, "()")

    @cached_property
    def macros(self) -> Macros:
        """What it defines."""
        return macros_of(self.plain)

    def defines(self, wanted: re.Pattern[str]) -> bool:
        """Whether a pattern is found in the text of a macro."""
        if wanted not in self._defines:
            bodies = (macro.body for known in self.macros.values() for macro in known)
            self._defines[wanted] = any(map(wanted.search, bodies))
        return self._defines[wanted]

    def closing(self, opening: int) -> int:
        """Where the parenthesis at ``opening`` is closed; -1 when that is far or nowhere."""
        found = self.parentheses.get(opening, -1)
        return found if found - opening < FURTHEST else -1

    def follows(self, word: str, position: int) -> bool:
        """Whether a word stands right before a place."""
        return self.plain[max(0, position - len(word) - 1) : position].rstrip().endswith(word)

    def for_header(self, position: int) -> tuple[int, int] | None:
        """The parentheses of the ``for`` that a place is at the beginning of."""
        opening = self.plain.rfind("(", max(0, position - 60), position)
        return (opening, self.closing(opening)) if opening >= 0 and self.follows("for", opening) else None

    def leaves_at_end(self, brace: int, end: int) -> bool:
        """Whether the last statement of a block leaves the function."""
        return _LEAVES_AT_END.search(self.plain[brace : max(brace, end)].rstrip()) is not None

    def may_come_to(self, place: int, at: int) -> bool:
        """Whether a way leads on from a place to a later one, as far as the branches around it tell."""
        brace = self.braces.begin(place)
        while brace >= 0 and (end := self.braces.closing.get(brace, at)) < at:
            branch = _BRANCH.search(self.plain, max(0, brace - _LONGEST_CONDITION), brace)
            if branch is not None and self.leaves_at_end(max(brace, end - FURTHEST), end):
                return False
            brace = self.braces.begin(brace - 1)
        return True

    @cached_property
    def braces(self) -> Braces:
        """The blocks of the text."""
        return Braces(self.plain)


_known = lru_cache(_MOST_KEPT)(HostText)


def closings(plain: str, pair: str) -> dict[int, int]:
    """Where each opening bracket is closed; those that nothing closes are left out."""
    found: dict[int, int] = {}
    stack: list[int] = []
    opening = pair[0]
    for match in _BRACKET[pair].finditer(plain):
        if match[0] == opening:
            stack.append(match.start())
        elif stack:
            found[stack.pop()] = match.start()
    return found


class Braces:
    """The brace pairs around positions, which delimit scopes."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._braces = [match.start() for match in _BRACKET["{}"].finditer(plain)]
        self._semicolons = [match.start() for match in re.finditer(";", plain)]
        self.closing: dict[int, int] = {}
        self._innermost: list[int] = []  # after each brace: the open brace around what follows, -1 for none
        stack: list[int] = []
        for position in self._braces:
            if plain[position] == "{":
                stack.append(position)
            elif stack:
                self.closing[stack.pop()] = position
            self._innermost.append(stack[-1] if stack else -1)

    def begin(self, position: int) -> int:
        """The open brace around a position; -1 for none."""
        index = bisect_right(self._braces, position) - 1
        return self._innermost[index] if index >= 0 else -1

    def end(self, position: int) -> int:
        """Where the block around a position ends; the text's end outside of all."""
        return self.closing.get(self.begin(position), len(self._plain))

    def parameter_end(self, position: int) -> int:
        """A parameter lives to the end of the body that follows it; one of a prototype lives nowhere."""
        index, ended = bisect_right(self._braces, position), bisect_left(self._semicolons, position)
        opening = self._braces[index] if index < len(self._braces) else len(self._plain)
        if ended < len(self._semicolons) and self._semicolons[ended] < opening:
            return self._end_of_loop(position)
        if index >= len(self._braces) or self._plain[opening] != "{":
            return position
        return self.closing.get(opening, len(self._plain))

    def _end_of_loop(self, position: int) -> int:
        """Where the statement ends that a ``for`` repeats; ``position``, its counter, where there is none."""
        before = self._plain[max(0, position - 80) : position + 1]
        head = max(before.rfind(c) for c in ";{}") + 1
        heads = list(_FOR.finditer(before, head))
        at = position + 1 - len(before) + heads[-1].start() if heads else -1
        while at >= 0 and (statement := _HEAD.match(self._plain, at)) is not None:
            at = closing_near(self._plain, statement.end() - 1) + 1 or -1
        if at < 0:
            return position
        at += self._plain[at : at + 1].isspace()
        if self._plain[at : at + 1] == "{":
            return self.closing.get(at, len(self._plain))
        ended = bisect_left(self._semicolons, at)
        return self._semicolons[ended] if ended < len(self._semicolons) else position


def closing_near(plain: str, opening: int) -> int:
    """Where a parenthesis is closed; -1 when that is far or nowhere."""
    depth = 0
    for bracket in _BRACKET["()"].finditer(plain, opening, opening + FURTHEST):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.start()
    return -1


def by_name(pattern: re.Pattern[str], plain: str) -> dict[str, list[re.Match[str]]]:
    """The matches of a pattern whose first group is a name, in order."""
    found: dict[str, list[re.Match[str]]] = {}
    for match in pattern.finditer(plain):
        found.setdefault(match[1], []).append(match)
    return found


def start_of(match: re.Match[str]) -> int:
    """Where a match begins (to search for one by place)."""
    return match.start()


def end_of(match: re.Match[str]) -> int:
    """Where a match ends."""
    return match.end()


def split_arguments(text: str) -> list[str]:
    """Top-level comma-separated parts."""
    parts: list[str] = []
    depth, first = 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[first:i])
            first = i + 1
    parts.append(text[first:])
    return parts if text.strip() else []


def whole_arguments(text: str) -> list[str]:
    """A call's arguments, ``kernel<float, 4>`` in one piece."""
    for _ in range(min(_DEEPEST, text.count("<"))):  # the innermost ones first
        text = _TEMPLATE.sub(lambda match: match[0].translate(_HIDDEN), text)
    return [part.translate(_SHOWN) for part in split_arguments(text)]


def _with_words(text: str, plain: str) -> str:
    """``plain`` with arguments that are one word: ``at("in")`` as ``at(_in_)``, which is not ``at(_out_)``.

    ``plain``: the text without its strings, in as many characters.
    """
    pieces: list[str] = []
    done = 0
    for match in _WORD_IN_QUOTES.finditer(text):
        begin, end = match.span(1)
        if plain[match.start()] == text[match.start()] and plain[begin:end].isspace():
            pieces += plain[done:begin], f"_{text[begin + 1 : end - 1]}_"
            done = end
    return "".join((*pieces, plain[done:])) if pieces else plain


def _in_signs(text: str) -> str:
    """The text with ``&&`` for ``and``, and so on (C++, alternative tokens); everything stays where it is."""
    if not any(word in text for word in _IN_WORDS):
        return text
    return _TOKEN_IN_LETTERS.sub(lambda token: _SIGNS[token[0]], text)


def _closed_up(plain: str) -> str:
    """``k<< <grid, block >> >(…)`` as ``k<<< grid, block >>> (…)``, in as many characters.

    Formatters that know no CUDA write it so, and nvcc takes it.
    """
    pieces: list[str] = []
    done = at = 0
    while (begin := _SPACED.search(plain, at)) is not None:
        at = begin.end()
        end = _SPACED_END.search(plain, at, at + FURTHEST)
        if end is not None:
            pieces += plain[done : begin.start()], "<<<", begin[1], plain[at : end.start()], ">>>", end[1]
            done = at = end.end()
    return "".join((*pieces, plain[done:])) if pieces else plain
