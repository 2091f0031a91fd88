"""Kernels that kernels launch: what the device's runtime is asked for, kept until the asking one has ended.

Source: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", and ``cuda_device_runtime_api.h``. A kernel
gets a buffer for the arguments of another, fills it and launches it. No kernel can wait for one that it
launched, so that all of them may run behind it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.emulator.accesses import Accesses
from cuda_lsp.dynamic.ptx.flatten import function_address, parameters_of
from cuda_lsp.dynamic.runs import DeviceLaunch
from cuda_lsp.model import Dim3

Array = Any
Mask = Any

_DONE, _INVALID_FUNCTION, _OUT_OF_MEMORY = 0, 98, 2  # cudaError_t


@frozen
class _Prepared:
    """A launch whose arguments are being written."""

    entry: str
    grid: Dim3
    block: Dim3
    shared: int


@define(eq=False, slots=False)
class DeviceLaunches:
    """Of one launch. ``follows``: somebody runs what it launches; else ``left_out`` names that."""

    accesses: Accesses
    follows: bool = False
    made: list[DeviceLaunch] = field(factory=list[DeviceLaunch])
    left_out: dict[str, None] = field(factory=dict[str, None])
    prepared: dict[int, _Prepared] = field(factory=dict[int, _Prepared])

    @cached_property
    def _kernels(self) -> Mapping[int, str]:
        return {function_address(name): name for name in self.accesses.program.module.entries}

    def buffer(self, kernel: Array, grid: tuple[Array, ...], block: tuple[Array, ...], shared: Array,
               mask: Mask) -> Array:  # fmt: skip
        """The address of each thread's buffer for arguments, u64; 0: there will be no launch."""
        given = [self._spread(value) for value in (kernel, *grid, *block, shared)]
        found = np.zeros(self.accesses.threads, np.uint64)
        for lane in self._lanes(mask):
            address, *sizes = (int(value[lane]) for value in given)
            entry = self._kernels.get(address)
            if entry is None or not self.follows:
                self.left_out[entry or "a kernel of another module"] = None
                continue
            places = parameters_of(self.accesses.program.module.entries[entry])[0]
            start = self.accesses.memory.allocate(max(1, *(at + size for at, size in places.values())))
            if start:
                extents = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
                self.prepared[start] = _Prepared(entry, *extents, sizes[6])
            found[lane] = start
        return found

    def launch(self, buffer: Array, mask: Mask) -> Array:
        """The launches whose arguments lie there; the runtime's error numbers, u32."""
        buffer, errors = self._spread(buffer), np.zeros(self.accesses.threads, np.uint32)
        memory = self.accesses.memory
        for lane in self._lanes(mask):
            start = int(buffer[lane])
            one = self.prepared.pop(start, None)
            if one is None:
                errors[lane] = _INVALID_FUNCTION if start else _OUT_OF_MEMORY
                continue
            places = parameters_of(self.accesses.program.module.entries[one.entry])[0]
            arguments = (
                memory.data[start + at : start + at + size].tobytes() for at, size in places.values()
            )
            self.made.append(DeviceLaunch(one.entry, one.grid, one.block, one.shared, b"".join(arguments)))
            memory.release(start)
        return errors

    def _lanes(self, mask: Mask) -> list[int]:
        return (np.arange(self.accesses.threads) if mask is None else np.flatnonzero(mask)).tolist()

    def _spread(self, value: Array) -> Array:
        return np.broadcast_to(np.asarray(value), (self.accesses.threads,))
