"""Extents of a launch that a check or a branch before it compares with numbers, as they are written.

``assert(c / h == 64 || c / h == 128); if (c / h == 64) …; else k<<<n, c / h>>>(…)`` has blocks of 128, and
``assert(shape->size[3] == 1)`` one block along an axis that has ``shape->size[3]`` of them. An expression is
taken for the same if its text is, and nothing writes to it, or to a name in it, in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_lsp.frontend.host.computed_arguments import component
from cuda_lsp.frontend.host.guards import Comparison, one_of
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.known_values import UNKNOWN
from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.model import Extents

_COMPARED = re.compile(r"\A([^=<>!&|?]{1,80})([=!]=)([^=<>!&|?]{1,80})\Z")
_NAME = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_CALL = re.compile(r"\w\(")
_ARROW = "\0"
"""In the place of ``->``, which is no comparison."""


def filled(
    known: Extents, text: str, at: int, host: HostText, constants: HostConstants, held: Sequence[Comparison]
) -> Extents:
    """The extents of ``text`` at a place; those that are not known as what is ``held`` there tells them."""

    def extent(axis: int) -> int | None:
        part = component(constants, text, axis, at) if known[axis] is None else None
        return known[axis] if part is None else _value(_bare(part[0]), part[1], host, constants, held)

    x, y, z = (extent(axis) for axis in range(3))
    if known == UNKNOWN and x is not None and _value(_bare(text), at, host, constants, held) == x:
        return x, 1, 1  # what is compared with a number is one
    return x, y, z


def _value(
    written: str, at: int, host: HostText, constants: HostConstants, held: Sequence[Comparison]
) -> int | None:
    """What an expression is at a place by what holds there, if that leaves one number."""
    if written.isdigit() or _CALL.search(written):
        return None
    left: set[int] | None = None
    denied: set[int] = set()
    for condition, place in held:
        signs = [_compared(part, written, place, constants) for part in one_of(condition)]
        numbers = {sign[1] for sign in signs if sign is not None}
        if len(numbers) < len(signs) or not _is_kept(written, place, at, host, constants):
            continue
        if all(sign is not None and sign[0] == "==" for sign in signs):
            left = numbers if left is None else left & numbers
        elif len(signs) == 1:
            denied |= numbers
    remaining = (left or set()) - denied
    return remaining.pop() if len(remaining) == 1 else None


def _compared(text: str, written: str, place: int, constants: HostConstants) -> tuple[str, int] | None:
    """``==`` or ``!=``, and the number that the expression is compared with."""
    match = _COMPARED.match(_bare(text))
    if match is None or written not in (match[1], match[3]):
        return None
    other = match[3] if match[1] == written else match[1]
    number = constants.integer(other.replace(_ARROW, "->"), place)
    return None if number is None else (match[2], number)


def _is_kept(written: str, place: int, at: int, host: HostText, constants: HostConstants) -> bool:
    """Nothing writes to the expression, or to a name in it, from one place to the other."""
    begin, end = sorted((place, at))
    for name in _NAME.findall(written.replace(_ARROW, "->")):
        key = constants.key(name, place)
        if key is None or key != constants.key(name, at):
            return False
    between = _bare(host.plain[begin:end])
    return re.search(rf"{re.escape(written)}(?:=(?!=)|\+\+|--|[-+*/]=)", between) is None


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text).replace("->", _ARROW)
