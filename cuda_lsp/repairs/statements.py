"""The statements of functions, read from text without a compiler: blocks, branches, loops and the rest.

As much of C++'s grammar as it takes to say what stands beside what. Text that is broken, or that macros
make something else of, is read wrongly: a repair that relies on it does not survive its verification.
"""

from __future__ import annotations

import enum
import re
from functools import cached_property

from attrs import define, field

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[()\[\]{}]")
_WORD = re.compile(r"(if|for|while|switch|do|else)\b(?:\s*constexpr\b)?")
_LABEL = re.compile(r"(?:case\b[^:;{}]*(?:::[^:;{}]*)*|default\s*|[A-Za-z_]\w*\s*):(?!:)")
_STOP = re.compile(r"[;({\[}]")
_BEFORE_BODY = re.compile(r"(?:\)|\b(?:const|noexcept|override|final|mutable))\s*\Z")
_SPACE = re.compile(r"\s*")
_DEEPEST = 100


class Form(enum.Enum):
    """What a statement is made of."""

    SIMPLE = "simple"
    BLOCK = "block"
    IF = "if"
    LOOP = "loop"
    SWITCH = "switch"


@define(eq=False)
class Statement:
    """From ``start`` to ``end``, offsets: behind its semicolon or brace.

    ``head``: what stands in the parentheses, with them. ``parts``: the statements of a block, the body of a
    loop or switch, the one or two branches of an ``if``.
    """

    form: Form
    start: int
    end: int = -1
    head: tuple[int, int] | None = None
    parts: list[Statement] = field(factory=list["Statement"])

    def around(self, offset: int) -> bool:
        """Whether a place is in it."""
        return self.start <= offset < self.end


class Statements:
    """Of all functions in a text without comments (``Source.plain``), each read when it is asked for."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._bodies: dict[int, Statement | None] = {}

    @cached_property
    def _closing(self) -> dict[int, int]:
        """Where each bracket is closed by its like."""
        found: dict[int, int] = {}
        stack: list[int] = []
        for match in _BRACKET.finditer(self._plain):
            if match[0] in _BRACKETS:
                stack.append(match.start())
            elif stack and _BRACKETS[self._plain[stack[-1]]] == match[0]:
                found[stack.pop()] = match.start()
        return found

    @cached_property
    def _function_bodies(self) -> list[int]:
        """Opening braces behind parameters that are in no other such braces."""
        found: list[int] = []
        until = 0
        for opening in sorted(o for o in self._closing if self._plain[o] == "{"):
            if opening >= until and _BEFORE_BODY.search(self._plain, max(0, opening - 200), opening):
                found.append(opening)
                until = self._closing[opening]
        return found

    def path(self, offset: int) -> list[Statement]:
        """The statements around a place, the function's body first; none outside of functions."""
        opening = next((o for o in self._function_bodies if o <= offset <= self._closing[o]), None)
        if opening is None:
            return []
        if opening not in self._bodies:
            self._bodies[opening] = self._statement(opening, 0)
        at = self._bodies[opening]
        found: list[Statement] = []
        while at is not None:
            found.append(at)
            at = next((part for part in at.parts if part.around(offset)), None)
        return found

    def _statement(self, at: int, depth: int) -> Statement | None:
        """The statement behind ``at``; None where none is, or too many are around it."""
        at = self._behind_space(at)
        if at >= len(self._plain) or self._plain[at] in "})]" or depth > _DEEPEST:
            return None
        if self._plain[at] == "{":
            return self._block(at, depth)
        word = _WORD.match(self._plain, at)
        if word is None or word[1] == "else":
            return self._simple(at)
        if word[1] == "do":
            return self._do(at, word.end(), depth)
        opening = self._behind_space(word.end())
        if opening not in self._closing or self._plain[opening] != "(":
            return self._simple(at)
        form = {"if": Form.IF, "switch": Form.SWITCH}.get(word[1], Form.LOOP)
        found = Statement(form, at, head=(opening, self._closing[opening] + 1))
        end = self._part(found, self._closing[opening] + 1, depth)
        behind = _WORD.match(self._plain, self._behind_space(end))
        if form is Form.IF and behind and behind[1] == "else":
            end = self._part(found, behind.end(1), depth)
        found.end = end
        return found

    def _part(self, of: Statement, at: int, depth: int) -> int:
        """Take a statement into another; where it ends."""
        part = self._statement(at, depth + 1)
        if part is None:
            return at
        of.parts.append(part)
        return part.end

    def _block(self, opening: int, depth: int) -> Statement | None:
        closing = self._closing.get(opening)
        if closing is None:
            return None
        found = Statement(Form.BLOCK, opening, closing + 1)
        at = opening + 1
        while at < closing and (part := self._statement(at, depth + 1)) is not None and part.end > at:
            found.parts.append(part)
            at = part.end
        return found

    def _do(self, start: int, at: int, depth: int) -> Statement:
        found = Statement(Form.LOOP, start)
        end = self._part(found, at, depth)
        semicolon = self._plain.find(";", end)
        found.head = (end, semicolon)
        found.end = semicolon + 1 if semicolon >= 0 else end
        return found

    def _simple(self, at: int) -> Statement:
        label = _LABEL.match(self._plain, at)
        if label:
            return Statement(Form.SIMPLE, at, label.end())
        end = at
        while (stop := _STOP.search(self._plain, end)) is not None:
            if stop[0] == ";":
                return Statement(Form.SIMPLE, at, stop.end())
            if stop[0] == "}" or stop.start() not in self._closing:
                return Statement(Form.SIMPLE, at, max(at + 1, stop.start()))
            end = self._closing[stop.start()] + 1
        return Statement(Form.SIMPLE, at, len(self._plain))

    def _behind_space(self, at: int) -> int:
        found = _SPACE.match(self._plain, at)
        return found.end() if found else at
