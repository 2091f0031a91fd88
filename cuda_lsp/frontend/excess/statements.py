"""Statements and blocks that ask clang for more than ``budgets`` allow, found in the text.

clang nests a statement as deep as it is long, and at some ten thousand its stack ends; a row of names with
``<`` behind each, none of which it knows, takes it twice the time with each further one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from attrs import frozen

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.source_text import BLANK

# What nobody closes ends with its line, a comment with the text: so each letter is looked at once.
NOT_CODE = rb"//[^\n]*|/\*(?:.*?\*/|.*\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.){1,8}'"
TOKEN = re.compile(NOT_CODE + rb"|[A-Za-z_]\w*|\.?\d[\w.']*|[^\s\\]", re.S)
_STRUCTURE = re.compile(NOT_CODE + rb"|(?P<token>[{};]|\belse\b)", re.S)
_PREFIXES = re.compile(rb"(?:[-+!~*&]\s*){%d}" % budgets.MOST_PREFIXES)
_NO_BRACES = bytes(c for c in range(256) if c not in b"{}")
_CHAIN = budgets.MOST_TOKENS // 10


@frozen
class Excess:
    """``start``, ``end``: bytes of the text that clang must not read. ``whole``: they are a statement."""

    start: int
    end: int
    reason: str
    whole: bool = True

    def without(self, data: bytes) -> bytes:
        """The text with a name that nobody declares, and spaces, in its place."""
        stretch = data[self.start : self.end]
        mark = b"$;"[: len(stretch)] if self.whole else b"$"
        return data[: self.start] + mark + stretch[len(mark) :].translate(BLANK) + data[self.end :]


def long_statements(data: bytes) -> Iterator[Excess]:
    """Statements of too many tokens, operators before one operand, ``name <`` in a row, or alternatives."""
    start = 0
    for piece in data.split(b";"):
        if len(piece) > budgets.MOST_PREFIXES or piece.count(b"<") > budgets.MOST_UNCLOSED:
            for first, last, reason, whole in _long_in(piece):
                yield Excess(start + first, start + last, reason, whole)
        start += len(piece) + 1
    if data.count(b"else") > _CHAIN:
        yield from _long_chains(data)


def _long_in(piece: bytes) -> Iterator[tuple[int, int, str, bool]]:
    """The same of a text without semicolons."""
    if (
        len(piece) <= budgets.MOST_TOKENS
        and piece.count(b"<") <= budgets.MOST_UNCLOSED
        and not _PREFIXES.search(piece)
    ):
        return
    yield from _unclosed(piece)
    for first, last, tokens, prefixes in _statements(piece):
        if tokens > budgets.MOST_TOKENS:
            reason = f"a statement has more than {budgets.MOST_TOKENS:,} words and operators"
            yield first, last, reason, True
        elif prefixes >= budgets.MOST_PREFIXES:
            reason = f"more than {budgets.MOST_PREFIXES:,} operators stand before one operand"
            yield first, last, reason, True


def _unclosed(piece: bytes) -> Iterator[tuple[int, int, str, bool]]:
    """Rows of ``name <`` that are too long."""
    first, last, names, named = -1, -1, 0, -1
    for match in TOKEN.finditer(piece):
        token = match[0]
        if token[:2] in (b"//", b"/*"):
            continue
        if token[:1].isalpha() or token[:1] == b"_":
            named = match.start()
        elif token == b"<" and named >= 0:
            first, last = named if first < 0 else first, match.end()
            names += 1
            named = -1
        else:
            if names > budgets.MOST_UNCLOSED:
                yield first, last, _UNCLOSED, False
            first, names, named = -1, 0, -1
    if names > budgets.MOST_UNCLOSED:
        yield first, last, _UNCLOSED, False


_UNCLOSED = f"more than {budgets.MOST_UNCLOSED} names in a row have a < behind them"


def _statements(piece: bytes) -> Iterator[tuple[int, int, int, int]]:
    """First and last byte, tokens, and the longest run of prefix operators of each statement."""
    brackets: list[bytes] = []
    first, last, tokens, run, longest = -1, 0, 0, 0, 0
    for match in TOKEN.finditer(piece):
        token = match[0]
        if token[:2] in (b"//", b"/*"):
            continue
        if token in (b"(", b"[", b"{"):
            brackets.append(token)
        elif token in (b")", b"]", b"}") and brackets:
            brackets.pop()
        if token in (b"{", b"}") or (token == b"," and brackets[-1:] == [b"{"]):
            yield first, last, tokens, longest
            first, tokens, run, longest = -1, 0, 0, 0
            continue
        first = match.start() if first < 0 else first
        last = match.end()
        tokens += 1
        run = run + 1 if token in b"-+!~*&" else 0
        longest = max(longest, run)
    yield first, last, tokens, longest


def _long_chains(data: bytes) -> Iterator[Excess]:
    """``else if`` without end: each nests in the one before."""
    tokens = [m for m in _STRUCTURE.finditer(data) if m.lastgroup]
    depth = 0
    chains: dict[int, tuple[int, int]] = {}  # by depth of braces: where it began, its links
    for match, behind in zip(tokens, [*tokens[1:], None], strict=True):
        token = match[0]
        if token == b"{":
            depth += 1
        elif token == b"}":
            chains.pop(depth, None)
            depth -= 1
        if token == b"else":
            began, links = chains.get(depth, (match.start(), 0))
            chains[depth] = (began, links + 1)
        elif token in b";}" and (behind is None or behind[0] != b"else"):
            began, links = chains.pop(depth, (0, 0))
            if links > _CHAIN:
                reason = f"a chain of conditions has more than {_CHAIN:,} alternatives"
                yield Excess(began, match.end(), reason)


def large_blocks(data: bytes) -> Iterator[Excess]:
    """The innermost blocks with too many statements, the outermost of blocks in too many others."""
    if data.count(b";") <= budgets.MOST_SEMICOLONS and _depth(data) < budgets.MOST_BLOCKS:
        return
    stack: list[tuple[int, int, bool]] = []  # where it began, its semicolons, whether one in it is too long
    deep = -1  # where the last one stands that is too deep
    for match in _STRUCTURE.finditer(data):
        token = match[0]
        if token == b"{":
            stack.append((match.end(), 0, False))
            deep = match.end() if len(stack) == budgets.MOST_BLOCKS else deep
        elif token == b";" and stack:
            began, count, found = stack[-1]
            stack[-1] = (began, count + 1, found)
        elif token == b"}" and stack:
            began, count, found = stack.pop()
            if not found and (reason := _too_large(count, deep >= began and len(stack) <= 1)):
                found = True
                yield Excess(began, match.start(), reason)
            if stack:
                outer, others, above = stack[-1]
                stack[-1] = (outer, others + (0 if found else count), above or found)


def _depth(data: bytes) -> int:
    """Of braces, those in comments and strings too."""
    braces = data.translate(None, _NO_BRACES)
    return max(accumulate(1 if brace == b"{"[0] else -1 for brace in braces), default=0)


def _too_large(statements: int, deep: bool) -> str:
    if deep:
        return f"a function has blocks in {budgets.MOST_BLOCKS} others"
    if statements > budgets.MOST_SEMICOLONS:
        return f"a function has more than {budgets.MOST_SEMICOLONS:,} statements"
    return ""
