"""What is known of names of host code at a place: the words that reading constants is told in."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.frontend.host.definitions import Definition
from cuda_lsp.model import Dim3, Extents

UNKNOWN: Extents = (None, None, None)

Key = tuple[str, int]
"""A name, and where the definition or assignment stands whose value it has."""


@frozen
class Taken:
    """Which branches of ``if``s before a place are taken: where their braces open, and what is not run."""

    braces: frozenset[int] = frozenset()
    skipped: tuple[tuple[int, int], ...] = ()

    def and_those(self, other: Taken) -> Taken:
        """Of both."""
        return Taken(self.braces | other.braces, (*self.skipped, *other.skipped))

    def runs(self, position: int) -> bool:
        """Whether the place is in none of the branches that are not taken."""
        return not any(begin < position < end for begin, end in self.skipped)


@frozen
class Given:
    """Values that are known besides the text: of names, as they are defined or assigned at a place.

    ``taken``: the branches of the file on this way.
    """

    values: Mapping[Key, int | Extents]
    taken: Taken = Taken()

    def and_those(self, other: Given) -> Given:
        """The values of both, on this way."""
        return Given({**self.values, **other.values}, self.taken)


NOTHING_GIVEN = Given({})


@frozen
class Reached:
    """What reaches a use: ``text`` as it means there where it stands; None: unknown unless given."""

    text: str | None
    position: int
    definition: Definition


def all_known(extents: Extents) -> Dim3 | None:
    """The extents when none is unknown."""
    x, y, z = extents
    return None if x is None or y is None or z is None else (x, y, z)
