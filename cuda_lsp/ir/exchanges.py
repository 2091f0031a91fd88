"""What threads of a warp or block hand to one another: shuffles, votes, matches, reductions, one row each.

An exchange takes what every participant offers and gives each a result. A row says it twice, for Python
integers (``python``: one thread's result) and for arrays (``numpy``: everybody's); shuffles have one rule for
both, the lane they read. Sources: PTX ISA, ``shfl.sync``, ``vote.sync``, ``match.sync``, ``redux.sync``;
CUDA C++ Programming Guide, warp functions. The barrier that an exchange implies is a statement of its own.
What the source lane does not offer is not known. Functions without a mask are those of CUDA before 9.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.ir.ops import Lanes, dtype_of
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.model import WARP_SIZE

Flags = NDArray[np.bool_]
Offers = Mapping[int, int]
"""What each participant offers, by lane (of a block-wide vote: by thread)."""


class Reach(enum.Enum):
    """Who gets one and the same result."""

    LANE = "nobody else"
    WARP = "the participants of the warp"
    BLOCK = "the block"


class Alike(enum.Enum):
    """The result where all participants offer one value, whoever they are."""

    VALUE = "that value"
    TRUTH = "whether it is not 0"


@frozen
class Exchange:
    """One exchange. ``offered``: which operand is handed to the others, None: that one takes part at all.

    ``source``: of a shuffle, the lane that it reads, if that is in the segment: (own lane, third operand,
    first lane of the segment, last) → (lane, whether it is in). ``python``: (offers, own lane) → result.
    ``numpy``: (offers ``(groups, 1, lanes)``, who takes part with whom ``(groups, lanes or 1, lanes)``) →
    ``(groups, lanes or 1)``. ``member``: what tiles of cooperative groups call it. ``alike``: what comes of
    one value that all offer; None: that depends on who they are.
    """

    name: str
    reach: Reach
    offered: int | None
    source: Callable[[Any, Any, Any, Any], tuple[Any, Any]] | None = None
    python: Callable[[Offers, int], int] = lambda offers, lane: 0
    numpy: Callable[[Lanes, Flags], Lanes] | None = None
    member: str = ""
    alike: Alike | None = None

    @property
    def masked(self) -> bool:
        """The first operand is the mask of the participants."""
        return self.name.endswith("_sync")

    @property
    def predicate(self) -> bool:
        """The last operand says where to write whether the result is not 0."""
        return "match_all" in self.name

    @property
    def synchronises(self) -> bool:
        """The participants wait for one another first."""
        return self.masked or self.reach is Reach.BLOCK


# ------------------------------------------------------------------------------------- the rows


def _word(lanes: Iterable[int]) -> int:
    return sum(1 << lane for lane in lanes)


def _words(lanes: Flags) -> Lanes:
    return lanes @ (1 << np.arange(lanes.shape[-1], dtype=np.int64))


_Source = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
_Python = Callable[[Offers], int]
_Numpy = Callable[[Lanes, Flags], Lanes]


def _shuffles(mode: str, source: _Source) -> tuple[Exchange, ...]:
    ends = (("_sync", 1), ("", 0))
    member = f"shfl{mode}"
    return tuple(
        Exchange(f"__shfl{mode}{end}", Reach.LANE, at, source, member=member, alike=Alike.VALUE)
        for end, at in ends
    )


def _warp(
    name: str, python: _Python, numpy: _Numpy, member: str = "", alike: Alike | None = None
) -> Exchange:
    offered = int(name.endswith("_sync"))
    return Exchange(name, Reach.WARP, offered, None, lambda o, lane: int(python(o)), numpy, member, alike)


def _votes(
    name: str, python: _Python, numpy: _Numpy, alike: Alike | None = None
) -> tuple[Exchange, Exchange]:
    return _warp(f"__{name}_sync", python, numpy, name, alike), _warp(f"__{name}", python, numpy, "", alike)


def _block(name: str, python: _Python, numpy: _Numpy) -> Exchange:
    return Exchange(f"__syncthreads_{name}", Reach.BLOCK, 0, None, lambda o, lane: int(python(o)), numpy)


def _reduction(
    name: str,
    python: Callable[[int, int], int],
    numpy: np.ufunc,
    neutral: int,
    alike: Alike | None = Alike.VALUE,
) -> Exchange:
    def reduced(offers: Offers) -> int:
        return functools.reduce(python, offers.values())

    def reduced_lanes(offers: Lanes, part: Flags) -> Lanes:
        return numpy.reduce(np.where(part, offers, neutral), axis=-1)

    return _warp(f"__reduce_{name}_sync", reduced, reduced_lanes, alike=alike)


_LEAST, _MOST = -(1 << 62), 1 << 62

# fmt: off
EXCHANGES: Mapping[str, Exchange] = {row.name: row for row in (
    *_shuffles("",      lambda lane, by, first, last: (first | (by & (last - first)), True)),
    *_shuffles("_up",   lambda lane, by, first, last: (lane - by, lane - by >= first)),
    *_shuffles("_down", lambda lane, by, first, last: (lane + by, lane + by <= last)),
    *_shuffles("_xor",  lambda lane, by, first, last: (lane ^ by, lane ^ by <= last)),
    Exchange("__activemask", Reach.LANE, None, numpy=lambda o, part: _words(part)),
    *_votes("ballot", lambda o: _word(x for x in o if o[x]), lambda o, part: _words((o != 0) & part)),
    *_votes("any", lambda o: any(o.values()), lambda o, part: ((o != 0) & part).any(-1), Alike.TRUTH),
    *_votes("all", lambda o: all(o.values()), lambda o, part: ((o != 0) | ~part).all(-1), Alike.TRUTH),
    _warp("__uni_sync", lambda o: len(set(map(bool, o.values()))) == 1,
          lambda o, part: _one_value(o != 0, part)),
    _warp("__match_all_sync", lambda o: _word(o) if len(set(o.values())) == 1 else 0,
          lambda o, part: _words(part & _one_value(o, part)[..., None])),
    Exchange("__match_any_sync", Reach.LANE, 1, None, lambda o, lane: _word(x for x in o if o[x] == o[lane]),
             lambda o, part: _words((o == np.swapaxes(o, -1, -2)) & part), member="match_any"),
    _reduction("add", lambda a, b: a + b, np.add,         0, None),
    _reduction("min", min,                np.minimum,     _MOST),
    _reduction("max", max,                np.maximum,     _LEAST),
    _reduction("and", lambda a, b: a & b, np.bitwise_and, -1),
    _reduction("or",  lambda a, b: a | b, np.bitwise_or,  0),
    _reduction("xor", lambda a, b: a ^ b, np.bitwise_xor, 0, None),
    _block("count", lambda o: sum(map(bool, o.values())), lambda o, part: ((o != 0) & part).sum(-1)),
    _block("and",   lambda o: all(o.values()),            lambda o, part: ((o != 0) | ~part).all(-1)),
    _block("or",    lambda o: any(o.values()),            lambda o, part: ((o != 0) & part).any(-1)),
)}
# fmt: on
"""Every exchange by its CUDA name."""
TILE_REDUCTION = "reduction of a tile"
"""Of (value, size of the tile): one result for all its lanes, of values that nobody computes."""
MEMBERS: Mapping[str, Exchange] = {row.member: row for row in EXCHANGES.values() if row.masked and row.member}
"""Those that tiles of cooperative groups have, by their names there."""


def _one_value(offers: Lanes, part: Flags) -> Flags:
    first = part.argmax(-1)[..., None]
    one = np.take_along_axis(np.broadcast_to(offers, part.shape), first, -1)
    return np.asarray(((offers == one) | ~part).all(-1))


# ------------------------------------------------------------------------------------ the results


def source_lane(row: Exchange, lane: Any, by: Any, width: int) -> Any:
    """The lane that lane ``lane`` of a shuffle reads; integers or arrays of them. None: not defined.

    The warp is cut into segments of ``width`` lanes, and ``by`` is a number of five bits. A lane whose source
    is below its segment (``up``) or above it reads itself; ``xor`` also reads earlier segments.
    """
    if row.source is None or width not in (1, 2, 4, 8, 16, 32):
        return None
    first = lane & -width
    at, within = row.source(lane, by & (WARP_SIZE - 1), first, first + width - 1)
    return lane + (at - lane) * within


def value_of(row: Exchange, offers: Mapping[int, Any], lane: int, operands: Sequence[Any], type: Type) -> Any:
    """One thread's result: an integer, with a shuffle whatever its source offers; None: not known.

    ``operands``: those of the call, as this thread has them; None where not known.
    """
    if row.source is not None:
        by, width = _shuffle_operands(row, operands)
        known = isinstance(by, int) and isinstance(width, int)
        return offers.get(source_lane(row, lane, by, width)) if known else None
    if row.masked:
        mask = operands[0]
        if not isinstance(mask, int) or not mask >> lane & 1:
            return None
        offers = {other: v for other, v in offers.items() if mask >> other & 1}
    if row.offered is None or not offers or any(not isinstance(v, int) for v in offers.values()):
        return None
    return type.wrap(row.python(offers, lane)) if isinstance(type, Int) else None


def values_of(
    row: Exchange, operands: Sequence[int | Lanes], executing: Flags, threads: int, type: Int
) -> int | Lanes | None:
    """Everybody's result ``(lanes,)``, in ``type``; None: not known. All operands are.

    ``executing``: ``(lanes,)`` of whole blocks of ``threads``, those that take part.
    """
    offered = 1 if row.offered is None else operands[row.offered]
    if row.source is not None:
        return offered if isinstance(offered, int) else _shuffled(row, offered, operands, executing, threads)
    if row.numpy is None:
        return None
    size = threads if row.reach is Reach.BLOCK else WARP_SIZE
    offers, part = (_groups(np.broadcast_to(x, executing.shape), threads, size) for x in (offered, executing))
    part = part[:, None, :]
    if row.masked:
        mask = _groups(np.broadcast_to(operands[0], executing.shape), threads, size).astype(np.int64)[
            ..., None
        ]
        together = ((mask >> np.arange(size)) & 1 != 0) & (mask == np.swapaxes(mask, 1, 2))
        if (part[:, 0] & ~np.diagonal(together, axis1=1, axis2=2)).any():
            return None  # one that its own mask does not name
        part = part & together
    result = row.numpy(offers.astype(np.int64)[:, None, :], part)
    flat = np.reshape(np.broadcast_to(result, offers.shape), (-1, -(-threads // size) * size))
    return np.reshape(flat[:, :threads], len(executing)).astype(dtype_of(type))


def _shuffle_operands(row: Exchange, operands: Sequence[Any]) -> tuple[Any, Any]:
    rest = operands[(row.offered or 0) + 1 :]
    return rest[0], rest[1] if len(rest) > 1 else WARP_SIZE


def _shuffled(
    row: Exchange, value: Lanes, operands: Sequence[int | Lanes], executing: Flags, threads: int
) -> Lanes | None:
    by, width = _shuffle_operands(row, operands)
    thread = np.arange(len(executing)) % threads
    lane = thread % WARP_SIZE
    source = (
        source_lane(row, lane, np.asarray(by).astype(np.int64), width) if isinstance(width, int) else None
    )
    if source is None:
        return None
    beyond = thread - lane + source >= threads
    at = np.where(beyond, 0, np.arange(len(executing)) - lane + source)
    if (executing & (beyond | ~executing[at])).any():
        return None
    return np.broadcast_to(value, executing.shape)[at]


def _groups(lanes: NDArray[Any], threads: int, size: int) -> NDArray[Any]:
    """``lanes`` of whole blocks as ``(groups, size)``, missing lanes 0."""
    per_block = np.reshape(lanes, (-1, threads))
    return np.reshape(np.pad(per_block, ((0, 0), (0, -threads % size))), (-1, size))
