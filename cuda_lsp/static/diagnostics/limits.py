"""Launches that the target refuses: block extents, threads, shared memory (``launch-limit``)."""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.hardware import DEFAULT_ARCH, MOST_SHARED, GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, LaunchConfig, Site, Space, Status
from cuda_lsp.static.execution.trace import array_bytes
from cuda_lsp.static.findings.diagnosis import Diagnosis


def limit_findings(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel) -> tuple[Diagnosis, ...]:
    """What of ``launch`` is over a limit of ``gpu``; assumed launches are never blamed on the source."""
    if launch.assumed:
        return ()
    site = launch.site or Site(kernel.name_range or kernel.range, kernel.name)
    return tuple(
        Diagnosis(Code.LAUNCH_LIMIT, status, message, kernel.name, site, launch=launch)
        for status, message in (
            *((Status.PROVED, message) for message in _violations(kernel, launch, gpu)),
            *_too_much_shared(kernel, launch, gpu),
        )
    )


def _violations(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel) -> Iterator[str]:
    if kernel.guessed and any(map(str.isdigit, kernel.name.partition("<")[2])):
        return  # the block may be made of numbers that nobody has chosen
    if launch.threads > gpu.max_threads_per_block:
        yield f"{launch.threads} threads in a block; {gpu.name} allows {gpu.max_threads_per_block}"
    for axis, extent, limit in zip("xyz", launch.block, gpu.max_block_dim, strict=True):
        if extent > limit:
            yield f"blockDim.{axis} is {extent}; {gpu.name} allows {limit}"
    for axis, extent, limit in zip("xyz", launch.least_grid, gpu.max_grid_dim, strict=True):
        if extent > limit:
            yield f"gridDim.{axis} is {extent}; {gpu.name} allows {limit}"


def _too_much_shared(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel) -> Iterator[tuple[Status, str]]:
    """Bytes of shared memory beyond the target's, which may be none that anybody has chosen."""
    static = sum(
        array_bytes(array, launch) or 0
        for array in kernel.arrays
        if array.space is Space.SHARED and not array.dynamic
    )
    total = static + (launch.dynamic_shared or 0)
    if kernel.guessed:  # a program that nobody has written
        return
    if static > gpu.max_static_shared:
        message = f"{static} bytes of static shared memory; the limit is {gpu.max_static_shared}"
        yield Status.PROVED, message
    elif total > gpu.max_dynamic_shared:
        message = f"{total} bytes of shared memory in a block; {gpu.name} allows {gpu.max_dynamic_shared}"
        if gpu.name == DEFAULT_ARCH and total <= MOST_SHARED:
            yield Status.POSSIBLE, f"{message}: set `arch` to the target that it is built for"
        else:
            yield Status.PROVED, message
