"""Integer expressions as they are written, taken apart at their operators.

Calls, subscripts and whatever is not arithmetic of whole numbers is one piece of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

_LEVELS = {"|": 1, "^": 2, "&": 3, "<<": 5, ">>": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
_TOKEN = re.compile(r"(<<|>>|&&|\|\||[<>=!]=|\w[\w.]*|->|::|\S)")
_WORD = re.compile(r"\w")
_NO_ARITHMETIC = frozenset(
    {"&&", "||", "<", ">", "<=", ">=", "==", "!=", "?", ":", "=", ",", ";", "{", "}", '"'}
)
_CLOSING = {"(": ")", "[": "]"}
_TYPE = re.compile(
    r"\(\s*(?:const\s+)?(?:unsigned|int|long|short|size_t|u?int\d+_t|ptrdiff_t)(?:\s+\w+)*\s*\)\s*"
)
_LONGEST = 400


@frozen
class Expression:
    """``operator`` empty: a piece that is not taken apart."""

    text: str
    operator: str = ""
    parts: tuple[Expression, ...] = ()

    def all(self) -> Iterator[Expression]:
        """It and what it is made of, from the outside in."""
        yield self
        for part in self.parts:
            yield from part.all()

    def terms(self) -> Iterator[tuple[str, Expression]]:
        """What is added up, each with its sign."""
        if self.operator not in ("+", "-"):
            yield "+", self
            return
        yield from self.parts[0].terms()
        yield from ((self.operator if sign == "+" else "+", term) for sign, term in self.parts[1].terms())

    @property
    def as_operand(self) -> str:
        """The text as it may stand beside an operator that binds more."""
        return f"({self.text})" if self.operator else self.text


def parsed(text: str) -> Expression:
    """A text as an expression; all of it is one piece where it is something else."""
    text = bare(text)
    tokens = [(m.start(1), m.end(1)) for m in _TOKEN.finditer(text)]
    if len(text) > _LONGEST or any(text[slice(*token)] in _NO_ARITHMETIC for token in _outer(text, tokens)):
        return Expression(text)
    lowest: tuple[int, int, tuple[int, int]] | None = None
    outer = _outer(text, tokens)
    for number, token in enumerate(outer):
        level = _LEVELS.get(text[slice(*token)])
        before = text[slice(*outer[number - 1])] if number else ""
        operand = bool(before) and (_WORD.match(before) is not None or before in ")]")
        if level and operand and not _is_cast(text, token[0]) and (lowest is None or level <= lowest[0]):
            lowest = (level, number, token)
    if lowest is None:
        cast = _TYPE.match(text)
        return parsed(text[cast.end() :]) if cast and cast.end() < len(text) else Expression(text)
    start, end = lowest[2]
    return Expression(text, text[start:end], (parsed(text[:start]), parsed(text[end:])))


def bare(text: str) -> str:
    """Without parentheses around all of it."""
    text = text.strip()
    while text.startswith("(") and _closes(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closes(text: str) -> int:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1


def _outer(text: str, tokens: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those outside of brackets; the closing ones stand for what is between."""
    found: list[tuple[int, int]] = []
    depth = 0
    for token in tokens:
        letter = text[slice(*token)]
        depth += letter in _CLOSING
        if depth == 0 or (depth == 1 and letter in _CLOSING.values()):
            found.append(token)
        depth -= letter in _CLOSING.values()
    return found


def _is_cast(text: str, at: int) -> bool:
    """Whether what stands before is a type in parentheses."""
    return any(match.end() == at for match in _TYPE.finditer(text[:at]))
