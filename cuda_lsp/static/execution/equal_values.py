"""Which lanes have one and the same value, though nobody knows which: numbers of values, lane by lane.

What is computed alike from equal values is equal (value numbering, Kildall 1973, of all lanes at once): a
value read from memory that nobody writes has its offset's number, what is shuffled that of the lane it came
from, what a tile reduces that of all that its lanes offer. ``x + y`` is ``y + x``, in floating point too, so
that after ``v += shfl_xor(v, 16)`` two lanes agree, and after five such steps all of a warp. The full mask is
taken at its word: lanes that it names and that do not come are told as a divergence of their own.

Numbers are hashes (``hashes.py``).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from attrs import define, field

from cuda_lsp.ir.exchanges import EXCHANGES, TILE_REDUCTION, Exchange, Reach, source_lane
from cuda_lsp.model import FULL_WARP, WARP_SIZE, Space
from cuda_lsp.static.execution.hashes import WORD, Hashes, mixed
from cuda_lsp.static.execution.pure_values import DEEPEST, PureValues, is_commutative
from cuda_lsp.static.execution.values import ONE_OF, Data, Lanes, Scalar, Spread


@define
class EqualValues:
    """The numbers of values in ``lanes`` lanes, blocks of ``threads``. Equal numbers: equal values.

    That holds in one round of the loops around: a value is asked for with others of its round.
    """

    lanes: int
    threads: int
    _words: dict[object, int] = field(factory=dict[object, int])
    _known: dict[int, tuple[Scalar, Lanes]] = field(factory=dict[int, tuple[Scalar, Lanes]])
    _depth: int = 0
    pure: PureValues = field(init=False)
    """Of those of which rounds make no difference."""

    @pure.default  # type: ignore[misc]
    def _pure(self) -> PureValues:
        return PureValues(self._word)

    def of(self, value: Scalar) -> Lanes:
        """The number of the value in every lane, ``(lanes,)``."""
        if isinstance(value, int):
            return self._each("integer", np.full(self.lanes, value & WORD, np.uint64))
        known = self._known.get(id(value))
        if known is None:
            self._depth += 1
            numbers = self._of_data(value) if isinstance(value, Data) else self._of_lanes(value)
            self._depth -= 1
            known = self._known[id(value)] = (value, numbers)
        return known[1]

    def _word(self, key: object) -> int:
        return self._words.setdefault(key, len(self._words))

    def _each(self, key: object, *parts: Lanes | Hashes) -> Lanes:
        """What is made of ``parts`` by what ``key`` names, lane by lane."""
        lanes = len(parts[0])
        made = mixed(np.zeros(lanes, np.uint64), np.full(lanes, self._word(key)))
        for part in parts:
            made = mixed(made, part)
        return made.astype(np.int64)

    def _of_lanes(self, value: Lanes) -> Lanes:
        if value.ndim > 1 and value.size > value.shape[-1]:
            return self._of_rounds(value)
        return self._each("integer", np.broadcast_to(np.reshape(value, -1), (self.lanes,)))

    def _of_rounds(self, value: Lanes) -> Lanes:
        """Lanes that have the same in each round have the same in one."""
        rounds = value.size // value.shape[-1]
        rows: Lanes = np.broadcast_to(np.reshape(value, (rounds, -1)), (rounds, self.lanes))
        return self._each(("rounds", id(value)), *rows)

    def _of_data(self, value: Data) -> Lanes:
        if value.spread is Spread.GRID:
            return self._each(("data", value.serial), np.zeros(self.lanes, np.int64))
        made = self._made(value) if value.made is not None and self._depth <= DEEPEST else None
        if made is not None:
            return made
        return self._each(("data", value.serial), self._groups(value.spread))

    def _groups(self, spread: Spread) -> Lanes:
        """The number of the block, of the warp or of the thread that has one value to itself."""
        lanes = np.arange(self.lanes)
        if spread is Spread.WARP:
            return lanes // self.threads * self.threads + lanes % self.threads // WARP_SIZE
        return lanes // self.threads if spread is Spread.BLOCK else lanes

    def _made(self, value: Data) -> Lanes | None:
        assert value.made is not None
        name, operands = value.made
        row = EXCHANGES.get(name) if isinstance(name, str) else None
        if row is not None:
            return self._exchanged(row, operands)
        if name == TILE_REDUCTION:
            size = operands[1]
            return self._by_tiles(name, operands[0], size) if isinstance(size, int) else None
        if name == ONE_OF and isinstance(operands[0], np.ndarray) and operands[0].ndim == 1:
            return np.where(operands[0].astype(bool), self.of(operands[1]), self.of(operands[2]))
        parts = [self.of(operand) for operand in operands]
        words = cast("tuple[object, ...]", name) if isinstance(name, tuple) else (None,)
        if words[-1] is Space.SHARED:
            parts.append(np.arange(self.lanes) // self.threads)  # each block has its own
        if is_commutative(words, len(parts)):
            parts = [np.minimum(*parts), np.maximum(*parts)]
        return self._each(value.made[0], *parts)

    def _by_tiles(self, name: object, value: Scalar, size: int) -> Lanes | None:
        """A result for each tile, one where its lanes offer the same; None: the last tile is not whole."""
        if self.threads % size:
            return None
        offered = np.reshape(self.of(value), (-1, size))
        return np.repeat(self._each(name, *np.transpose(offered)), size)

    def _exchanged(self, row: Exchange, operands: tuple[Scalar, ...]) -> Lanes | None:
        """What lanes get of one another, all of them taking part; None: not all do."""
        mask = operands[0] if row.masked else None
        if not isinstance(mask, int) or mask != FULL_WARP or self.threads % WARP_SIZE:
            return None
        if row.offered is None:
            return None
        if row.reach is Reach.WARP:
            return self._by_tiles(row.name, operands[row.offered], WARP_SIZE)
        if row.source is None:
            return None
        by, *rest = operands[row.offered + 1 :]
        width = rest[0] if rest else WARP_SIZE
        if isinstance(by, Data) or not isinstance(width, int):
            return None
        lane = np.arange(self.lanes) % WARP_SIZE
        source = source_lane(row, lane, np.asarray(by).astype(np.int64), width)
        if source is None or np.ndim(by) > 1:
            return None
        return self.of(operands[row.offered])[np.arange(self.lanes) - lane + source]
