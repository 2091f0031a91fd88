"""The text that clang reads in place of one that asks for more than ``budgets`` allow.

What asks for too much is replaced by a name that nobody declares, and spaces: nothing else moves, clang
complains where it is used (``MARK`` stands in its message), and the kernel that needs it is undecided while
all others are analysed as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from attrs import frozen

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.excess.doubling import doubling_defaults, doubling_records
from cuda_lsp.frontend.excess.macros import (
    definitions,
    heavy_uses,
    macros_of,
    nested_uses,
    without_bombs,
)
from cuda_lsp.frontend.excess.statements import Excess, large_blocks, long_statements
from cuda_lsp.frontend.excess.templates import Text, branches, branching_functions, template_texts

MARK = "'$'"
"""How clang's messages name what was replaced."""

_CONDITION = re.compile(rb"^[ \t]*#[ \t]*(?:if|elif|include)[^\n]*(?:\\\r?\n[^\n]*)*", re.M)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_CONSTANT = re.compile(rb"\bconstexpr\b(?:[^;{}()=]{0,200}?\b([A-Za-z_]\w*)\s*\()?")
_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*[(<]")
_STEPS_LIMIT = re.compile(r"maximum step limit|maximum depth of \d+ calls")


@frozen
class Readable:
    """``data``: the text for clang, ``headers``: path → text of those that must be replaced as well.

    ``flags``: clang's own limits for this text. ``replaced``: what is missing in it; ``bombs``: why some
    macros are not expanded. ``refusal``: why the text cannot be read at all, "" when it can.
    """

    data: bytes
    flags: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    replaced: tuple[Excess, ...] = ()
    bombs: str = ""
    refusal: str = ""

    @property
    def whole(self) -> bool:
        """Whether clang reads everything."""
        return not (self.replaced or self.bombs or self.refusal)

    def reason(self, message: str, offset: int, notes: Iterable[str]) -> str:
        """What to say in place of clang's ``message`` about byte ``offset`` of the text."""
        if MARK in message:
            return next((e.reason for e in self.replaced if e.start <= offset < e.end), self.bombs) or message
        if any(_STEPS_LIMIT.search(note) for note in notes):
            steps = next(flag for flag in self.flags if "steps" in flag).rpartition("=")[2]
            return f"{message}: computing it takes more than {int(steps):,} steps, or nests too deeply"
        return message


@lru_cache(maxsize=2)
def readable(data: bytes, headers: tuple[tuple[str, str], ...]) -> Readable:
    """The text as far as clang may read it; ``headers``: path and text of those that it includes."""
    told = [_told(text) for _, text in headers]
    macros = macros_of((*definitions(data), *(d for t in told for d in t[0])))
    flags = _limits(data, (*template_texts(data), *(t for texts in told for t in texts[1])))
    bombs = next(iter(macros.bombs.values()), "")
    if bombs and any(set(_WORD.findall(line[0])) & macros.bombs.keys() for line in _CONDITION.finditer(data)):
        return Readable(data, flags, refusal=bombs)
    if refusal := heavy_uses(data, macros) or doubling_defaults(data) or doubling_records(data):
        return Readable(data, flags, refusal=refusal)
    found = [
        *long_statements(data),
        *large_blocks(data),
        *nested_uses(data, macros),
        *branching_functions(data),
    ]
    replaced: list[tuple[str, str]] = []
    if bombs:
        data = without_bombs(data, macros)
        for path, text in headers:
            encoded = text.encode("utf-8", "replace")
            if (safe := without_bombs(encoded, macros)) != encoded:
                replaced.append((path, safe.decode("utf-8", "replace")))
    for excess in found:
        data = excess.without(data)
    return Readable(data, flags, tuple(replaced), tuple(found), bombs)


def is_readable(data: bytes, start: int, end: int) -> bool:
    """Whether a function asks for nothing that is too much, in a text whose macros do not."""
    stretch = data[start:end]
    return not any(long_statements(stretch)) and stretch.count(b"(") < budgets.MOST_PARENTHESES


@lru_cache(maxsize=64)
def _told(header: str) -> tuple[tuple[tuple[bytes, bytes, bytes], ...], tuple[Text, ...]]:
    """The macros and templates of a header."""
    data = header.encode("utf-8", "replace")
    return definitions(data), template_texts(data)


def _limits(data: bytes, templates: tuple[Text, ...]) -> tuple[str, ...]:
    """Flags that limit what clang computes."""
    depth = (f"-ftemplate-depth={budgets.BRANCHING_DEPTH}",) if branches(templates) else ()
    names = {match[1] for match in _CONSTANT.finditer(data) if match[1]}
    uses = data.count(b"constexpr")
    if names:
        uses += sum(name in names for name in _CALLED.findall(data))
    steps = next(steps for most, steps in budgets.CONSTANT_STEPS if uses <= most)
    return (*depth, f"-fconstexpr-steps={steps}")
