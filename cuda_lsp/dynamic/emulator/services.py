"""What generated code asks of the machine: memory that is watched, exchange between lanes, output, the heap.

Every access goes through one place that leaves out lanes that miss all objects, tells the race detector, and
keeps shared addresses for bank counting.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator import atomics
from cuda_lsp.dynamic.emulator.async_ops import Async
from cuda_lsp.dynamic.emulator.detect import ATOMIC_LOADS, Detector
from cuda_lsp.dynamic.emulator.flatten import function_address
from cuda_lsp.dynamic.emulator.images import Images
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.matrix_ops import Matrices
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.order import Order
from cuda_lsp.dynamic.emulator.printing import formatted, text_at
from cuda_lsp.dynamic.emulator.translate import Program

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads

_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}
ASSERTION = "an assertion failed"
_LONGEST_OUTPUT = 1 << 20  # characters that kernels print, as on a GPU


class Stopped(Exception):
    """The launch ended early; the message is for people."""


@define
class Fault:
    """An access outside everything: instruction number, thread of the launch, address, how often.

    ``misaligned``: the address is no multiple of the access's size.
    """

    number: int
    thread: int
    address: int
    misaligned: bool = False
    count: int = 0


def _put(view: Array, index: Array, allowed: Mask, value: Array) -> None:
    """Store each lane's value, or the one that all of them have."""
    if allowed is None:
        view[index] = value
    elif np.ndim(value):
        view[index[allowed]] = value[allowed]
    else:
        view[index[allowed]] = value


