"""Which launches and arguments a kernel is analysed under (``docs/semantics.md``, order of sources).

Command line or settings, then directive and launch sites (already in ``Kernel.launches``, best first),
then ``__launch_bounds__`` and other hints, then the configured default. Scalars that no launch fixes
are sampled for the first tier; the solver treats them as free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Axis, Binary, BinaryOp, Builtin, Const, Expr, Kernel
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import expressions, stripped, subexpressions
from cuda_lsp.model import Dim3, LaunchConfig, LaunchSource, Space
from cuda_lsp.static.asserted import THREAD_AXES, asserted_extents, with_extents
from cuda_lsp.static.block_strides import block_strides

MAX_LAUNCHES = 8
_USUAL = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
_LEAST = 32  # threads of a block worth assuming


def launches_of(kernel: Kernel, settings: Settings) -> tuple[LaunchConfig, ...]:
    """The launches to analyse, the one to show first; never empty."""
    return tuple(_with_extents(kernel, launch) for launch in _launches(kernel, settings))


def _with_extents(kernel: Kernel, launch: LaunchConfig) -> LaunchConfig:
    """The launch with the arguments by which every launch passes the block's extents."""
    if not kernel.extents:
        return launch
    passed = {name: launch.block[axis] for name, axis in kernel.extents.items()}
    return evolve(launch, arguments={**launch.arguments, **passed})


def _launches(kernel: Kernel, settings: Settings) -> tuple[LaunchConfig, ...]:
    known = kernel.launches
    grid = settings.grid_dim or kernel.grid
    if settings.block_dim:
        arguments = known[0].arguments if known else kernel.arguments
        shared = known[0].dynamic_shared if known else None
        return (
            LaunchConfig(settings.block_dim, settings.grid_dim, shared, LaunchSource.COMMAND_LINE, arguments),
        )
    if known:
        distinct = {(k.block, k.grid, k.dynamic_shared, tuple(sorted(k.arguments.items()))): k for k in known}
        chosen = list(distinct.values())[:MAX_LAUNCHES]
        return tuple(evolve(k, grid=settings.grid_dim) if settings.grid_dim else k for k in chosen)
    if kernel.bounds:
        return (
            LaunchConfig(
                _folded(kernel, (kernel.bounds.max_threads, 1, 1)),
                grid,
                source=LaunchSource.BOUNDS,
                arguments=kernel.arguments,
            ),
        )
    stated = block_of_collectives(kernel)
    if stated is not None:
        return (LaunchConfig(stated, grid, source=LaunchSource.BOUNDS, arguments=kernel.arguments),)
    asserted = asserted_extents(kernel)
    if asserted:
        block = _hinted_block(kernel) or _folded(kernel, settings.default_block)
        block = with_extents(block, asserted, axes_of(kernel))
        return (LaunchConfig(block, grid, source=LaunchSource.BOUNDS, arguments=kernel.arguments),)
    named = kernel.required.get("block")
    flat = not axes_of(kernel) & {Axis.TID_Y, Axis.TID_Z}
    hinted = (named, 1, 1) if named and flat else _hinted_block(kernel) or _counted_block(kernel, settings)
    source = LaunchSource.BOUNDS if hinted else LaunchSource.DEFAULT
    block = hinted or _folded(kernel, settings.default_block)
    return (LaunchConfig(block, grid, source=source, arguments=kernel.arguments),)


def alternatives(kernel: Kernel, launch: LaunchConfig) -> tuple[LaunchConfig, ...]:
    """Other launches as plausible as an assumed one: what holds under all of them is not its fault.

    None when the kernel's template arguments, or its block-wide collectives, name the block, or both its
    shared arrays and its indices do (``s[256]`` and ``blockIdx.x * 256 + threadIdx.x``).
    """
    if launch.block == block_of_collectives(kernel):
        return ()
    if launch.block == _hinted_block(kernel) == _strided_block(kernel):
        return ()
    if launch.block == (kernel.required.get("block"), 1, 1):
        return ()
    x, y, z = launch.block
    blocks: tuple[Dim3, ...] = ((8, 8, 1), (32, 8, 1), (32, 32, 1)) if y > 1 else ((64, 1, 1), (512, 1, 1))
    if y > 1 and _rows_are_warps(kernel):
        blocks = ((32, 4, 1), (32, 8, 1), (32, 32, 1))
    if z == 1:
        counted = _capped(launch.block, block_strides(kernel))
        others = [block for block in dict.fromkeys((counted, *blocks)) if block != launch.block]
    else:
        others = _of_depths(kernel, x, y, z)
    asserted = asserted_extents(kernel)
    if asserted:
        fitting = [with_extents(b, asserted, axes_of(kernel)) for b in others]
        others = [b for b in dict.fromkeys(fitting) if b != launch.block and math.prod(b) <= 1024]
    return tuple(_with_extents(kernel, evolve(launch, block=block)) for block in others)


