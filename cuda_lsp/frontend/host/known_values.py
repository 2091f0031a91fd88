"""What is known of names of host code at a place: the words that reading constants is told in."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.frontend.host.definitions import Definition
from cuda_lsp.model import Dim3, Extents

UNKNOWN: Extents = (None, None, None)

Key = tuple[str, int]
"""A name, and where the definition or assignment stands whose value it has; see ``size_of``."""
_SIZE_OF = "sizeof "


def size_of(type: str) -> str:
    """The name under which the size of what a template parameter stands for is known."""
    return _SIZE_OF + type


def sized_type(name: str) -> str | None:
    """The template parameter whose size has this name; None: it is no such name."""
    return name.removeprefix(_SIZE_OF) if name.startswith(_SIZE_OF) else None


@frozen
class Taken:
    """Which branches of ``if``s before a place are taken: where their braces open, and what is not run.

    ``asked``: what holds for that, and where.
    """

    braces: frozenset[int] = frozenset()
    skipped: tuple[tuple[int, int], ...] = ()
    asked: tuple[tuple[str, int], ...] = ()

    def and_those(self, other: Taken) -> Taken:
        """Of both."""
        skipped, asked = (*self.skipped, *other.skipped), (*self.asked, *other.asked)
        return Taken(self.braces | other.braces, skipped, asked)

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

    @property
    def of_types(self) -> Given:
        """The sizes of types alone, on this way."""
        sizes = {key: value for key, value in self.values.items() if sized_type(key[0]) is not None}
        return Given(sizes, self.taken)


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
