"""Where host code writes to the fields of a variable that holds a record. Read from text."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = r"[A-Za-z_]\w*"
_FIELD = re.compile(rf"\s?\.\s?({_NAME})")
_HANDED_OVER = re.compile(r"\b(?:swap|tie|exchange)\s?\([^();]*\Z")
"""To the standard library, by reference."""
_ELEMENT = re.compile(r"\s?\[\s?([^\[\];{}]{1,200}?)\s?\]")
_ASSIGNED = re.compile(r"\s?=(?!=)\s?([^;{}]{1,200});")
_OTHERWISE = re.compile(r"\s?([\[.(]|(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)")
_STATEMENT_ENDS = (";", "{", "}")
_CHANGED = re.compile(r"(?:(?<!&)&|\+\+|--)\s?\Z")
_LAUNCHED = re.compile(r">>>\s?\Z")
Write = tuple[str | None, int]
"""What is written, None: nobody knows, and where."""
_LONGEST = 2000
"""Characters of a launch's arguments in front of a name."""


def writes_to_record(plain: str, name: str, begin: int, end: int) -> Mapping[str, Write] | None:
    """By field: what is assigned last, None where that is not plain. None: anything may be written."""
    found: dict[str, Write] = {}
    for use in re.compile(rf"(?<![\w.>:]){name}\b").finditer(plain, begin, end):
        changed = _CHANGED.search(plain, max(0, use.start() - 4), use.start()) is not None
        field = _FIELD.match(plain, use.end())
        if field is None:
            if changed or not _is_launched(plain, use.start()):
                return None
            continue
        element = _ELEMENT.match(plain, field.end())
        behind = field.end() if element is None else element.end()
        assigned, other = _ASSIGNED.match(plain, behind), _OTHERWISE.match(plain, behind)
        if other is not None and other[1] == "(":
            return None  # a function of the record
        before = plain[max(0, use.start() - 2) : use.start()].rstrip()[-1:]
        which = f"{field[1]}[{element[1]}]" if element is not None and element[1].isdigit() else field[1]
        if assigned is not None and before in _STATEMENT_ENDS:
            found[which] = (assigned[1] if element is None or which != field[1] else None, use.start())
        elif changed or other is not None or _is_handed_over(plain, use.start()):
            found[field[1]] = (None, use.start())
        elif element is None:
            found[f"{field[1]}[]"] = (None, use.start())  # an array is lent
    return found


def _is_handed_over(plain: str, place: int) -> bool:
    """Whether a name is an argument that the standard library may change."""
    return _HANDED_OVER.search(plain, max(0, place - 80), place) is not None


def _is_launched(plain: str, place: int) -> bool:
    """Whether a name is an argument of a launch, which copies it."""
    depth = 0
    for opening in range(place - 1, max(0, place - _LONGEST), -1):
        match plain[opening]:
            case ";" | "{" | "}":
                return False
            case ")":
                depth += 1
            case "(" if depth:
                depth -= 1
            case "(":
                return _LAUNCHED.search(plain, max(0, opening - 4), opening) is not None
            case _:
                pass
    return False
