"""Grids that follow an argument: ``k<<<(n + 255) / 256, 256>>>(a, n)`` has as many blocks as ``n`` needs.

What the host computes is not taken apart but tried, with a row of values for the argument. Where all of them
give ``n`` divided by one number, rounded up or down, the grid is that, in terms of the launch (``guards``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cuda_lsp.frontend.host.host_constants import Given, HostConstants, Key
from cuda_lsp.model import Extents

_LARGE = 1 << 20
_TRIED = (
    1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025,
    4097, 99_999, _LARGE - 1,
)  # fmt: skip


def followed(
    constants: HostConstants, grid: str, at: int, arguments: Sequence[str], known: Extents, way: Given
) -> tuple[str, ...]:
    """Comparisons of the grid's unknown extents with the launch's arguments."""
    missing = constants.missing(grid, at, way) if None in known else frozenset[Key]()
    found: dict[str, None] = {}
    for number, argument in enumerate(arguments):
        name = argument.strip()
        key = constants.key(name, at) if name.isidentifier() else None
        if key is None:
            continue
        if key in missing:
            named = constants.argument(number, name, at)
            found.update(dict.fromkeys(_comparisons(constants, grid, at, key, named, known, way)))
        for size in sorted(missing):
            record, _, member = size[0].partition(".")
            if member and (record, size[1]) == key:
                named = f"#u{number}.{member}"
                found.update(dict.fromkeys(_comparisons(constants, grid, at, size, named, known, way)))
    return tuple(found)


def _comparisons(
    constants: HostConstants, grid: str, at: int, key: Key, argument: str, known: Extents, way: Given
) -> Iterator[str]:
    def extents(value: int) -> Extents:
        return constants.known_extents(grid, at, way.and_those(Given({key: value})))

    large = extents(_LARGE)
    if all(large[i] is None for i, extent in enumerate(known) if extent is None):
        return
    tried = [(value, extents(value)) for value in _TRIED]
    for i, axis in enumerate("xyz"):
        blocks = large[i]
        if known[i] is None and blocks is not None and blocks > 1:  # else it does not follow
            text = _quotient([(value, found[i]) for value, found in tried], blocks, argument)
            if text is not None:
                yield f"gridDim.{axis} == {text}"


def _quotient(tried: Sequence[tuple[int, int | None]], of_large: int, name: str) -> str | None:
    """The values as ``name`` divided by a number; None: they are something else."""
    about = _LARGE // of_large
    for by in range(max(1, about - 1), about + 2):
        every = [*tried, (_LARGE, of_large)]
        if all(found == -(-value // by) for value, found in every):
            return _without_sign(name) if by == 1 else f"({name} + {by - 1}) / {by}"
        if all((found or 0) == value // by for value, found in every):
            return f"{name} / {by}"
    return None


def _without_sign(name: str) -> str:
    """The argument, which is as many blocks as there are: the same number where the kernel takes no sign."""
    return re.sub(r"\A#(?!u)", "#u", name)