def smaller(kernel: Kernel, launch: LaunchConfig) -> tuple[LaunchConfig, ...]:
    """Assumed launches with smaller blocks, the likeliest first; none where the kernel names its block."""
    if asserted_extents(kernel) or not alternatives(kernel, launch):
        return ()
    x, y, z = launch.block
    blocks = (
        [(x, y // 2, z), (x, y // 4, z), (x // 2, y // 2, z)] if y > 1 else [(x // 2, 1, z), (x // 4, 1, z)]
    )
    worth = [block for block in blocks if math.prod(block) >= _LEAST]
    return tuple(_with_extents(kernel, evolve(launch, block=block)) for block in worth)


def _of_depths(kernel: Kernel, x: int, y: int, z: int) -> list[Dim3]:
    """Blocks of other depths; flat ones only for a kernel that does not ask for ``threadIdx.z``."""
    if Axis.TID_Z not in axes_of(kernel):
        return [(x, y, 1)]
    return [(x, y, depth) for depth in (z // 2, 2 * z) if depth > 1 and x * y * depth <= 1024]


def block_of_collectives(kernel: Kernel) -> Dim3 | None:
    """The block that a ``BlockReduce<T, 256>`` is made for, and no other."""
    x, y, z = (kernel.required.get(f"block_{axis}", 0) for axis in "xyz")
    return (x, y, z) if 0 < x * y * z <= 1024 else None


def _hinted_block(kernel: Kernel) -> Dim3 | None:
    """What the extents of static shared arrays suggest: a tile's rows and columns, a buffer's length.

    A column of padding is taken off (17 → 16, 33 → 32).
    """
    shapes = [
        tuple(n or 0 for n in array.shape)
        for array in kernel.arrays
        if array.space is Space.SHARED and not array.dynamic
    ]
    if Axis.TID_Y in axes_of(kernel):
        tiles = [(_side(shape[1]), _side(shape[0])) for shape in shapes if len(shape) == 2]
        fitting = [(x, y, 1) for x, y in tiles if x > 1 and y > 1 and x * y <= 1024]
        return min(fitting, key=lambda block: block[0] * block[1], default=None)
    lengths = [
        shape[0] for shape in shapes if len(shape) == 1 and 64 <= shape[0] <= 1024 and shape[0] % 32 == 0
    ]
    return (max(lengths), 1, 1) if lengths else None


def _counted_block(kernel: Kernel, settings: Settings) -> Dim3 | None:
    """The default block, no larger than the kernel counts on, where that is an extent that blocks have."""
    strides = block_strides(kernel)
    usual = {axis: n for axis, n in strides.items() if n in _USUAL and (n >= _LEAST or len(strides) > 1)}
    return _capped(_folded(kernel, settings.default_block), usual) if usual else None


def _strided_block(kernel: Kernel) -> Dim3:
    """The block that indices count on, along every axis that they tell."""
    strides = block_strides(kernel)
    x, y, z = (strides.get(axis, 1) for axis in THREAD_AXES)
    return (x, y, z)


def _capped(block: Dim3, strides: Mapping[Axis, int]) -> Dim3:
    x, y, z = (min(n, strides.get(axis, n)) for n, axis in zip(block, THREAD_AXES, strict=True))
    return (x, y, z)


def _side(extent: int) -> int:
    """The largest usual block side within an array's extent, halo or padding left over."""
    return next((side for side in (64, 32, 16, 8, 4) if side <= extent), 1)


def _folded(kernel: Kernel, block: Dim3) -> Dim3:
    """A row of threads, in two dimensions for a kernel that uses threadIdx.y."""
    x, y, z = block
    if (y, z) == (1, 1) and x % 16 == 0 and Axis.TID_Y in axes_of(kernel):
        wide = x % 32 == 0 and _rows_are_warps(kernel)
        return (32, x // 32, 1) if wide else (16, x // 16, 1)
    return block


def _rows_are_warps(kernel: Kernel) -> bool:
    """Whether the kernel numbers its threads ``32 * threadIdx.y + threadIdx.x``."""
    return any(
        isinstance(e, Binary) and e.op is BinaryOp.MUL and _is_row_of_warp(e)
        for e in subexpressions(expressions(kernel.body))
    )


def _is_row_of_warp(product: Binary) -> bool:
    factors = [stripped(f) for f in (product.left, product.right)]
    return any(isinstance(f, Builtin) and f.axis is Axis.TID_Y for f in factors) and any(
        isinstance(f, Const) and f.value == 32 for f in factors
    )


_EXTENTS = (Axis.BDIM_X, Axis.BDIM_Y, Axis.GDIM_X, Axis.GDIM_Y)


def unlike(kernel: Kernel, launch: LaunchConfig) -> bool:
    """The kernel uses a thread coordinate that the launch does not have: it is meant for another one."""
    used = axes_of(kernel)
    return any(n == 1 and axis in used for n, axis in zip(launch.block, THREAD_AXES, strict=True))


@lru_cache(maxsize=4)  # as ``facts_of``
def axes_of(kernel: Kernel) -> frozenset[Axis]:
    """The built-in variables that a kernel reads, linear thread ranks (``y * blockDim.x``) left out.

    A rank is as good in one dimension as in two: it says nothing of the block's shape.
    """

    def enter(e: Expr) -> bool:
        return not (isinstance(e, Binary) and e.op is BinaryOp.MUL and _is_extent(e.left, e.right))

    parts = subexpressions(expressions(kernel.body), enter)
    return frozenset(e.axis for e in parts if isinstance(e, Builtin))


def _is_extent(*factors: Expr) -> bool:
    """Whether one factor is blockDim or gridDim, x or y."""
    return any(isinstance(f, Builtin) and f.axis in _EXTENTS for f in map(stripped, factors))


def free_scalars(kernel: Kernel, launch: LaunchConfig) -> tuple[str, ...]:
    """Integer parameters that the launch leaves open."""
    return tuple(
        p.name for p in kernel.params if isinstance(p.type, Int) and p.name and p.name not in launch.arguments
    )


def sample(kernel: Kernel, launch: LaunchConfig) -> Mapping[str, int] | None:
    """Natural values for the free scalars; None when there are none.

    Different powers of two beyond the block: extents cover all threads, pitches are wide enough, and no
    accidental equality hides or makes a race.
    """
    free = free_scalars(kernel, launch)
    if not free:
        return None
    base = 1 << (2 * launch.threads - 1).bit_length()
    return {**launch.arguments, **{name: base << min(i, 8) for i, name in enumerate(free)}}
