"""Which logged accesses race: two threads, one byte, a write, and no synchronisation between.

Definition: ``docs/semantics.md``. Order inside a block comes from the block's barriers, inside a warp
also from full-warp synchronisation; nothing orders two blocks. Judged from the log after the run, so a
lucky schedule hides nothing that was executed. Fences and partial warp masks are not understood here:
the caller says so (``Incomplete`` reasons), it never counts as order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.model import Mode

Array = np.ndarray[Any, Any]


@frozen
class RacingPair:
    """Two instructions (indices in their function) and one example. ``pairs`` counts (threads, byte) hits."""

    sites: tuple[int, int]
    modes: tuple[Mode, Mode]
    threads: tuple[int, int]  # linear over the launch, first site's thread first
    address: int
    pairs: int


@define
class AccessLog:
    """Per access: byte addresses, threads, barrier and warp ticks of those threads, all ``(lanes,)``."""

    entries: list[tuple[int, Mode, int, Array, Array, Array, Array]] = field(
        factory=list[tuple[int, Mode, int, Array, Array, Array, Array]]
    )

    def add(
        self, site: int, mode: Mode, size: int, address: Array, thread: Array, barrier: Array, warp: Array
    ) -> None:
        self.entries.append((site, mode, size, address, thread, barrier, warp))

    def races(self, threads_per_block: int, across_blocks: bool) -> tuple[RacingPair, ...]:
        """Every racing pair of instructions. ``across_blocks`` False leaves pairs of two blocks out."""
        if not self.entries:
            return ()
        columns = _contended(_columns(self.entries))
        found: dict[tuple[int, int], RacingPair] = {}
        lag = 1
        address = columns[0]
        while lag < len(address):
            near = np.flatnonzero(address[lag:] == address[:-lag])
            if not near.size:
                break
            _collect(columns, near, near + lag, threads_per_block, across_blocks, found)
            lag += 1
        return tuple(found[key] for key in sorted(found))


_MODES = (Mode.READ, Mode.WRITE, Mode.ATOMIC)


def _columns(entries: list[tuple[int, Mode, int, Array, Array, Array, Array]]) -> Array:
    """One column per accessed byte: address, thread, site, mode, barrier tick, warp tick."""
    blocks: list[Array] = []
    for site, mode, size, address, thread, barrier, warp in entries:
        for byte in range(size):
            fixed = np.full(len(address), site), np.full(len(address), _MODES.index(mode))
            blocks.append(np.stack([address + byte, thread, *fixed, barrier, warp]).astype(np.int64))
    return np.unique(np.concatenate(blocks, axis=1), axis=1)  # sorted by address


def _contended(columns: Array) -> Array:
    """Only bytes that some thread writes and more than one thread touches."""
    _, group = np.unique(columns[0], return_inverse=True)
    written = np.bincount(group, weights=columns[3] > 0) > 0
    low = np.full(len(written), np.iinfo(np.int64).max)
    high = np.full(len(written), -1)
    np.minimum.at(low, group, columns[1])
    np.maximum.at(high, group, columns[1])
    return columns[:, (written & (low != high))[group]]


def _collect(
    columns: Array,
    x: Array,
    y: Array,
    block: int,
    across: bool,
    found: dict[tuple[int, int], RacingPair],
) -> None:
    address, thread, site, mode, barrier, warp = columns
    same_block = thread[x] // block == thread[y] // block
    same_warp = same_block & (thread[x] % block // 32 == thread[y] % block // 32)
    ordered = (same_block & (barrier[x] != barrier[y])) | (same_warp & (warp[x] != warp[y]))
    clash = (mode[x] | mode[y] > 0) & ((mode[x] != 2) | (mode[y] != 2)) & (thread[x] != thread[y])
    hits = np.flatnonzero(clash & ~ordered & (same_block | across))
    for i in hits.tolist():
        a, b = int(x[i]), int(y[i])
        if site[a] > site[b]:
            a, b = b, a
        key = int(site[a]), int(site[b])
        known = found.get(key)
        found[key] = RacingPair(
            key,
            (_MODES[int(mode[a])], _MODES[int(mode[b])]),
            known.threads if known else (int(thread[a]), int(thread[b])),
            known.address if known else int(address[a]),
            (known.pairs if known else 0) + 1,
        )
