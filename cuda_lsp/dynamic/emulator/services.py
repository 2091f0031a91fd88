"""What generated code asks of the machine: registers, memory, exchange between lanes, output, the heap."""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import Any
from weakref import proxy

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.accesses import Accesses, Stopped
from cuda_lsp.dynamic.emulator.copies import Async
from cuda_lsp.dynamic.emulator.device_launches import DeviceLaunches
from cuda_lsp.dynamic.emulator.images import Images
from cuda_lsp.dynamic.emulator.matrices import Matrices
from cuda_lsp.dynamic.emulator.printing import formatted, text_at
from cuda_lsp.dynamic.ptx.flatten import function_address
from cuda_lsp.dynamic.runs import ASSERTION

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads

_LONGEST_OUTPUT = 1 << 20  # characters that kernels print, as on a GPU


@define(eq=False, slots=False)
class Services(Accesses):
    """Of one launch: what the name ``S`` of generated code stands for.

    ``printed``: what the kernel wrote.
    """

    printed: list[str] = field(factory=list[str])
    printed_size: int = 0

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        here = proxy(self)  # no cycle: a launch's memory goes with it, and not when rubbish is looked for
        self.asynchronous = Async(here)
        self.matrices = Matrices(here)
        self.images = Images(here)
        self.device_launches = DeviceLaunches(here)
        workspace = self.memory.workspace
        self.lanes.registers["%envreg1"] = np.uint32(workspace >> 32)
        self.lanes.registers["%envreg2"] = np.uint32(workspace & 0xFFFFFFFF)

    # --------------------------------------------------------------- registers and addresses

    def argument(self, name: str, offset: int, kind: Any) -> Array:
        """One value of a parameter. ``kind``: its NumPy type; ``offset``: bytes into the parameter."""
        start, _ = self.program.kernel.params[name]
        at = self.memory.params + start + offset
        return self.memory.data[at : at + kind.itemsize].view(kind)[0]

    def param_address(self, name: str, offset: int) -> Array:
        """The generic address of a byte of a parameter, i64."""
        return np.int64(self.memory.params + self.program.kernel.params[name][0] + offset)

    def symbol(self, name: str, offset: int) -> Array:
        """The generic address of a global variable or function, the offset of another in its window.

        Raises Stopped for a name that the module does not define.
        """
        where = self.memory.symbols.get(name)
        if where is None and name in self.program.module.functions:
            return np.int64(function_address(name))
        if where is None:
            raise Stopped(f"the variable {name} is not defined in the module")
        return np.int64(where + offset)

    def special(self, name: str) -> Array:
        """A built-in register: ``(threads,)``, or a scalar where all agree. Clocks count nanoseconds."""
        known = self.lanes.registers.get(name)
        if known is not None:
            return known
        if "clock" in name or "globaltimer" in name:
            return np.uint64(time.perf_counter_ns())
        return np.uint32(0)  # sizes of shared memory

    def in_space(self, space: str, address: Array) -> Array:
        """Whether generic addresses lie in a state space, ``(threads,)`` flags."""
        low, high = {"shared": self.memory.shared, "local": self.memory.local}.get(space, (0, 0))
        if space in ("shared", "local"):
            return (address >= low) & (address < high)
        if space != "global":
            return np.zeros_like(address, bool)
        return ~self.in_space("shared", address) & ~self.in_space("local", address)

    # ------------------------------------------------------------------------------------- lanes

    def shuffle(self, mode: str, value: Array, lane: Array, clamp: Array, mask: Mask) -> Any:
        """``Lanes.shuffle`` among the active threads."""
        return self.lanes.shuffle(mode, value, lane, clamp, mask)

    def vote(self, mode: str, predicate: Array, mask: Mask, named: Mask = None) -> Array:
        """``Lanes.vote`` among the active threads."""
        return self.lanes.vote(mode, predicate, mask, named)

    def match(self, value: Array, everyone: bool, mask: Mask, named: Mask) -> Any:
        """``Lanes.match`` among the active threads."""
        return self.lanes.match(value, everyone, mask, named)

    def reduce(self, operation: str, value: Array, mask: Mask, named: Mask) -> Array:
        """``Lanes.reduce`` among the active threads."""
        return self.lanes.reduce(operation, value, mask, named)

    def fence(self, mask: Mask, wide: bool) -> None:
        """The next strong access of the active threads publishes what they did. ``wide``: to all blocks."""
        self.order.fence(mask, wide)

    # --------------------------------------------------------------------------- heap and output

    def allocate(self, size: Array, mask: Mask) -> Array:
        """``malloc`` of every active thread; 0 where the device's heap is used up."""
        size, found = self._addresses(size), np.zeros(self.threads, np.uint64)
        for lane in range(self.threads) if mask is None else np.flatnonzero(mask).tolist():
            found[lane] = self.memory.allocate(int(size[lane]))
        return found

    def release(self, address: Array, mask: Mask) -> None:
        """``free`` of every active thread."""
        address = self._addresses(address)
        for lane in range(self.threads) if mask is None else np.flatnonzero(mask).tolist():
            self.memory.release(int(address[lane]))

    def print(self, form: Array, arguments: Array, mask: Mask) -> None:
        """``vprintf`` of every active thread, in order; long output is cut."""
        form, arguments = self._addresses(form), self._addresses(arguments)
        for lane in range(self.threads) if mask is None else np.flatnonzero(mask).tolist():
            if self.printed_size > _LONGEST_OUTPUT:
                return
            text = formatted(self._read, text_at(self._read, int(form[lane])), int(arguments[lane]))
            self.printed.append(text)
            self.printed_size += len(text)

    def _read(self, address: int, size: int) -> bytes:
        return self.memory.data[address : address + size].tobytes()

    def assertion(
        self, number: int, text: Array, file: Array, line: Array, function: Array, mask: Mask
    ) -> None:
        """``assert`` of the active threads: says what a GPU prints, once, and ends the launch."""
        lanes = np.arange(self.threads) if mask is None else np.flatnonzero(mask)
        if not len(lanes):
            return
        lane = int(lanes[0])
        texts = [text_at(self._read, int(self._addresses(a)[lane])) for a in (file, function, text)]
        at = int(self._addresses(line)[lane])
        self.printed.append(f"{texts[0]}:{at}: {texts[1]}: Assertion `{texts[2]}` failed.\n")
        self.trap(number, mask, f"{ASSERTION}: {texts[2]}")
