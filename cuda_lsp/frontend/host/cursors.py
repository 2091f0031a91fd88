"""Variables of the host that only ``+=`` moves on, one statement after another: ``a = p; p += n; b = p;``.

Where such a cursor stood at a place is where it began, and the steps before the place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cuda_lsp.frontend.host.text import HostText

_BEFORE = re.compile(r"[;{}]\s?\Z")
_STEP = re.compile(r"(?<!\w)\w{1,100}\s?\+=\s?(?P<by>[^;{},]{1,200});")
_AT_PLACE = re.compile(r"__at\d+\Z")


def start_of(name: str) -> str:
    """What stands for where a cursor began that nothing in its function sets."""
    return f"{name}__start"


def at_place(name: str, place: int) -> str:
    """A name for what a variable held at a place."""
    return f"{name}__at{place}"


def name_of(name: str) -> str:
    """The variable that a name is of, ``at_place`` or not."""
    return _AT_PLACE.sub("", name)


class Cursors:
    """Of one file. ``moved``: where each name may be moved, in whatever way."""

    def __init__(self, text: HostText, moved: Mapping[str, Sequence[int]]) -> None:
        self._text = text
        self._moved = moved

    def steps(self, name: str, scope: tuple[int, int]) -> list[tuple[int, str]] | None:
        """Where it is moved in its scope, and by what; None: not by such statements of one block alone."""
        places = [place for place in self._moved.get(name, ()) if scope[0] <= place <= scope[1]]
        found: list[tuple[int, str]] = []
        for place in places:
            step = _STEP.match(self._text.plain, place)
            if step is None or not _BEFORE.search(self._text.plain, max(0, place - 2), place):
                return None
            found.append((place, step["by"].strip()))
        blocks = {self._text.braces.begin(place) for place, _ in found}
        return found if len(blocks) == 1 else None
