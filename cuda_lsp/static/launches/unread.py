"""Launches of the source whose block nobody reads, of a kernel that counts on one.

``blockIdx.x * 128 + threadIdx.x`` is free of races in blocks of 128, and these are what is assumed where no
launch tells. Where one stands in the source (``k<<<64, config.threads()>>>``) it may make larger ones; and
where one launch tells its block, another one may have it from sizes (``k<<<64, n>>>``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import evolve

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import MAX_BLOCK_THREADS, Dim3, LaunchConfig, Site
from cuda_lsp.static.findings.steps import TELL_THE_LAUNCH
from cuda_lsp.static.launches.asserted import asserted_extents
from cuda_lsp.static.launches.coordinates import BLOCK_EXTENTS, THREAD_AXES
from cuda_lsp.static.launches.strides import block_strides


def unread_blocks(
    kernel: Kernel, launch: LaunchConfig, races: Callable[[LaunchConfig], bool]
) -> tuple[str, ...]:
    """Why what ``launch`` shows is not the whole truth, for people; none where it is.

    ``races``: whether threads may race under another launch.
    """
    for other in kernel.by_sizes:
        if other.site is not None and races(other):
            place = _where(kernel, other.site)
            return (f"the block of the launch {place} is not known, and some may race; {TELL_THE_LAUNCH}",)
    if kernel.unread is None:
        return ()
    larger = [evolve(launch, block=block) for block in _larger(kernel, launch)]
    if not any(map(races, larger)):
        return ()
    return (
        f"the block of the launch {_where(kernel, kernel.unread)} is not known, and larger ones may race;"
        f" {TELL_THE_LAUNCH}",
    )


def _where(kernel: Kernel, site: Site) -> str:
    path = site.range.path
    return f"on line {site.range.start.line}" + (f" of {path.name}" if path != kernel.range.path else "")


def _larger(kernel: Kernel, launch: LaunchConfig) -> list[Dim3]:
    """Blocks of twice as many threads as the kernel counts on, along each axis that no launch tells."""
    found: list[Dim3] = []
    counted, asserted = block_strides(kernel), asserted_extents(kernel)
    most = kernel.bounds.max_threads if kernel.bounds else MAX_BLOCK_THREADS
    for position, axis in enumerate(THREAD_AXES):
        if axis not in counted or BLOCK_EXTENTS[position] in asserted:
            continue
        x, y, z = (2 * counted[axis] if i == position else n for i, n in enumerate(launch.block))
        if math.prod((x, y, z)) <= most:
            found.append((x, y, z))
    return found
