"""Device memory that outlives a launch: what a whole program allocates, and its modules' variables.

One mapping, shared with the program's process; an index into it is the address that both sides use, so
pointers inside data structures need no translation. Below ``START`` lies what a launch needs for itself
(parameters, shared and local memory); the program maps only what is above.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.emulator.memory import (
    GAP,
    VIEWS,
    WORKSPACE,
    Memory,
    Region,
    TooMuchMemory,
    after,
    initialise,
    mark,
    mark_windows,
    no_limits,
    window,
)
from cuda_lsp.dynamic.ptx.module import PtxModule, PtxVariable
from cuda_lsp.model import Space

Array = Any

START = 1 << 28  # where a program's own code and heap are not
SIZE = 1 << 30
_ALIGNMENT = 512
_MANAGED = ".managed"  # an attribute of variables that all devices share
_HOLES: int = getattr(mmap, "MADV_REMOVE", 0)


@frozen
class Needs:
    """What one launch adds: parameters (packed), windows of shared and local memory."""

    parameters: bytes
    variables: tuple[PtxVariable, ...]  # of the kernel's body
    module: PtxModule
    blocks: int
    per_block: int
    dynamic_shared: int
    names: Mapping[int, str]  # start of an allocation → what the kernel calls it


@frozen
class _Shape:
    """Bytes of parameters, of a block's shared and a thread's local memory; blocks, and threads of each."""

    parameters: int
    shared: int
    local: int
    blocks: int
    per_block: int


@frozen(eq=False)
class _Windows:
    """What lies below ``START`` for launches of one shape. Fields as of ``Memory``."""

    shape: _Shape
    workspace: int
    shared_base: Array
    shared: tuple[int, int]
    shared_stride: int
    local_base: Array
    local: tuple[int, int]


@frozen(eq=False)
class Snapshot:
    """A heap at some moment. ``contents`` of ``regions``, both by their start."""

    contents: Mapping[int, Array]
    top: int
    regions: Mapping[int, Region]
    free: Mapping[int, tuple[int, ...]]
    retired: tuple[Region, ...]


class Heap:
    """Allocations and variables of one program. ``descriptor``: the file that the program maps."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.descriptor = os.memfd_create("cuda-lsp-memory")
        os.ftruncate(self.descriptor, START + size)
        self._mapping = mmap.mmap(self.descriptor, START + size)
        self.data: Array = np.frombuffer(self._mapping, np.uint8)
        self._limits = no_limits(START + size)
        self._views = {kind: self.data.view(kind) for kind in VIEWS}
        self._top = START
        self._regions: dict[int, Region] = {}
        self._free: dict[int, list[int]] = {}
        self._variables: dict[str, Region] = {}
        self._of_modules: dict[int, dict[str, Region]] = {0: self._variables}
        self._of_devices = {0: self._variables}
        self._windows: _Windows | None = None
        self._retired: list[Region] = []

    @property
    def used(self) -> int:
        """Bytes that are allocated."""
        return sum(region.size for region in self._regions.values())

    def close(self) -> None:
        """Give the memory back; views of it stay usable until they are dropped."""
        os.close(self.descriptor)

    # ------------------------------------------------------------------------- the program's calls

    def allocate(self, size: int, name: str = "") -> int:
        """The address of new zeroed memory, 0 when there is none."""
        room = _rounded(size)
        again = self._free.get(room)
        if again:
            start = again.pop()
        elif self._top + room > START + self.size:
            return 0
        else:
            start, self._top = self._top, self._top + room
        self.clear(start, size)
        self._regions[start] = Region(name or "memory", start, size, Space.GLOBAL)
        self._mark(start, start + size, True)
        return start

    def release(self, address: int) -> bool:
        """Free one allocation. False: nothing was allocated there."""
        region = self._regions.pop(address, None)
        if region is None:
            return False
        self._mark(region.start, region.start + region.size, False)
        self.clear(region.start, region.size)
        self._free.setdefault(_rounded(region.size), []).append(address)
        return True

    def clear(self, start: int, size: int) -> None:
        """Zeros; whole pages go back to the system until somebody writes to them."""
        first, last = (
            -(-start // mmap.PAGESIZE) * mmap.PAGESIZE,
            (start + size) // mmap.PAGESIZE * mmap.PAGESIZE,
        )
        if last <= first or not _HOLES:
            self.data[start : start + size] = 0
            return
        self._mapping.madvise(_HOLES, first, last - first)
        self.data[start:first] = 0
        self.data[last : start + size] = 0

    def _retire(self, address: int) -> None:
        """A kernel's own ``free``: the memory is given out again by later launches only.

        Otherwise threads that the allocator orders would seem to race for it.
        """
        region = self._regions.pop(address, None)
        if region is not None:
            self._retired.append(region)

    def declare(self, module: PtxModule) -> None:
        """Give the module's global and constant variables their places, once for all builds of a module."""
        placed = [v for v in module.variables.values() if v.space in ("global", "const")]
        new = [v for v in placed if self._is_new(v)]
        for variable in new:
            start = self.allocate(variable.size or 8, variable.name)
            if not start:
                raise TooMuchMemory("the program's variables need more memory than the emulator grants")
            self._variables[_key(variable)] = self._regions[start]
        addresses = self._addresses(module)
        for variable in new:
            if variable.initialiser:
                initialise(self.data, addresses, variable, addresses[variable.name])

    def enter(self, module: int) -> None:
        """From now on variables are those of one module: what a program loads by itself has its own."""
        self._variables = self._of_modules.setdefault(module, {})

    def turn_to(self, device: int, modules: Sequence[PtxModule]) -> None:
        """Have the variables of a device, which has its own of all but managed ones. Raises TooMuchMemory."""
        if device not in self._of_devices:
            first = self._of_devices[0]
            keys = {_key(v) for m in modules for v in m.variables.values() if _MANAGED in v.text}
            self._variables = {key: region for key, region in first.items() if key in keys}
            for module in modules:
                self.declare(module)
            self._of_devices[device] = self._variables
        self._variables = self._of_devices[device]

    def variable(self, name: str) -> Region | None:
        """Where a variable of some module lies."""
        return self._variables.get(name)

    def _is_new(self, variable: PtxVariable) -> bool:
        known = self._variables.get(_key(variable))
        return known is None or known.size < variable.size

    def _addresses(self, module: PtxModule) -> dict[str, int]:
        """Of all variables that host code knows, and of those that the module keeps to itself."""
        found = {name: region.start for name, region in self._variables.items()}
        for variable in module.variables.values():
            if (region := self._variables.get(_key(variable))) is not None:
                found[variable.name] = region.start
        return found

    # --------------------------------------------------------------------------------- one launch

    def memory(self, needs: Needs) -> Memory:
        """The memory as one launch sees it; an earlier launch's windows are gone. Raises TooMuchMemory."""
        for region in self._retired:
            self._mark(region.start, region.start + region.size, False)
            self._free.setdefault(_rounded(region.size), []).append(region.start)
        self._retired.clear()
        symbols = self._addresses(needs.module)
        regions: list[Region] = []
        shared_size = window(
            [*needs.variables, *needs.module.variables.values()], "shared", symbols, regions,
            needs.dynamic_shared,
        )  # fmt: skip
        local_size = window(needs.variables, "local", symbols, [], 0)
        shape = _Shape(len(needs.parameters), shared_size, local_size, needs.blocks, needs.per_block)
        if self._windows is None or self._windows.shape != shape:
            self._windows = self._placed(shape)
        w = self._windows
        self.data[w.workspace : w.local[1]] = 0
        self.data[GAP : GAP + len(needs.parameters)] = np.frombuffer(needs.parameters, np.uint8)
        return Memory(
            self.data,
            self._limits,
            self._views,
            [*regions, *self._named(needs.names)],
            symbols,
            GAP,
            w.shared_base,
            w.shared,
            w.shared_stride,
            w.local_base,
            w.local,
            w.workspace,
            allocate=self.allocate,
            release=self._retire,
        )

    def _placed(self, shape: _Shape) -> _Windows:
        """Where parameters and windows of a launch lie; they exist from now on, those of others do not."""
        workspace = after(GAP + max(shape.parameters, 8))
        shared_start = after(workspace + WORKSPACE)
        shared_stride, local_stride = after(shape.shared), -(-shape.local // 16) * 16 + 16
        shared_end = shared_start + shape.blocks * shared_stride
        threads, local_start = shape.blocks * shape.per_block, shared_end + GAP
        local_end = local_start + threads * local_stride
        if local_end + GAP > START:
            raise TooMuchMemory(
                f"a launch needs {local_end >> 20} MiB of shared and local memory; check fewer blocks"
            )
        if self._windows is not None:
            self._mark(0, self._windows.local[1], False)
        self._mark(workspace, workspace + WORKSPACE, True)
        self._mark(GAP, GAP + max(shape.parameters, 8), True)
        mark_windows(self._limits, shared_start, shared_stride, shape.blocks, shape.shared)
        self._mark(local_start, local_end, True)
        block = np.arange(threads) // shape.per_block
        return _Windows(
            shape,
            workspace,
            shared_start + block * shared_stride,
            (shared_start, shared_end),
            shared_stride,
            local_start + np.arange(threads) * local_stride,
            (local_start, local_end),
        )

    def _named(self, names: Mapping[int, str]) -> Iterable[Region]:
        for region in self._regions.values():
            name = names.get(region.start)
            yield Region(name, region.start, region.size, region.space) if name else region

    def snapshot(self) -> Snapshot:
        """The contents of all allocations and what is allocated, to run a launch twice."""
        free = {room: tuple(starts) for room, starts in self._free.items()}
        contents = {start: self._bytes(region).copy() for start, region in self._regions.items()}
        return Snapshot(contents, self._top, dict(self._regions), free, tuple(self._retired))

    def restore(self, before: Snapshot) -> None:
        """What ``snapshot`` gave."""
        for start in self._regions.keys() - before.regions.keys():
            self._mark(start, start + self._regions[start].size, False)
        for start in before.regions.keys() - self._regions.keys():
            self._mark(start, start + before.regions[start].size, True)
        self._top, self._regions = before.top, dict(before.regions)
        self._free = {room: list(starts) for room, starts in before.free.items()}
        self._retired = list(before.retired)
        for start, region in self._regions.items():
            self._bytes(region)[:] = before.contents[start]

    def _bytes(self, region: Region) -> Array:
        return self.data[region.start : region.start + region.size]

    def _mark(self, start: int, end: int, exists: bool) -> None:
        mark(self._limits, start, end, exists)


def _key(variable: PtxVariable) -> str:
    """Texts are numbered in each module (``$str$1``), and of two sources not the same."""
    inner = variable.name.startswith("$")
    return f"{variable.name} = {variable.initialiser}" if inner else variable.name


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
