"""Memory as the generated code touches it: bounds, the race detector, bank counting, then the access itself.

Every access goes through one place that leaves out lanes that miss all objects, tells the race detector, and
keeps shared addresses for bank counting.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.emulator import atomics
from cuda_lsp.dynamic.emulator.detect import ATOMIC_LOADS, Detector
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.memory import GRANULE, GRANULE_BITS, NOWHERE, Memory
from cuda_lsp.dynamic.emulator.order import Order
from cuda_lsp.dynamic.emulator.program import Program

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads

RANK_BITS = 24  # where a block's rank begins in an address of its cluster's shared memory, as on a GPU
MOST_EXECUTIONS = 4096  # of one instruction that are costed in banks
_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


class Stopped(Exception):
    """The launch ended early; the message is for people.

    ``number``, ``threads``: the instruction that ended it, and who came there.
    """

    def __init__(self, why: str, number: int | None = None, threads: Array | None = None) -> None:
        super().__init__(why)
        self.number, self.threads = number, threads


@define
class Fault:
    """An access outside everything: instruction number, thread of the launch, address, how often.

    ``misaligned``: the address is no multiple of the access's size. ``furthest``: the highest address.
    """

    number: int
    thread: int
    address: int
    misaligned: bool = False
    count: int = 0
    furthest: int = 0


def _put(view: Array, index: Array, allowed: Mask, value: Array) -> None:
    """Store each lane's value, or the one that all of them have."""
    if allowed is None:
        view[index] = value
    elif np.ndim(value):
        view[index[allowed]] = value[allowed]
    else:
        view[index[allowed]] = value


@frozen(eq=False)
class WarpRows:
    """Accesses of warps to shared memory: of each lane the offset in its block's window and whether it
    is there, ``(rows, 32)``; how often each row came, ``(rows,)``."""

    offsets: Array
    active: Array
    counts: Array


@define(eq=False)
class Costly:
    """Accesses to shared memory whose bank conflicts are counted, the first ones of each instruction.

    ``rows``: by instruction number, of each execution.
    """

    lanes: Lanes
    memory: Memory
    rows: dict[int, list[WarpRows]] = field(factory=dict[int, list[WarpRows]])
    often: dict[int, int] = field(factory=dict[int, int])

    def add(self, number: int, address: Array, mask: Mask) -> None:
        """One execution; ``address``: of each thread."""
        active = self.chosen(number, address, mask)
        if active is not None:
            offsets = np.where(active, address - self.memory.shared_base, 0)
            rows = self.lanes.rows(offsets, 0), self.lanes.rows(active, False)
            self.rows.setdefault(number, []).append(WarpRows(*rows, np.ones(len(rows[0]), np.int64)))

    def chosen(self, number: int, address: Array, mask: Mask) -> Mask:
        """The threads that touch their block's shared memory; None: none, or enough executions were kept."""
        times = self.often[number] = self.often.get(number, 0) + 1
        place = address - self.memory.shared_base
        active = (place >= 0) & (place < self.memory.shared_stride)
        active = active if mask is None else active & mask
        return active if times <= MOST_EXECUTIONS and active.any() else None

    def executions(self) -> Iterable[tuple[int, list[WarpRows]]]:
        """``rows`` by instruction number."""
        return self.rows.items()


