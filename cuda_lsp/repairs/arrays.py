"""Shared arrays as their declaration and their uses are written."""

from __future__ import annotations

import re

from attrs import frozen

from cuda_lsp.blanked import blanked
from cuda_lsp.repairs.source import Source

_SUBSCRIPT = re.compile(r"\s*\[")
_BRACKET = re.compile(r"[\[\]]")
_ADDRESS = re.compile(r"(?:^|[^\w)\]&\s])\s*&\s*\Z")
_LONGEST = 400
_SIZES = {
    "char": 1,
    "bool": 1,
    "short": 2,
    "half": 2,
    "__half": 2,
    "int": 4,
    "unsigned": 4,
    "float": 4,
    "double": 8,
}

Extent = tuple[int, int]
"""Offsets: from, and up to."""


@frozen
class SharedArray:
    """``extents``: what stands in each bracket of the declaration; ``uses``: in the subscripts of each use.

    ``subscripted``: nothing is done with the array but naming one element, by all subscripts, and no
    macro names it. Nor is a row a way into others: rows are named by numbers everywhere, or nowhere.
    ``element``: its bytes, where the type is a plain one.
    """

    name: str
    element: int | None
    extents: tuple[Extent, ...]
    uses: tuple[tuple[Extent, ...], ...]
    subscripted: bool


def shared_array(source: Source, access: Extent) -> SharedArray | None:
    """The array that an access names, where it is declared ``__shared__`` in the same function."""
    named = re.compile(r"([A-Za-z_]\w*)\s*\[").match(source.plain, *access)
    path = source.statements.path(access[0])
    if named is None or not path:
        return None
    name, body = named[1], path[0]
    declared = re.compile(rf"(extern\s+)?__shared__\b((?:(?!__shared__)[^;{{}}=])*?)\b{name}\s*(?=\[)")
    found = declared.search(source.plain, body.start, body.end)
    if found is None or found[1]:
        return None
    extents = _brackets(source.plain, found.end())
    uses: list[tuple[Extent, ...]] = []
    subscripted = bool(extents) and not _in_directives(source, name)
    for use in re.compile(rf"(?<![\w.])(?<!->){name}\b").finditer(source.plain, body.start, body.end):
        if found.start() <= use.start() < found.end():
            continue
        uses.append(_brackets(source.plain, use.end()))
        subscripted &= len(uses[-1]) == len(extents)
        subscripted &= _ADDRESS.search(source.plain, max(0, use.start() - 40), use.start()) is None
    subscripted &= len({_is_number(source, use) for use in uses if use}) < 2
    words = re.findall(r"\w+", found[2])
    sizes = [_SIZES[word] for word in words if word in _SIZES]
    element = sizes[0] if len(sizes) == 1 and "long" not in words else None
    return SharedArray(name, element, extents, tuple(uses), subscripted)


def _in_directives(source: Source, name: str) -> bool:
    """Whether what the preprocessor reads has the name."""
    return any(source.plain[m.start()].isspace() for m in re.finditer(rf"\b{name}\b", blanked(source.text)))


def _is_number(source: Source, subscripts: tuple[Extent, ...]) -> bool:
    """Whether the row of a use is: its columns may then be those of all rows."""
    return all(re.fullmatch(r"\s*\d+\s*", source.plain[slice(*part)]) for part in subscripts[:-1])


def _brackets(plain: str, at: int) -> tuple[Extent, ...]:
    """What stands in each of the bracket pairs that follow."""
    found: list[Extent] = []
    while (opening := _SUBSCRIPT.match(plain, at)) is not None:
        closing = _closing(plain, opening.end())
        if closing is None:
            return ()
        found.append((opening.end(), closing))
        at = closing + 1
    return tuple(found)


def _closing(plain: str, at: int) -> int | None:
    depth = 1
    for match in _BRACKET.finditer(plain, at, at + _LONGEST):
        depth += 1 if match[0] == "[" else -1
        if depth == 0:
            return match.start()
    return None


def constant(source: Source, expression: str) -> int | None:
    """The value of a number, or of the name of one that this text gives once; None: it is not that simple."""
    expression = expression.strip()
    if re.fullmatch(r"\d+", expression):
        return int(expression)
    if not re.fullmatch(r"[A-Za-z_]\w*", expression):
        return None
    declared = r"\bconst(?:expr)?\b(?:(?!\bconst)[^;{}=()])*"
    defined = rf"#\s*define\s+{expression}\s+|{declared}\b{expression}\s*=\s*"
    given = re.findall(rf"(?:{defined})(\d+)\b(?!\s*[-+*/<>(.])", source.text)
    makes_names = r"\b(?:template|enum)\b"
    named = re.findall(rf"{makes_names}(?:(?!{makes_names})[^;{{}}])*\b{expression}\b", source.text)
    return int(given[0]) if len(given) == 1 and not named else None
