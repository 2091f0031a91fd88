"""Blocks that a kernel's own text is made for, and the shape of one that nothing tells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cuda_lsp.ir.program import Axis, Kernel
from cuda_lsp.model import MAX_BLOCK_THREADS, WARP_SIZE, Dim3, Space
from cuda_lsp.static.launches.coordinates import THREAD_AXES, axes_of, has_planes, rows_are_warps

_SIDES = (64, 32, 16, 8, 4)


def of_collectives(kernel: Kernel) -> Dim3 | None:
    """The block that a ``BlockReduce<T, 256>`` is made for, and no other."""
    x, y, z = (kernel.required.get(f"block_{axis}", 0) for axis in "xyz")
    return (x, y, z) if 0 < x * y * z <= MAX_BLOCK_THREADS else None


def of_template(kernel: Kernel) -> Dim3 | None:
    """The row of threads that a template argument names (``reduce<256>``)."""
    named = kernel.required.get("block")
    return (named, 1, 1) if named else None


def of_shared_arrays(kernel: Kernel) -> Dim3 | None:
    """What the extents of static shared arrays suggest: a tile's rows and columns, planes, a buffer's length.

    A column of padding is taken off (17 → 16, 33 → 32).
    """
    shapes = _shapes(kernel)
    if has_planes(kernel):
        return _cube(shapes, has_rows=Axis.TID_Y in axes_of(kernel))
    if Axis.TID_Y in axes_of(kernel):
        tiles = [(_side(shape[1]), _side(shape[0])) for shape in shapes if len(shape) == 2]
        fitting = [(x, y, 1) for x, y in tiles if x > 1 and y > 1 and x * y <= MAX_BLOCK_THREADS]
        return min(fitting, key=lambda block: block[0] * block[1], default=None)
    rows = [n for n in lengths(kernel) if 2 * WARP_SIZE <= n <= MAX_BLOCK_THREADS and n % WARP_SIZE == 0]
    return (max(rows), 1, 1) if rows else None


def _cube(shapes: Sequence[tuple[int, ...]], *, has_rows: bool) -> Dim3 | None:
    """The block of which an array has an element for each thread, plane by plane."""
    least = 3 if has_rows else 2
    cubes = [(_side(shape[-1]), _side(shape[-2]), _side(shape[0])) for shape in shapes if len(shape) >= least]
    fitting = [(x, y if has_rows else 1, z) for x, y, z in cubes if x > 1 and z > 1]
    return next((block for block in fitting if math.prod(block) <= MAX_BLOCK_THREADS), None)


def lengths(kernel: Kernel) -> Sequence[int]:
    """The extents of static shared arrays of one dimension."""
    return [shape[0] for shape in _shapes(kernel) if len(shape) == 1]


def _shapes(kernel: Kernel) -> Sequence[tuple[int, ...]]:
    static = (a for a in kernel.arrays if a.space is Space.SHARED and not a.dynamic)
    return [tuple(n or 0 for n in array.shape) for array in static]


def capped(block: Dim3, strides: Mapping[Axis, int]) -> Dim3:
    """The block, no larger than the kernel counts on."""
    x, y, z = (min(n, strides.get(axis, n)) for n, axis in zip(block, THREAD_AXES, strict=True))
    return (x, y, z)


def folded(kernel: Kernel, block: Dim3) -> Dim3:
    """A row of threads, in the dimensions that a kernel uses."""
    x, y, z = block
    if (y, z) == (1, 1) and x % 64 == 0 and x > 64 and has_planes(kernel):
        return (8, 8, x // 64) if Axis.TID_Y in axes_of(kernel) else (x // 4, 1, 4)
    if (y, z) == (1, 1) and x % 16 == 0 and Axis.TID_Y in axes_of(kernel):
        wide = x % WARP_SIZE == 0 and rows_are_warps(kernel)
        return (WARP_SIZE, x // WARP_SIZE, 1) if wide else (16, x // 16, 1)
    return block


def _side(extent: int) -> int:
    """The largest usual block side within an array's extent, halo or padding left over."""
    return next((side for side in _SIDES if side <= extent), 1)