@define(eq=False, slots=False)
class Accesses:
    """Of one launch. ``detector`` None: plain execution. ``watched``: by instruction number.

    ``resting``: threads that wait for others in a loop. ``costly``: where bank conflicts are counted.
    ``executed``: by instruction number.
    ``without``: textures or surfaces that no image was bound to.
    """

    program: Program
    lanes: Lanes
    memory: Memory
    order: Order
    detector: Detector | None
    watched: Array
    costly: Costly | None = None
    faults: dict[int, Fault] = field(factory=dict[int, Fault])
    executed: Any = None
    without: set[str] = field(factory=set[str])

    def __attrs_post_init__(self) -> None:
        self.threads = self.lanes.count
        self.shared_base = self.memory.shared_base
        self.local_base = self.memory.local_base
        self.resting = np.zeros(self.threads, bool)
        self.executed = np.zeros(len(self.program.sites), bool)

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
        index, whole = address >> _SHIFT[size], size * count
        limits = self.memory.limits.take(address >> GRANULE_BITS, mode="clip")
        good = (address & GRANULE - 1) + whole <= limits
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
        fault.furthest = max(fault.furthest, int(address[bad].max()))
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
            self.costly.add(number, address, mask)

    def load(
        self, number: int, address: Array, kind: str, mask: Mask, strong: int = 0, release: bool = False
    ) -> Array:
        """``strong``: how the access is logged when it is no plain one (``detect``)."""
        address = self._addresses(address)
        size = int(kind[1:])
        allowed, index = self._placed(number, address, size, mask)
        read = None if strong or self.detector is None else self._view(kind).take(index, mode="clip")
        self._log(number, address, allowed, size, strong and strong + ATOMIC_LOADS, read)
        if strong:
            self.order.synchronise(
                address, allowed, reads=True, writes=False, release=release, wide=strong == 2
            )
        values = self._view(kind).take(index, mode="clip") if read is None else read
        return values if allowed is mask else np.where(allowed, values, values.dtype.type(0))

    def _view(self, kind: str) -> Array:
        return self.memory.views[kind]

    def load_vector(
        self, number: int, address: Array, kind: str, count: int, mask: Mask
    ) -> tuple[Array, ...]:
        """``count`` neighbouring elements of each lane: one array ``(threads,)`` an element."""
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
        """Each lane stores ``value`` at its address. ``kind``: NumPy's name of the element.

        ``strong``: as for ``load``; ``release``: what the thread did before becomes visible with it.
        """
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
        """Each lane stores neighbouring elements, which together are aligned and watched as one access."""
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
        """Lanes update memory one after the other, by number; what each found there, ``(threads,)``.

        ``second``: the new value of a ``cas``, whose ``value`` is what it expects. ``block_scope``: not
        atomic to other blocks. ``release``: as for ``store``.
        """
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

    def move(self, number: int, target: Array, source: Array, size: int, mask: Array) -> None:
        """Copy ``size`` bytes, a multiple of 16, for each thread of ``mask``."""
        for address in (source, target):
            ends = self.allowed(number, address + (size - 16), 4, self.allowed(number, address, 4, mask))
            mask = mask if ends is None else ends
        self._log(number, source, mask, size, 0)
        self._log(number, target, mask, size, 1)
        for lane in np.flatnonzero(mask).tolist():
            start, at = int(target[lane]), int(source[lane])
            self.memory.data[start : start + size] = self.memory.data[at : at + size]

    def log_write(self, number: int, address: Array, mask: Mask, size: int) -> None:
        """A write that was issued earlier and goes on."""
        if self.detector is not None and self.watched[number]:
            self.detector.access(number, address, mask, size, 1)

    # ----------------------------------------------------------------- shared memory of a cluster

    def in_cluster(self, address: Array) -> Array:
        """The generic address, i64, of one in a cluster's window of shared memory: its low bits are a place
        in a block's window, above them stands the block's rank and one, or 0 for the thread's own block."""
        wide = np.asarray(address).astype(np.int64)
        rank, place = wide >> RANK_BITS, wide & (1 << RANK_BITS) - 1
        return np.where(rank == 0, self.shared_base, self._window(rank - 1)) + place

    def from_cluster(self, address: Array, named: bool = False) -> Array:
        """What ``in_cluster`` turns into this generic address. ``named``: with a rank in one's own block too,
        so that it means the same to others."""
        offset = np.asarray(address).astype(np.int64) - self.memory.shared[0]
        block, place = offset // self.memory.shared_stride, offset % self.memory.shared_stride
        rank = self.rank(address).astype(np.int64)
        mine = (block == self.lanes.block) & (not named)
        return np.where(mine, place, rank + 1 << RANK_BITS | place)

    def of_cluster(self, address: Array, own: bool) -> Array:
        """Whether generic addresses lie in the shared memory of a thread's cluster; ``own``: of its block."""
        block = (self._addresses(address) - self.memory.shared[0]) // self.memory.shared_stride
        count = self.lanes.count // self.lanes.per_block
        group = self.lanes.block if own else self.lanes.cluster
        groups = np.append(group[:: self.lanes.per_block], -1)
        return groups[np.where((block >= 0) & (block < count), block, count)] == group

    def peer(self, address: Array, rank: Array) -> Array:
        """The generic address of the same place in the shared memory of the block of this rank."""
        place = (self._addresses(address) - self.memory.shared[0]) % self.memory.shared_stride
        return self._window(np.asarray(rank).astype(np.int64)) + place

    def rank(self, address: Array) -> Array:
        """The rank of the block whose shared memory an address lies in, u32."""
        block = (self._addresses(address) - self.memory.shared[0]) // self.memory.shared_stride
        size = 1 if self.lanes.clusters is None else self.lanes.clusters.peers.shape[1]
        return (block % size).astype(np.uint32)

    def _window(self, rank: Array) -> Array:
        """Where the window of a block of this rank begins, ``(n,)``; where nothing is, if none has it."""
        block = self.lanes.block
        there = rank == 0
        if self.lanes.clusters is not None:
            peers = self.lanes.clusters.peers
            there = (rank >= 0) & (rank < peers.shape[1])
            block = peers[self.lanes.cluster, np.where(there, rank, 0)]
        return np.where(there, self.memory.shared[0] + block * self.memory.shared_stride, NOWHERE)

    def rest(self, mask: Mask) -> None:
        """Threads that wait for others: the others go first."""
        self.resting |= np.ones(self.threads, bool) if mask is None else mask

    def wake(self) -> None:
        """What threads wait for may have come."""
        self.resting[:] = False

    def unbound(self, what: str) -> None:
        """An instruction (``what``: its opcode) met no image that we follow: the outcome will say so."""
        self.without.add("surfaces" if what.startswith("su") else "textures")

    def trap(self, number: int, mask: Mask, why: str) -> None:
        """End the launch, unless no thread is there. Raises Stopped with ``why`` and the first of them."""
        if mask is None or mask.any():
            lane = 0 if mask is None else int(np.flatnonzero(mask)[0])
            who = np.ones(self.threads, bool) if mask is None else mask
            raise Stopped(f"{why} (thread {int(self.lanes.thread[lane])})", number, who)
