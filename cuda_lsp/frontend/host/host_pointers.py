"""Pointer variables of host code that hold a place in another buffer: ``float* p = d + 1; k<<<…>>>(d, p);``.

Read from text, as constants are. A variable stands for its value where the declaration that is visible at the
launch, and the assignments in its scope, give it one. Of one that gets several nobody knows which it has.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.definitions import pointer_lists
from cuda_lsp.frontend.host.text import HostText, by_name, split_arguments

_NAME = r"[A-Za-z_]\w*"
_DECLARED = re.compile(
    rf"(?<=[;{{}}])\s?(?:(?:const|static|unsigned|struct)\s)*(?!(?:return|delete|throw|else|case)\b){_NAME}"
    rf"(?:::\w+)*(?:\sconst)?\s?(\*[^;{{}}]{{1,400}});|\bauto\s?(\*?\s?{_NAME}\s?=\s?[^;{{}}]{{1,200}});"
)
_DECLARATOR = re.compile(
    rf"\A[*\s]*(?:const\s|__restrict__\s|__restrict\s)?({_NAME})\s?(?:\Z|=\s?(.+)\Z|\((.+)\)\Z)", re.S
)
_ASSIGNED = re.compile(
    rf"(?<![\w.>*&])({_NAME}(?:\s?(?:\.|->)\s?\w+|\[\w+\]){{0,6}})\s?=(?!=)\s?([^;{{}}]{{1,200}});"
)
_MOVED = re.compile(rf"(?<![\w.>])({_NAME})\s?(?:(?:[-+*/%&|^]|<<|>>)=|\+\+|--)|(?:\+\+|--)\s?({_NAME})\b")
_LESSENED = re.compile(rf"(?<![\w.>])({_NAME})\s?(?:/|>>)=")
_LENT = re.compile(rf"[(,=]\s?&\s?({_NAME})\b(?!\s?[\[.]|\s?->)|[(,]\s?\([^()]*\*\s?\*\s?\)\s?&\s?({_NAME})")
_WORD = re.compile(_NAME)
_TYPED = re.compile(
    rf"(?<!\w)(?!(?:return|delete|sizeof|case|else)\b)({_NAME})"
    rf"\s?(?:const\s?)?\*\s?(?:const\s|__restrict__\s)?({_NAME})"
)
_SYMBOL = re.compile(rf"\bcudaGetSymbolAddress\s?\((?:\s?\([^()]*\))?\s?&\s?({_NAME})\s?,\s?({_NAME})\s?\)")
_RECORD = re.compile(rf"\b{_NAME}\s({_NAME})\s?(?:=\s?(?:{_NAME}\s?)?)?\{{([^{{}};]{{1,1000}})\}}\s?;")
_DESIGNATED = re.compile(rf"\A\s?\.\s?({_NAME})\s?=\s?(.+)\Z", re.S)
_ELEMENT = re.compile(r"\[(\w+)\]\Z")
_LOOP = re.compile(r"\bfor\s?\([^;{}]{0,400};[^;{}]{0,400};([^;{}]{0,400})\)\s?\Z")
_LONGEST_HEADER = 400
_SWAPPED = re.compile(rf"\bswap\s?\(\s?({_NAME})\s?,\s?({_NAME})\s?\)")


@frozen
class Held:
    """What a pointer variable may hold, as text of the host.

    ``moved``: it, or what its value is made of, has changed since. ``lessened``: only sizes in it have, and
    each of these was divided.
    """

    values: tuple[str, ...]
    moved: bool = False
    lessened: bool = False


class HostPointers:
    """The pointer variables of one file."""

    def __init__(self, text: HostText) -> None:
        self._text = text
        self._braces = text.braces
        self._plain = plain = text.plain
        declared: dict[str, list[tuple[int, int]]] = {}
        values: dict[str, list[tuple[int, str]]] = {}
        spans: list[tuple[int, int]] = []
        for match in _DECLARED.finditer(plain):
            spans.append((match.start(), match.end()))
            for name, value in _declarators(match[1] or match[2]):
                declared.setdefault(name, []).append((match.end(), text.braces.end(match.end())))
                if value is not None:
                    values.setdefault(name, []).append((match.end(), value))
        begins = [begin for begin, _ in spans]
        for match in _ASSIGNED.finditer(plain):
            inside = bisect_right(begins, match.start()) - 1
            if inside < 0 or spans[inside][1] <= match.start():
                values.setdefault(match[1].replace(" ", ""), []).append((match.end(), match[2]))
        self._declared = declared
        self._values = {name: sorted(found) for name, found in values.items()}
        self._moved = _places_of(_MOVED, plain)
        self._lessened = _places_of(_LESSENED, plain)
        lists = [match.span() for match in pointer_lists(plain, 0, len(plain))]
        self._lent = _places_of(_LENT, plain, lists)
        self._symbols = by_name(_SYMBOL, plain)
        self._records = by_name(_RECORD, plain)
        self._types: dict[str, set[str]] = {}
        for match in _TYPED.finditer(plain):
            self._types.setdefault(match[2], set()).add(match[1])
        self._swapped = _places_of(_SWAPPED, plain)

    def held(self, name: str, at: int) -> Held | None:
        """What the variable may hold at a place; None: nothing is known of it."""
        scope = self._scope(name, at)
        own = [(p, value) for p, value in self._values.get(name, ()) if scope[0] <= p <= scope[1]]
        own = [(p, value) for p, value in own if p < at or not self._is_of_a_round(name, at, p)]
        found = {value: p for p, value in own if p > at or self._text.may_come_to(p, at)}
        root = re.split(r"[.\-\[]", name, maxsplit=1)[0]
        if not found or _within(self._lent.get(root), scope):
            return None
        several = (*found, "") if _within(self._swapped.get(name), scope) else tuple(found)
        named = [(word, p) for value, p in found.items() for word in _WORD.findall(value)]
        changes = [(word, place) for word, p in named for place in self._changes(word, p, at)]
        moved = _within(self._moved.get(name), scope)
        lessened = not moved and all(place in self._lessened.get(word, ()) for word, place in changes)
        return Held(several, bool(changes) or moved, bool(changes) and lessened)

    def symbol(self, name: str, at: int) -> str | None:
        """The variable of the device whose address it was last given before a place."""
        found = [match for match in self._symbols.get(name, ()) if match.start() < at]
        return found[-1][2] if found and self._braces.end(found[-1].start()) >= at else None

    def fields(self, name: str, at: int) -> Iterator[tuple[str | int, str]]:
        """What fields of a record may hold at a place: by name, or by position where it is made."""
        made = [m for m in self._records.get(name, ()) if m.end() <= at <= self._braces.end(m.start())]
        for index, part in enumerate(split_arguments(made[-1][2]) if made else ()):
            named = _DESIGNATED.match(part)
            yield (named[1], named[2]) if named is not None else (index, part)
        for field, values in self._values.items():
            if field.startswith(f"{name}."):
                first, last = self._scope(name, at)
                yield from (
                    (field.removeprefix(f"{name}."), v) for p, v in values if first <= p <= min(last, at)
                )

    def type_of(self, name: str) -> str | None:
        """What it points to, where all declarations of the name agree."""
        found = self._types.get(name, set())
        return next(iter(found)) if len(found) == 1 else None

    def _changes(self, name: str, begin: int, end: int) -> Iterator[int]:
        """Where the variable may change between two places."""
        stores = [place for place, _ in self._values.get(name, ())]
        lists = (stores, self._moved.get(name, ()), self._lent.get(name, ()))
        between = (place for places in lists for place in _those_within(places, (begin + 1, end - 1)))
        return (place for place in between if self._text.may_come_to(place, end))

    def _is_of_a_round(self, name: str, begin: int, end: int) -> bool:
        """Whether it is an element whose number counts the rounds of a loop around both places.

        What one round writes to it behind a place, no other reads there.
        """
        index = _ELEMENT.search(name)
        brace = self._braces.begin(begin) if index is not None else -1
        while index is not None and brace >= 0:
            header = _LOOP.search(self._plain, max(0, brace - _LONGEST_HEADER), brace)
            if header is not None and self._braces.closing.get(brace, -1) >= end:
                return re.search(rf"\+\+\s?{index[1]}\b|\b{index[1]}\s?(?:\+\+|\+=)", header[1]) is not None
            brace = self._braces.begin(brace - 1)
        return False

    def _scope(self, name: str, at: int) -> tuple[int, int]:
        """Where the visible declaration holds; of other names the whole function."""
        for begin, end in reversed(self._declared.get(name, ())):
            if begin <= at <= end:
                return begin, end
        body = brace = self._braces.begin(at)
        while brace >= 0:  # the outermost block that parameters, or a condition, stand before
            if self._plain[max(0, brace - 2) : brace].rstrip()[-1:] == ")":
                body = brace
            brace = self._braces.begin(brace - 1)
        return body, self._braces.closing.get(body, at)


def _declarators(text: str) -> Iterator[tuple[str, str | None]]:
    for part in split_arguments(text):
        match = _DECLARATOR.match(part.strip())
        if match is not None:
            yield match[1], match[2] or match[3]


def _within(places: Sequence[int] | None, scope: tuple[int, int]) -> bool:
    return bool(places) and bool(_those_within(places, scope))


def _those_within(places: Sequence[int], scope: tuple[int, int]) -> Sequence[int]:
    return places[bisect_left(places, scope[0]) : bisect_right(places, scope[1])]


def _places_of(
    pattern: re.Pattern[str], plain: str, but: Sequence[tuple[int, int]] = ()
) -> dict[str, list[int]]:
    """Where a file changes each name; ``but``: stretches that are not looked at."""
    found: dict[str, list[int]] = {}
    for match in pattern.finditer(plain):
        index = bisect_right(but, match.start(), key=lambda span: span[0]) - 1
        if index >= 0 and match.start() < but[index][1]:
            continue
        for name in filter(None, match.groups()):
            found.setdefault(name, []).append(match.start())
    return found
