"""Which blocks of a launch are checked when not all are."""

from __future__ import annotations

from cuda_lsp.model import Dim3

_EMULATED_THREADS = 2048  # of one run on the CPU
_GPU_BLOCKS = 132


def first_and_last_blocks(grid: Dim3, threads: int) -> tuple[int, ...] | None:
    """For the emulator: the first, their neighbours, the last and one in the middle; None: all.

    ``threads``: of a block.
    """
    x, y, z = grid
    total = x * y * z
    room = max(2, _EMULATED_THREADS // threads)
    if total <= room:
        return None
    wanted = [0, 1, x, x * y, total - 1, total // 2, *range(2, room)]
    return tuple(sorted({b for b in wanted[: max(room, 4)] if b < total}))


def spread_blocks(total: int) -> tuple[int, ...] | None:
    """For a GPU: about one block for each multiprocessor of a large one; None: all."""
    return None if total <= _GPU_BLOCKS else tuple(range(0, total, total // _GPU_BLOCKS))
