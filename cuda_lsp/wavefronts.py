"""How many passes ("wavefronts") one shared-memory instruction of a warp costs.

The rule reproduces hardware counters read with Nsight Compute on an H200 (``docs/semantics.md``): a
warp is split into parts of 128 bytes; in each part a bank serves one distinct 4-byte word a wavefront;
loads of 8 or 16 bytes whose lane pairs agree merge neighbouring parts.  Pure arithmetic on addresses,
used by both analyses.  What an atomic adds on top (lanes that update one address) is not counted here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Ints = NDArray[Any]  # int64
Bools = NDArray[Any]  # bool

_MORE = 4096
"""Than the wavefronts of any instruction of a warp."""


@frozen
class WarpWavefronts:
    """One row per warp instruction.

    ``wavefronts``, ``ideal`` (parts that have an active lane) and ``ways`` (worst number of distinct
    words of one bank in one part): ``(warps,)``. ``histogram``: distinct words per bank, summed over
    parts, ``(warps, banks)``.
    """

    wavefronts: Ints
    ideal: Ints
    ways: Ints
    histogram: Ints

    @property
    def dearest(self) -> int:
        """The row with the most wavefronts beyond the ideal; of several, the one with the most of all."""
        return int(np.argmax((self.wavefronts - self.ideal) * _MORE + self.wavefronts))


def instruction_bytes(size: int) -> int:
    """The bytes that one instruction moves of an access: three words (``float3``) take three instructions."""
    return size & -size


def warp_wavefronts(
    addresses: Ints, active: Bools, size: int, *, load: bool, banks: int = 32, bank_bytes: int = 4
) -> WarpWavefronts:
    """Wavefronts of warp instructions that access ``size`` bytes a lane.

    ``addresses``: byte addresses in shared memory, ``(warps, lanes)``; ``active``: same shape. ``banks``
    16 makes half-warps the unit (compute capability 1.x).
    """
    warps, lanes = addresses.shape
    parts = max(lanes // banks, lanes * size // (banks * bank_bytes), 1)
    part = _part_of_lane(addresses, active, size, parts, load)
    words_per_lane = max(1, size // bank_bytes)
    word: Ints = addresses[:, :, None] // bank_bytes + _count(words_per_lane)
    rows: Ints = _count(warps)[:, None] * parts + part
    row: Ints = np.broadcast_to(rows[:, :, None], word.shape)
    live: Bools = np.broadcast_to(active[:, :, None], word.shape)
    span = int(word.max(initial=0)) + 1
    # Sorting beats hashing on the few thousand words of a site.
    words: Ints = np.sort((row * span + word)[live])
    distinct: Ints = words[np.diff(words, prepend=-1) != 0]
    slot = distinct // span * banks + distinct % span % banks
    flat: Any = np.bincount(slot, minlength=warps * parts * banks)
    counts: Ints = flat.reshape(warps, parts, banks)
    worst = counts.max(axis=2)
    return WarpWavefronts(
        wavefronts=worst.sum(axis=1),
        ideal=(worst > 0).sum(axis=1),
        ways=worst.max(axis=1),
        histogram=counts.sum(axis=1),
    )


def _part_of_lane(addresses: Ints, active: Bools, size: int, parts: int, load: bool) -> Ints:
    """Which part of its warp each lane belongs to, ``(warps, lanes)``."""
    warps, lanes = addresses.shape
    lane: Ints = np.broadcast_to(_count(lanes) * parts // lanes, (warps, lanes))
    if not load or size < 8 or parts < 2:
        return lane
    by_pair: tuple[Any, Any] = (addresses, active)  # NumPy's stubs leave reshaped arrays unknown
    pairs, both = (array.reshape(warps, lanes // 2, 2) for array in by_pair)
    both = both.all(axis=2)
    merges: Any = (~both | (pairs[:, :, 0] == pairs[:, :, 1])).all(axis=1)
    merged: Ints = np.where(merges[:, None], lane // 2, lane)
    return merged


def _count(n: int) -> Ints:
    """0 … n - 1."""
    numbers: Any = np.arange(n)
    return numbers


@frozen
class Touch:
    """A word that a lane touches, in a part of the warp and in one of that part's wavefronts (from 0)."""

    lane: int
    bank: int
    word: int
    part: int
    wavefront: int


@frozen
class WarpPicture:
    """One instruction of one warp, word by word, for people. ``access``: as the source writes it."""

    access: str
    line: int
    warp: int
    banks: int
    lanes: int
    wavefronts: int
    ideal: int
    touches: tuple[Touch, ...]


def touched_words(
    addresses: Ints, active: Bools, size: int, *, load: bool, banks: int = 32, bank_bytes: int = 4
) -> tuple[Touch, ...]:
    """The words of one warp instruction; arguments as of ``warp_wavefronts``, of one row: ``(1, lanes)``.

    A bank serves the distinct words of a part one after the other, here in ascending order.
    """
    lanes = addresses.shape[1]
    parts = max(lanes // banks, lanes * size // (banks * bank_bytes), 1)
    part = _part_of_lane(addresses, active, size, parts, load)[0]
    words = max(1, size // bank_bytes)
    found = [
        (int(part[lane]), int(addresses[0, lane]) // bank_bytes + k, lane)
        for lane in range(lanes)
        if active[0, lane]
        for k in range(words)
    ]
    served: dict[tuple[int, int], list[int]] = {}
    for of, word in sorted({(of, word) for of, word, _ in found}):
        served.setdefault((of, word % banks), []).append(word)
    return tuple(
        Touch(lane, word % banks, word, of, served[of, word % banks].index(word)) for of, word, lane in found
    )


def sharing(touches: tuple[Touch, ...]) -> tuple[Touch, Touch] | None:
    """Two lanes that come for different words of one bank, in the busiest bank, the nearest words."""
    busiest = max(touches, key=lambda touch: touch.wavefront, default=None)
    if busiest is None or not busiest.wavefront:
        return None
    served = [t for t in touches if (t.part, t.bank) == (busiest.part, busiest.bank)]
    first, second = (next(t for t in served if t.wavefront == turn) for turn in (0, 1))
    return (first, second) if first.lane < second.lane else (second, first)
