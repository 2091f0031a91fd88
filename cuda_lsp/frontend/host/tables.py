"""Arrays of host code that hold known values: ``int sizes[] = {32, 64, 128};`` and nothing that changes them.

Launches are measured with one block after another, and the blocks are listed. An array counts whose elements
are only read: another use of its name, but for ``sizeof``, may hand it to who writes to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from attrs import frozen

from cuda_lsp.frontend.host.text import HostText, by_name, split_arguments, start_of

_TABLE = re.compile(
    r"(?<!\w)(?=\w+\s(\w+))(int|unsigned|size_t|long|short|uint|u?int(?:8|16|32|64)_t)\s\w+"
    r"\s?\[[^\[\]]{0,40}\]\s?=?\s?\{([^{}]{0,1000})\}"
)
_READ = (
    r"(?<![\w.>&])(?<!&\s){name}\s?\[[^\[\]]{{0,80}}\]"
    r"(?!\s?(?:=(?!=)|[-+*/%|&^]=|<<=|>>=|\+\+|--|\[))|\bsizeof\s?\(?\s?{name}\b"
)
_STEPPED = re.compile(r"(?:\+\+|--)\s?\Z")


@frozen
class Table:
    """Its elements as text, where they stand, and the word for their type."""

    elements: Sequence[str]
    position: int
    type: str


class Tables:
    """The arrays of one text."""

    def __init__(self, host: HostText) -> None:
        self._host = host
        self._found = by_name(_TABLE, host.plain) if "[" in host.plain else {}
        self._constant: dict[int, bool] = {}

    def visible(self, name: str, before: int) -> Table | None:
        """The array that a name means at a place; None: there is none, or it may change."""
        known = self._found.get(name, ())
        for match in reversed(known[: bisect_left(known, before, key=start_of)]):
            if before <= self._host.braces.end(match.start()):
                elements = split_arguments(match[3]) if self._is_constant(match) else []
                return Table(elements, match.start(), match[2]) if elements else None
        return None

    def _is_constant(self, match: re.Match[str]) -> bool:
        position = match.start()
        if position not in self._constant:
            plain, end, name = self._host.plain, self._host.braces.end(position), re.escape(match[1])
            uses = len(re.findall(rf"(?<![\w.]){name}\b", plain[match.end() : end]))
            reads = re.finditer(_READ.format(name=name), plain[match.end() : end])
            begins = (match.end() + read.start() for read in reads)
            kept = [begin for begin in begins if not _STEPPED.search(plain[max(0, begin - 3) : begin])]
            self._constant[position] = uses == len(kept)
        return self._constant[position]
