"""How large the buffers of a run have to be: an execution under its launch and scalars tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Array, Kernel
from cuda_lsp.model import LaunchConfig, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Budget, Trace, array_bytes, spread_out
from cuda_lsp.static.execution.values import Data

_BUDGET = Budget(milliseconds=budgets.SIZING_MS)
_ALIGNED = 16  # bytes; the size of dynamic shared memory is a multiple


def buffer_bytes(
    kernel: Kernel, launch: LaunchConfig, arguments: Mapping[str, int], gpu: GpuModel
) -> dict[str, int]:
    """Bytes that accesses of the first and last block reach, by pointer parameter. The grid is known."""
    x, y, z = launch.grid or (1, 1, 1)
    blocks = tuple(dict.fromkeys([(0, 0, 0), (x - 1, y - 1, z - 1)]))
    needed: dict[str, int] = {}
    for array, end in _ends(execute(kernel, launch, arguments, gpu, _BUDGET, blocks=blocks)):
        if array.param is not None:
            needed[array.param.name] = max(end, needed.get(array.param.name, 0))
    return needed


def spare_shared(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel) -> int:
    """Bytes for dynamic shared memory whose size nothing tells: what every launch may have; 0: it is told."""
    arrays = [array for array in kernel.arrays if array.space is Space.SHARED]
    if launch.dynamic_shared is not None or not any(array.dynamic for array in arrays):
        return 0
    static = sum(array_bytes(array, launch) or 0 for array in arrays if not array.dynamic)
    return max(0, gpu.max_static_shared - static) // _ALIGNED * _ALIGNED


def _ends(trace: Trace) -> Iterator[tuple[Array, int]]:
    for path in trace.paths:
        for access in path.accesses:
            yield access.array, _end(access.offset, access.size, access.may)
        for load, array, offset, flags in path.reads.values():
            yield array, _end(offset, load.type.size, flags)


def _end(offset: Any, size: int, lanes: Any) -> int:
    """The byte behind the furthest one of an access; 0: not known."""
    if isinstance(offset, Data):
        offset = offset.high
    if offset is None:
        return 0
    flags = np.asarray(lanes)
    reached = spread_out(offset, flags.shape)
    reached = reached[np.broadcast_to(flags, reached.shape)]
    return int(reached.max()) + size if reached.size else 0
