"""Launches as plausible as an assumed one, and smaller ones in its stead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attrs import evolve

from cuda_lsp.ir.program import Axis, Barrier, Builtin, Kernel
from cuda_lsp.ir.walk import expressions, subexpressions, walk
from cuda_lsp.model import MAX_BLOCK_THREADS, WARP_SIZE, Dim3, LaunchConfig
from cuda_lsp.static.launches import blocks
from cuda_lsp.static.launches.arguments import free_scalars
from cuda_lsp.static.launches.asserted import asserted_extents, with_extents
from cuda_lsp.static.launches.candidates import passing_extents
from cuda_lsp.static.launches.coordinates import THREAD_AXES, axes_of, rows_are_warps
from cuda_lsp.static.launches.strides import block_strides

_FLAT: tuple[Dim3, ...] = ((64, 1, 1), (32, 1, 1), (128, 1, 1), (256, 1, 1), (512, 1, 1))
_TILES: tuple[Dim3, ...] = ((8, 8, 1), (32, 8, 1), (256, 1, 1), (64, 2, 1), (128, 4, 1), (32, 32, 1))
_OF_THREADS = frozenset({*THREAD_AXES, Axis.LANE})
_ROWS_OF_WARPS: tuple[Dim3, ...] = ((32, 4, 1), (32, 8, 1), (32, 1, 1), (32, 2, 1), (32, 32, 1))


def alternatives(kernel: Kernel, launch: LaunchConfig) -> tuple[LaunchConfig, ...]:
    """Other launches as plausible as an assumed one: what holds under all of them is not its fault."""
    if _is_named(kernel, launch.block):
        return ()
    others = [block for block in _others(kernel, launch.block) if block != launch.block]
    asserted = asserted_extents(kernel)
    if asserted:
        fitting = (with_extents(block, asserted, axes_of(kernel)) for block in others)
        others = [b for b in fitting if b != launch.block and math.prod(b) <= MAX_BLOCK_THREADS]
    return _launched(kernel, launch, others)


def with_sizes_of_blocks(
    kernel: Kernel, launch: LaunchConfig, sizes: Iterable[str]
) -> tuple[LaunchConfig, ...]:
    """The launch with each of these sizes as if its block were made for it: a thread an element, or two."""
    free = set(free_scalars(kernel, launch)) - kernel.enumerated.keys()
    names = [name for name in sorted(sizes) if name in free]
    return tuple(
        evolve(launch, arguments={**launch.arguments, name: elements * launch.block[0]})
        for name in names
        for elements in (1, 2)
    )


def smaller(kernel: Kernel, launch: LaunchConfig) -> tuple[LaunchConfig, ...]:
    """Assumed launches with smaller blocks, the likeliest first; none where the kernel names its block.

    Not by a shared array and its indices: threads that leave the array take several of its elements each.
    """
    if asserted_extents(kernel) or launch.block in _named(kernel):
        return ()
    x, y, z = launch.block
    flat, tall = ((x // 2, 1, z), (x // 4, 1, z)), ((x, y // 2, z), (x, y // 4, z), (x // 2, y // 2, z))
    worth = [block for block in (tall if y > 1 else flat) if math.prod(block) >= WARP_SIZE]
    return _launched(kernel, launch, worth)


def _launched(kernel: Kernel, launch: LaunchConfig, others: Sequence[Dim3]) -> tuple[LaunchConfig, ...]:
    return tuple(passing_extents(kernel, evolve(launch, block=block)) for block in dict.fromkeys(others))


def _is_named(kernel: Kernel, block: Dim3) -> bool:
    """Template arguments or block-wide collectives name the block, or both shared arrays and indices do.

    ``s[256]`` and ``blockIdx.x * 256 + threadIdx.x``.
    """
    strides = block_strides(kernel)
    counted = tuple(strides.get(axis, 1) for axis in THREAD_AXES)
    return block in _named(kernel) or block == counted == blocks.of_shared_arrays(kernel)


def _named(kernel: Kernel) -> Sequence[Dim3 | None]:
    """The blocks that template arguments or collectives name."""
    return blocks.of_collectives(kernel), blocks.of_template(kernel)


def _has_threads(kernel: Kernel) -> bool:
    """It tells threads apart, or has them wait for one another; else it may be meant for one alone."""
    parts = subexpressions(expressions(kernel.body))
    waits = any(isinstance(s, Barrier) for s in walk(kernel.body))
    return waits or any(isinstance(e, Builtin) and e.axis in _OF_THREADS for e in parts)


def _others(kernel: Kernel, block: Dim3) -> Sequence[Dim3]:
    x, y, z = block
    if not _has_threads(kernel):
        return [(1, 1, 1), *_FLAT]
    if z > 1 and Axis.TID_Z not in axes_of(kernel):
        return [(x, y, 1)]
    if z > 1:
        depths = (1, z // 2, 2 * z)
        return [(x, y, depth) for depth in dict.fromkeys(depths) if depth <= MAX_BLOCK_THREADS // (x * y)]
    usual = _FLAT if y == 1 else _ROWS_OF_WARPS if rows_are_warps(kernel) else _TILES
    extents = [half for n in blocks.lengths(kernel) for half in (n, n // 2)] if y == 1 else []
    buffers = ((n, 1, 1) for n in extents if WARP_SIZE <= n <= MAX_BLOCK_THREADS)
    return (blocks.capped(block, block_strides(kernel)), *usual, *buffers)
