"""The repair of code that relies on lock step: ``__syncwarp()`` behind the statements at which lanes meet.

A statement that itself reads what another lane's writes (``s[t] += s[t + 16];``) is taken apart, with a
barrier between. Lines stay lines. Statements are read from text, roughly: who offers a repair checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, count

from attrs import frozen

from cuda_lsp.model import Finding, Position

_BARRIER = "__syncwarp();"
_ASSIGNMENT = re.compile(r"\s*(<<|>>|[-+*/%&|^])?=(?!=)\s*")
_LONGEST = 1000  # characters of a statement behind an access


@frozen
class Edit:
    """``text`` in the place of what stands from ``start`` to ``end``: offsets in code points."""

    start: int
    end: int
    text: str


def repairs(races: Sequence[Finding], lines: Sequence[str]) -> Iterator[tuple[Edit, ...]]:
    """Edits of ``lines`` that may mend all of these races, the fewest first: in order, and apart."""
    starts = [0, *accumulate(map(len, lines))]
    text = "".join(lines)

    def offset(place: Position) -> int:
        return starts[place.line - 1] + place.column - 1

    apart: dict[int, tuple[int, int]] = {}  # by a statement's end: the extent of what it assigns to
    first: set[int] = set()
    every: set[int] = set()
    for race in races:
        places = sorted([race.site.range, *(related.site.range for related in race.related[:1])])
        extents = [(offset(place.start), offset(place.end)) for place in places]
        ends = [end for end in (_end_of_statement(text, behind) for _, behind in extents) if end]
        if not ends:
            return  # the lanes meet in no plain statement
        every.update(ends)
        if len(ends) == len(extents) and ends[0] == ends[-1]:
            apart[ends[0]] = extents[0]
        else:
            first.add(ends[0])
    for behind in (first, every):
        whole = [_taken_apart(text, extent, end, end in behind) for end, extent in apart.items()]
        added = [Edit(end, end, f" {_BARRIER}") for end in behind - apart.keys()]
        if None not in whole:
            yield tuple(sorted((e for e in (*whole, *added) if e), key=lambda edit: edit.start))


def edited(lines: Sequence[str], edits: Sequence[Edit]) -> str:
    """The text with the edits made."""
    text = "".join(lines)
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _end_of_statement(text: str, at: int) -> int | None:
    """Behind the semicolon of the statement at ``at``, unless a brace comes first."""
    match = re.compile(r"[^;{}]*;").match(text, at, at + _LONGEST)
    return match.end() if match else None


def _taken_apart(text: str, target: tuple[int, int], end: int, followed: bool) -> Edit | None:
    """The assignment to ``target`` that ends at ``end``, with a barrier between its reads and its write."""
    left, operator = text[slice(*target)], _ASSIGNMENT.match(text, target[1])
    if operator is None or any(mark in text[target[0] : end] for mark in ("//", "/*", '"', "\n#")):
        return None
    right = text[operator.end() : end - 1].strip()
    if _has_comma(right):
        return None
    value = f"{left} {operator[1]} ({right})" if operator[1] else right
    name = _unused("sum" if operator[1] == "+" else "value", text[target[0] : end])
    last = f" {_BARRIER}" if followed else ""
    return Edit(target[0], end, f"{{ const auto {name} = {value}; {_BARRIER} {left} = {name};{last} }}")


def _unused(name: str, statement: str) -> str:
    names = (f"{name}{n or ''}" for n in count())
    return next(n for n in names if not re.search(rf"\b{n}\b", statement))


def _has_comma(expression: str) -> bool:
    """Outside parentheses and brackets."""
    inner = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
    while (shorter := inner.sub("", expression)) != expression:
        expression = shorter
    return "," in expression
