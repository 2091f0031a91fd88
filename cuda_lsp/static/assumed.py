"""Which launches and arguments a kernel is analysed under (``docs/semantics.md``, order of sources).

Command line or settings, then directive and launch sites (already in ``Kernel.launches``, best first),
then ``__launch_bounds__`` and other hints, then the configured default. Scalars that no launch fixes
are sampled for the first tier; the solver treats them as free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.types import Int
from cuda_lsp.model import LaunchConfig, LaunchSource

MAX_LAUNCHES = 2


def launches_of(kernel: Kernel, settings: Settings) -> tuple[LaunchConfig, ...]:
    """The launches to analyse, the one to show first; never empty."""
    known = kernel.launches
    if settings.block_dim:
        arguments = known[0].arguments if known else kernel.directives.arguments
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
                (kernel.bounds.max_threads, 1, 1),
                settings.grid_dim,
                source=LaunchSource.BOUNDS,
                arguments=kernel.directives.arguments,
            ),
        )
    block = _default_block(kernel, settings)
    return (LaunchConfig(block, settings.grid_dim, arguments=kernel.directives.arguments),)


def _default_block(kernel: Kernel, settings: Settings) -> tuple[int, int, int]:
    """The default, folded into two dimensions for a kernel that uses threadIdx.y."""
    x, y, z = settings.default_block
    axes = kernel.required
    if (y, z) == (1, 1) and axes.get("dimensions", 1) >= 2 and x % 16 == 0:
        return (16, x // 16, 1)
    return (x, y, z)


def free_scalars(kernel: Kernel, launch: LaunchConfig) -> tuple[str, ...]:
    """Integer parameters that the launch leaves open."""
    return tuple(
        p.name for p in kernel.params if isinstance(p.type, Int) and p.name and p.name not in launch.arguments
    )


def samples(kernel: Kernel, launch: LaunchConfig) -> Iterator[Mapping[str, int]]:
    """Values for the free scalars: round and large, odd and smaller than the block, one.

    Each scalar of a sample has another value, so that no accidental equality hides or makes a race.
    """
    free = free_scalars(kernel, launch)
    if not free:
        return
    threads = launch.threads
    for base, step in ((2 * threads, 64), (max(3, threads // 2 + 5), 2), (1, 0)):
        yield {**launch.arguments, **{name: base + i * step for i, name in enumerate(free)}}
