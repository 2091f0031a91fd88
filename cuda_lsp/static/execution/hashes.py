"""Hashes of 64 bits, of all lanes at once. Two values that differ have one hash once in 2^64.

As exact numbers, of a table of what was seen, a product of matrices took a hundred times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.unsignedinteger[Any]]
WORD = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


def mixed(before: Hashes, part: npt.NDArray[Any]) -> Hashes:
    """Hashes and one more word of each lane (the generator of Steele, Lea and Flood, 2014, is its own hash).

    One word into one hash before is a bijection: what differs in one word only differs.
    """
    mixed: Hashes = (before ^ part.astype(np.uint64)) + _GOLDEN
    for shift, factor in _STEPS:
        mixed = (mixed ^ (mixed >> shift)) * factor
    return mixed ^ (mixed >> np.uint64(31))
