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

Ints = np.ndarray[Any, Any]  # int64
Bools = np.ndarray[Any, Any]  # bool


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
    word = addresses[:, :, None] // bank_bytes + np.arange(words_per_lane)
    row = np.arange(warps)[:, None] * parts + part
    row = np.broadcast_to(row[:, :, None], word.shape)
    live = np.broadcast_to(active[:, :, None], word.shape)
    span = int(word.max(initial=0)) + 1
    distinct = np.unique((row * span + word)[live])
    slot = distinct // span * banks + distinct % span % banks
    counts: Ints = np.bincount(slot, minlength=warps * parts * banks).reshape(warps, parts, banks)
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
    lane = np.broadcast_to(np.arange(lanes) * parts // lanes, (warps, lanes))
    if not load or size < 8 or parts < 2:
        return lane
    pairs = addresses.reshape(warps, lanes // 2, 2)
    both = active.reshape(warps, lanes // 2, 2).all(axis=2)
    merges = (~both | (pairs[:, :, 0] == pairs[:, :, 1])).all(axis=1)
    return np.where(merges[:, None], lane // 2, lane)
