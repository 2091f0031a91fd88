"""The values of the concrete execution: what one expression is, over all threads at once.

``int``       one value in every lane (the fast path)
``ndarray``   one value per lane in the native dtype; the last axis is the thread, axes before it are
              rounds of vectorised loops; every array broadcasts against every other
``Data``      not known: what a load, an atomic or an untranslated construct yields.  Equal objects are
              equal values, so the same element read twice is one value
``Address``   a byte offset into one array
``Choice``    one of several addresses, chosen per lane or by data

Arithmetic on known values is ``cuda_lsp.ir.ops``; here is only how the domain's parts mix.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.ir.program import Array
from cuda_lsp.model import WARP_SIZE

Lanes = NDArray[Any]
Flags = NDArray[np.bool_]


class Spread(enum.IntEnum):
    """Among which threads a value is surely one and the same."""

    THREAD = 0
    WARP = 1
    BLOCK = 2
    GRID = 3


NO_CELL = 1 << 63


@frozen
class Aligned:
    """How numbers lie beside powers of two (``alignment``).

    ``bits``: so many of the last ones are known, ``rest``. ``cell``: the numbers of each warp's lanes stay in
    one group of so many, a power of two, that begins at a multiple of it.
    """

    bits: int = 0
    rest: int = 0
    cell: int = NO_CELL


UNALIGNED = Aligned()


@frozen(eq=False)
class Ticket:
    """What an atomic counter handed out: distinct per execution.

    Values are ``scale`` times a number distinct for every execution of the atomic, plus ``base`` (the
    identity of what was added, the same in all threads).  ``family`` identifies counter and reset.
    ``gap``: bytes or units by which two values surely differ.  ``within``: among which threads.
    ``by_block``: one thread drew it, its block learnt of it.  ``line``: (factor, summand) from the number
    drawn to the value, None when not known.
    """

    family: int
    gap: int
    base: tuple[object, ...] = ()
    within: Spread = Spread.GRID
    by_block: bool = False
    line: tuple[int, int] | None = (1, 0)


@frozen(eq=False)
class Drawn:
    """A test that is true only for the thread that drew one certain number from a counter.

    ``number``: what was drawn when known, otherwise the identity of what it is compared with. ``within``:
    among which threads the counter is shared. ``by_block``: one thread drew, its block learnt of it.
    ``negated``: the test is false for that thread and true for all others. ``holds``: where the test
    surely comes out so for who drew the number: everywhere, nowhere known, or in these lanes.
    """

    family: int
    number: object
    within: Spread
    by_block: bool = False
    negated: bool = False
    holds: bool | Lanes = True


@frozen(eq=False)
class Data:
    """An unknown value.

    ``serial`` identifies it.  ``reason`` says to people where it comes from.  ``weak``: unknown only
    because the analysis gave up (an untranslated construct, a widened loop), not as program input.
    ``low``/``high``: inclusive bounds where known.  ``drawn``: for a truth value
    that says who drew a number. ``made``: the function that it is, the same in all lanes, and of what
    (``equal_values``). ``aligned``: how it lies beside powers of two.
    """

    serial: int
    reason: str
    spread: Spread = Spread.THREAD
    weak: bool = False
    low: int | Lanes | None = None
    high: int | Lanes | None = None
    ticket: Ticket | None = None
    drawn: Drawn | None = None
    made: tuple[object, tuple[Scalar, ...]] | None = None
    aligned: Aligned = UNALIGNED


@frozen(eq=False)
class Address:
    """So many bytes into an array."""

    array: Array
    offset: int | Lanes | Data  # bytes


@frozen(eq=False)
class Choice:
    """``options``: (lanes that take it, address); lanes None: chosen by data."""

    options: tuple[tuple[Flags | None, Address], ...]


Value = int | Lanes | Data | Address | Choice
Scalar = int | Lanes | Data
_LANE = 1 << 63
ONE_OF = "one of"
"""Of (flags by lane, or what chooses; one value; another): what a merged value is made by."""


def identity(value: Value | None) -> object:
    """Hashable; equal for equal values as long as the compared values are kept alive."""
    if type(value) is int:
        return value
    if isinstance(value, Address):
        return (value.array.id, identity(value.offset))
    return ("@", id(value))


def choice_of(options: Iterable[tuple[Flags | None, Address]]) -> Choice:
    """Each address once, with all lanes that may have it: rounds of a loop bring the same ones again."""
    found: dict[object, tuple[Flags | None, Address]] = {}
    for lanes, address in options:
        known = found.get(identity(address))
        if known is not None:
            lanes = None if lanes is None or known[0] is None else known[0] | lanes
        found[identity(address)] = (lanes, address)
    return Choice(tuple(found.values()))


def spread_of(value: Scalar, blocks: int) -> Spread:
    """Among which threads the value is one."""
    if isinstance(value, int):
        return Spread.GRID
    if isinstance(value, Data):
        return value.spread
    if value.ndim > 1 and value.size > value.shape[-1]:
        return Spread.THREAD  # the rounds of a loop differ, and threads need not be in one round
    if value.shape[-1] == 1:
        return Spread.GRID
    by_block: Lanes = np.reshape(value, (*value.shape[:-1], blocks, -1))
    if not (by_block == by_block[..., :1]).all():
        first = first_of_warp(by_block.shape[-1], blocks)
        return Spread.WARP if (value == value[..., first]).all() else Spread.THREAD
    same = (by_block[..., :1, :1] == by_block).all()
    return Spread.GRID if same else Spread.BLOCK


@functools.lru_cache(maxsize=64)
def first_of_warp(threads: int, blocks: int) -> Lanes:
    """Of each lane the first lane of its warp, in blocks of so many threads."""
    lane = np.arange(threads * blocks)
    return lane - lane % threads % WARP_SIZE


def bounds_of(value: Scalar) -> tuple[int | Lanes | None, int | Lanes | None]:
    """Bounds that lanes can be compared with: none beyond their 64 bits."""
    if isinstance(value, Data):
        return _in_lanes(value.low), _in_lanes(value.high)
    if isinstance(value, int):
        return _in_lanes(value), _in_lanes(value)
    wide = value.astype(np.int64)
    return wide, wide


def _in_lanes(bound: int | Lanes | None) -> int | Lanes | None:
    return None if isinstance(bound, int) and not -_LANE <= bound < _LANE else bound


def distinct(values: Lanes) -> Lanes:
    """The different values, in order.

    ``np.unique`` without further results hashes since NumPy 2.3, which takes 100 times as long as sorting for
    the even strides of addresses.
    """
    ordered: Lanes = np.sort(values, axis=None)
    if len(ordered) < 2:
        return ordered
    first: Flags = ordered[1:] != ordered[:-1]
    return ordered[np.concatenate((np.ones(1, bool), first))]
