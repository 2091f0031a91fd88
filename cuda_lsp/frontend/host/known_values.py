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
class Given:
    """Values that are known besides the text: of names, as they are defined or assigned at a place."""

    values: Mapping[Key, int | Extents]

    def and_those(self, other: Given) -> Given:
        """Of both."""
        return Given({**self.values, **other.values})


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
