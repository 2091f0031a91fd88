"""What a kernel sees of device memory: buffers of ours, a program's allocations, variables of the module.

Everything that one launch allocates is kept here by name, so that a launch that hung keeps it alive. Behind
every buffer lies a guard (``device_records.GUARD``): what overruns one buffer misses the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, SupportsInt

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.gpu import records
from cuda_lsp.dynamic.gpu.device import Code, Device
from cuda_lsp.dynamic.gpu.records import Extent
from cuda_lsp.dynamic.ptx.module import PtxModule, PtxVariable
from cuda_lsp.dynamic.runs import Argument, Buffer, Bytes

ANYTHING = Extent("memory", 0, (1 << 64) - 1)  # what a program may touch besides its known allocations


@frozen
class HostMemory:
    """A program's memory on the device: its allocations, and its modules' variables (start, bytes).

    ``pointers``: addresses of its functions, and of variables that hold some and are not copied.
    """

    allocations: tuple[Extent, ...] = ()
    variables: Mapping[str, tuple[int, int]] = field(factory=dict[str, tuple[int, int]])
    pointers: Mapping[str, int] = field(factory=dict[str, int])


@define
class DeviceMemory:
    """The memory of one launch. ``extents``: what the kernel may touch, by name."""

    device: Device
    module: PtxModule
    code: Code
    allocations: dict[str, SupportsInt] = field(factory=dict[str, SupportsInt])
    extents: list[Extent] = field(factory=list[Extent])
    placed: dict[int, tuple[Buffer, int]] = field(factory=dict[int, tuple[Buffer, int]])
    shadows: list[tuple[int, int]] = field(factory=list[tuple[int, int]])  # start, bytes

    def allocate(self, name: str, size: int, behind: int = 0) -> int:
        """Zeroed memory, and ``behind`` bytes that nobody uses."""
        memory = self.device.allocate(max(size, 16) + behind)
        self.device.clear(int(memory), max(size, 16))
        self.allocations[name] = memory
        return int(memory)

    def start(self, name: str) -> int:
        """The address of an allocation. Raises KeyError when nothing of that name was allocated."""
        return int(self.allocations[name])

    def download(self, name: str, dtype: Any, count: int) -> records.Records:
        """The first ``count`` records of an allocation, ``(count,)`` of a NumPy type."""
        result = np.empty(max(count, 1), dtype)
        self.device.download(int(self.allocations[name]), result)
        return result[:count]

    def place_buffers(self, arguments: Sequence[Argument]) -> None:
        """Upload what the arguments point to; a buffer that several share once."""
        for argument in arguments:
            for _, buffer in argument.pointers:
                if id(buffer) in self.placed:
                    continue
                size = len(buffer.data)
                start = self.allocate(f"buffer {len(self.placed)}", size, records.GUARD)
                if size:
                    self.device.upload(start, buffer.data)
                self.placed[id(buffer)] = buffer, start
                self.extents.append(Extent(buffer.name, start, start + size))

    def place_variables(self) -> None:
        """The module's global variables become places that the kernel may touch."""
        for variable in self.module.variables.values():
            if variable.space == "global" and variable.size and (found := self.code.variable(variable.name)):
                start, size = found
                self.extents.append(Extent(variable.name, start, start + size))

    def parameters(self, entry: str, arguments: Sequence[Argument]) -> list[tuple[int, bytes]]:
        """The kernel's parameters: alignment and value of each, addresses of buffers filled in."""
        values: list[tuple[int, bytes]] = []
        for parameter, argument in zip(self.module.functions[entry].params, arguments, strict=True):
            value = bytearray(argument.value)
            for offset, buffer in argument.pointers:
                value[offset : offset + 8] = argument.address(offset, self.placed[id(buffer)][1])
            values.append((parameter.alignment, bytes(value)))
        return values

    def results(self) -> dict[str, Bytes]:
        """What the buffers hold."""
        results: dict[str, Bytes] = {}
        for buffer, start in self.placed.values():
            data = np.empty(len(buffer.data), np.uint8)
            if len(data):
                self.device.download(start, data)
            results[buffer.name] = data
        return results

    def empty_shadows(self) -> None:
        """Zeros in all shadows: an earlier launch on the same memory is forgotten."""
        for start, size in self.shadows:
            self.device.clear(start, size)

    # ------------------------------------------------------------------------- memory of a program

    def take_over(self, host: HostMemory) -> int:
        """The program's memory: known allocations are watched, anything else is let be.

        Returns how many allocations there was no room to watch.
        """
        room = records.RANGES - len(self.extents) - 1
        self.extents.extend(host.allocations[:room])
        self.extents.append(ANYTHING)
        for _, copy, size, original in self._variable_pairs(host):
            self.device.copy(copy, original, size)
        return max(0, len(host.allocations) - room)

    def return_variables(self, host: HostMemory) -> None:
        """Copy what our module's variables hold to the program's."""
        for variable, copy, size, original in self._variable_pairs(host):
            if variable.space == "global":
                self.device.copy(original, copy, size)

    def _variable_pairs(self, host: HostMemory) -> Iterator[tuple[PtxVariable, int, int, int]]:
        """Variables of the module: our copy of them, bytes, the program's."""
        for variable in self.module.variables.values():
            if variable.space not in ("global", "const") or variable.name not in host.variables:
                continue
            original, size = host.variables[variable.name]
            if found := self.code.variable(variable.name):
                yield variable, found[0], size, original