@define(eq=False, slots=False)
class Services:
    """Of one launch. ``detector`` None: plain execution. ``watched``: by instruction number.

    ``resting``: threads that wait for others in a loop. ``costly``: shared accesses for bank counting.
    ``without``: textures or surfaces that no image was bound to.
    """

    program: Program
    lanes: Lanes
    memory: Memory
    order: Order
    detector: Detector | None
    watched: Array
    costly: dict[int, list[tuple[Array, Array]]] | None = None
    faults: dict[int, Fault] = field(factory=dict[int, Fault])
    executed: Any = None
    printed: list[str] = field(factory=list[str])
    printed_size: int = 0
    without: set[str] = field(factory=set[str])

    def __attrs_post_init__(self) -> None:
        self.threads = self.lanes.count
        self.shared_base = self.memory.shared_base
        self.local_base = self.memory.local_base
        self.resting = np.zeros(self.threads, bool)
        self.executed = np.zeros(len(self.program.sites), bool)
        self.asynchronous = Async(self)
        self.matrices = Matrices(self)
        self.images = Images(self)
        if self.program.grid_wide:
            workspace = self.memory.workspace
            self.lanes.registers["%envreg1"] = np.uint32(workspace >> 32)
            self.lanes.registers["%envreg2"] = np.uint32(workspace & 0xFFFFFFFF)

    # ------------------------------------------------------------------------------------ memory

    def argument(self, name: str, offset: int, kind: Any) -> Array:
        start, _ = self.program.kernel.params[name]
        at = self.memory.params + start + offset
        return self.memory.data[at : at + kind.itemsize].view(kind)[0]

    def param_address(self, name: str, offset: int) -> Array:
        return np.int64(self.memory.params + self.program.kernel.params[name][0] + offset)

    def symbol(self, name: str, offset: int) -> Array:
        where = self.memory.symbols.get(name)
        if where is None and name in self.program.module.functions:
            return np.int64(function_address(name))
        if where is None:
            raise Stopped(f"the variable {name} is not defined in the module")
        return np.int64(where + offset)

    def special(self, name: str) -> Array:
        known = self.lanes.registers.get(name)
        if known is not None:
            return known
        if "clock" in name or "globaltimer" in name:
            return np.uint64(time.perf_counter_ns())
        return np.uint32(0)  # sizes of shared memory

    def _addresses(self, address: Array) -> Array:
        return np.broadcast_to(address, (self.threads,)) if np.ndim(address) == 0 else address

    def allowed(self, number: int, address: Array, size: int, mask: Mask) -> Mask:
        """The mask without lanes that miss every object; None: all threads, none misses."""
        return self._placed(number, address, size, mask)[0]

    def _placed(
        self, number: int, address: Array, size: int, mask: Mask, count: int = 1
    ) -> tuple[Mask, Array]:
        """``allowed``, and the addresses in units of ``size``.

        ``count``: elements of ``size`` bytes of a vector, which is aligned as a whole.
        """
        valid, index, whole = self.memory.valid[size], address >> _SHIFT[size], size * count
        good = valid.take(index, mode="clip")
        if count > 1:
            good &= valid.take(index + (count - 1), mode="clip")
        if whole > 1 and np.bitwise_or.reduce(address) & whole - 1:  # also of lanes that are not there
            good &= address & whole - 1 == 0
        if mask is None:
            if good.all():
                return None, index
            bad = ~good
        else:
            bad = mask > good
            if not bad.any():
                return mask, index
        lane = int(np.flatnonzero(bad)[0])
        here = int(address[lane])
        fault = self.faults.setdefault(number, Fault(number, lane, here, here % whole != 0))
        fault.count += int(bad.sum())
        return (good if mask is None else mask & good), index

    def _log(
        self,
        number: int,
        address: Array,
        mask: Mask,
        size: int,
        mode: int,
        value: Mask = None,
    ) -> None:
        self.executed[number] = True
        if not self.watched[number]:
            return
        if self.detector is not None:
            self.detector.access(number, address, mask, size, mode, value)
        if self.costly is not None:
            self.costly.setdefault(number, []).append((address, mask))

    def load(
        self, number: int, address: Array, kind: str, mask: Mask, strong: int = 0, release: bool = False
    ) -> Array:
        """``strong``: how the access is logged when it is no plain one (``detect``)."""
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask)
        self._log(number, address, allowed, size, strong and strong + ATOMIC_LOADS)
        if strong:
            self.order.synchronise(
                address, allowed, reads=True, writes=False, release=release, wide=strong == 2
            )
        values = self._view(kind).take(index, mode="clip")
        return values if allowed is mask else np.where(allowed, values, values.dtype.type(0))

    def _view(self, kind: str) -> Array:
        return self.memory.views[kind]

    def load_vector(
        self, number: int, address: Array, kind: str, count: int, mask: Mask
    ) -> tuple[Array, ...]:
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask, count)
        self._log(number, address, allowed, size * count, 0)
        view = self._view(kind)
        return tuple(view.take(index + k, mode="clip") for k in range(count))

    def store(
        self, number: int, address: Array, kind: str, mask: Mask, value: Array, strong: int = 0,
        release: bool = False,
    ) -> None:  # fmt: skip
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask)
        if self.detector is not None:
            value = np.broadcast_to(np.asarray(value), (self.threads,))
        self._log(number, address, allowed, size, strong or 1, value)
        if strong:
            self.order.synchronise(
                address, allowed, reads=False, writes=True, release=release, wide=strong == 2
            )
        _put(self._view(kind), index, allowed, value)

    def store_vector(
        self, number: int, address: Array, kind: str, mask: Mask, values: tuple[Array, ...]
    ) -> None:
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask, len(values))
        self._log(number, address, allowed, size * len(values), 1)
        view = self._view(kind)
        for k, value in enumerate(values):
            _put(view, index + k if k else index, allowed, value)

    def atomic(
        self, number: int, address: Array, operation: str, kind: str, mask: Mask, value: Array,
        second: Mask, returns: bool, block_scope: bool, release: bool,
    ) -> Array:  # fmt: skip
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask)
        self._log(number, address, allowed, size, 3 if block_scope else 2)
        lanes = np.arange(self.threads) if allowed is None else np.flatnonzero(allowed)
        value = np.broadcast_to(np.asarray(value), (self.threads,))[lanes]
        other = None if second is None else np.broadcast_to(np.asarray(second), (self.threads,))[lanes]
        old = np.zeros(self.threads, kind)
        old[lanes] = atomics.apply(self._view(kind), index[lanes], operation, value, other)
        writes: Any = True
        if operation == "cas":  # one that fails has only read
            writes = np.zeros(self.threads, bool)
            writes[lanes] = old[lanes] == value
        self.order.synchronise(
            address, allowed, reads=True, writes=writes, release=release, wide=not block_scope
        )
        return old

    def copy(self, number: int, target: Array, source: Array, size: int, given: Mask, mask: Mask) -> Mask:
        """Move ``size`` bytes a lane, zeros beyond the ``given`` ones. The lanes that could."""
        target, source = self._addresses(target), self._addresses(source)
        allowed = self.allowed(number, target, 4, self.allowed(number, source, 4, mask))
        self._log(number, source, allowed, size, 0)
        self._log(number, target, allowed, size, 1)
        lanes = np.arange(self.threads) if allowed is None else np.flatnonzero(allowed)
        real = np.broadcast_to(np.asarray(size if given is None else given), (self.threads,))[lanes]
        for k in range(size):
            value = np.where(k < real, self.memory.data[source[lanes] + k], np.uint8(0))
            self.memory.data[target[lanes] + k] = value
        return allowed

    def log_write(self, number: int, address: Array, mask: Mask, size: int) -> None:
        """A write that was issued earlier and goes on."""
        if self.detector is not None and self.watched[number]:
            self.detector.access(number, address, mask, size, 1)

    def rest(self, mask: Mask) -> None:
        """Threads that wait for others: the others go first."""
        self.resting |= np.ones(self.threads, bool) if mask is None else mask

    def wake(self) -> None:
        """What threads wait for may have come."""
        self.resting[:] = False

    def in_space(self, space: str, address: Array) -> Array:
        low, high = {"shared": self.memory.shared, "local": self.memory.local}.get(space, (0, 0))
        if space in ("shared", "local"):
            return (address >= low) & (address < high)
        if space != "global":
            return np.zeros_like(address, bool)
        return ~self.in_space("shared", address) & ~self.in_space("local", address)

    # ------------------------------------------------------------------------------------- lanes

    def shuffle(self, mode: str, value: Array, lane: Array, clamp: Array, mask: Mask) -> Any:
        return self.lanes.shuffle(mode, value, lane, clamp, mask)

    def vote(self, mode: str, predicate: Array, mask: Mask, named: Mask = None) -> Array:
        return self.lanes.vote(mode, predicate, mask, named)

    def match(self, value: Array, everyone: bool, mask: Mask, named: Mask) -> Any:
        return self.lanes.match(value, everyone, mask, named)

    def reduce(self, operation: str, value: Array, mask: Mask, named: Mask) -> Array:
        return self.lanes.reduce(operation, value, mask, named)

    def fence(self, mask: Mask, wide: bool) -> None:
        self.order.fence(mask, wide)

    # --------------------------------------------------------------------------- heap and output

    def unbound(self, what: str) -> None:
        self.without.add("surfaces" if what.startswith("su") else "textures")

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

    def trap(self, number: int, mask: Mask, why: str) -> None:
        if mask is None or mask.any():
            lane = 0 if mask is None else int(np.flatnonzero(mask)[0])
            raise Stopped(f"{why} (thread {int(self.lanes.thread[lane])})")
