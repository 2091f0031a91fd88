"""Pointers of host code as text: their words, records in braces, and how a text stands for a name."""

from __future__ import annotations

import re

from cuda_lsp.frontend.host.text import split_arguments

_NAME = r"[A-Za-z_]\w*"
BASE = re.compile(
    rf"\A(?:(?:reinterpret|static|const)_cast\s?<[^<>]*>|\([^()]*\*\s?\)|[\s(&])*({_NAME}(?:(?:\.|->)\w+)*)(?!\s?[\w(])"
)
MOVED = "moved()"
"""Of how far nobody knows, as text."""
WORD = re.compile(rf"(?<![\w.])(?<!->)(?<!::){_NAME}\b(?!\s?\(|\s?::|\s?\{{)")
_MADE = re.compile(rf"\A(?:({_NAME})\s?(?:<[^<>{{}}]*>\s?)?)?\{{(.*)\}}\Z", re.S)
_DESIGNATED = re.compile(rf"\A\s?\.\s?({_NAME})\s?=\s?(.+)\Z", re.S)
_BEFORE = re.compile(r"(?:\A|[{(,=])\s?\Z")
_BEHIND = re.compile(r"\s?(?:[-+,)}]|\Z)")
_FIELD = re.compile(rf"\A(?:(.*)(?:\.|->))?({_NAME})\Z", re.S)
PLAIN = re.compile(r"\A[\w.]+(?:->\w+)*\Z")
"""A variable, or a field of one."""


def field_of(place: str) -> tuple[str, str]:
    """``a->b``, ``c`` of ``a->b.c``; "" and the name of a variable, two times "" of what is neither."""
    found = _FIELD.match(place.strip())
    return (found[1] or "", found[2]) if found is not None else ("", "")


def declaration(name: str, own: str) -> re.Match[str] | None:
    """Where a function declares a variable of its own; ``static``: one that stays."""
    if name not in own:
        return None
    return re.search(
        rf"(?P<static>\bstatic\b[^;()=]*)?(?:(?<=\w)(?<!return)(?<!else)\s|>\s?|(?:[\w>]|,)\s?[*&]{{1,3}}\s?)"
        rf"(?:const\s|__restrict__\s)?\b{re.escape(name)}\s?[=;,\[({{]",
        own,
    )


def parts_of_record(text: str) -> tuple[str | None, list[tuple[str | int, str]]] | None:
    """``W{d, .n = 4}`` → ``W``, and what its fields are made of, by name or by position."""
    made = _MADE.match(text.strip())
    if made is None:
        return None
    parts: list[tuple[str | int, str]] = []
    for index, part in enumerate(split_arguments(made[2])):
        named = _DESIGNATED.match(part)
        parts.append((named[1], named[2]) if named is not None else (index, part))
    return made[1], parts


def designated(field: str | int, value: str) -> str:
    """A field as it is written in braces."""
    return f".{field} = {value}" if isinstance(field, str) else value


def leads(match: re.Match[str]) -> bool:
    """Whether a sum begins with a name: what it stands for need not be in brackets."""
    text = match.string
    before = _BEFORE.search(text, max(0, match.start() - 2), match.start())
    return before is not None and _BEHIND.match(text, match.end()) is not None


def bracketed(text: str, leads: bool) -> str:
    """A text in place of a name, which it may ``leads``."""
    return text if PLAIN.match(text) or (leads and "?" not in text) else f"({text})"
