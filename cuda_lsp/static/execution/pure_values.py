"""Numbers of values that are functions of what no round of a loop changes: two tiles that overlap store one.

Of memory that nobody writes, of arguments, constants and known integers, and of what is computed from these
alone. Equal numbers are equal values whichever the rounds, the threads and the blocks; of everything else
(what lanes exchange, shared memory, what loops add up) nothing is said here (``equal_values``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from attrs import define, field

from cuda_lsp.ir.exchanges import EXCHANGES, TILE_REDUCTION
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.model import Space
from cuda_lsp.static.execution.hashes import WORD, Hashes, mixed
from cuda_lsp.static.execution.values import ONE_OF, Data, Lanes, Scalar

DEEPEST = 128  # computations within one another; what stands deeper is taken to differ
COMMUTATIVE = frozenset(
    {BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BAND, BinaryOp.BOR, BinaryOp.BXOR}
)
Shape = tuple[int, ...]


def is_commutative(words: tuple[object, ...], parts: int) -> bool:
    """Whether what ``words`` name gives the same of two operands in either order."""
    return words[0] in COMMUTATIVE and parts == 2


@define
class PureValues:
    """The numbers of such values, ``(*rounds, lanes)``; ``word``: a number of each name of a function."""

    word: Callable[[object], int]
    _known: dict[tuple[int, Shape], tuple[Scalar, Hashes | None]] = field(
        factory=dict[tuple[int, Shape], "tuple[Scalar, Hashes | None]"]
    )
    _depth: int = 0

    def of(self, value: Scalar, shape: Shape) -> Hashes | None:
        """The number in every round and lane of ``shape``; None: it may change between rounds."""
        if isinstance(value, int):
            return self._each(("integer",), shape, np.full(shape, value & WORD, np.uint64))
        known = self._known.get((id(value), shape))
        if known is None:
            self._depth += 1
            numbers = self._of_data(value, shape) if isinstance(value, Data) else self._of_lanes(value, shape)
            self._depth -= 1
            known = self._known[id(value), shape] = (value, numbers)
        return known[1]

    def _each(self, words: tuple[object, ...], shape: Shape, *parts: Hashes | Lanes) -> Hashes:
        made = mixed(np.zeros(shape, np.uint64), np.full(shape, self.word(words)))
        for part in parts:
            made = mixed(made, part)
        return made

    def _of_lanes(self, value: Lanes, shape: Shape) -> Hashes | None:
        if np.broadcast_shapes(value.shape, shape) != shape:
            return None  # of more rounds than are asked for
        return self._each(("integer",), shape, np.broadcast_to(value.astype(np.int64), shape))

    def _of_data(self, value: Data, shape: Shape) -> Hashes | None:
        if value.made is None or self._depth > DEEPEST:
            return None
        name, operands = value.made
        if name in EXCHANGES or name == TILE_REDUCTION:
            return None
        words: tuple[object, ...] = cast("tuple[object, ...]", name) if isinstance(name, tuple) else (name,)
        if words[-1] is Space.SHARED:
            return None
        if name == ONE_OF and isinstance(operands[0], np.ndarray):
            return self._one_of(operands[0], operands[1:], shape)
        parts = [self.of(operand, shape) for operand in operands]
        told = [part for part in parts if part is not None]
        if len(told) < len(parts):
            return None
        if is_commutative(words, len(told)):
            told = [np.minimum(*told), np.maximum(*told)]
        return self._each(words, shape, *told)

    def _one_of(self, chooses: Lanes, values: tuple[Scalar, ...], shape: Shape) -> Hashes | None:
        one, other = (self.of(value, shape) for value in values)
        if one is None or other is None or np.broadcast_shapes(chooses.shape, shape) != shape:
            return None
        return np.where(chooses.astype(bool), one, other)
