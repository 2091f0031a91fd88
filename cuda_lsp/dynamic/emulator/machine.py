"""The SIMT machine: which threads run next, barriers, waits, and the services generated code calls.

All threads that stand at one block of the program run together. Where they disagree, those furthest back
in the text go first, so that branches meet again at the earliest point; a thread that spins on another's
progress gets its turn taken away now and then. Threads at a barrier are parked until it opens. When nobody
can move, the launch is stuck and says who waits where.
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
from cuda_lsp.dynamic.emulator.detect import Detector
from cuda_lsp.dynamic.emulator.flatten import function_address
from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.order import Order
from cuda_lsp.dynamic.emulator.printing import formatted, text_at
from cuda_lsp.dynamic.emulator.translate import BarrierOp, Block, Program

Array = Any  # (threads,) values or a NumPy scalar
Mask = Any  # (threads,) flags, or None: all threads

_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}
ASSERTION = "an assertion failed"
_LONGEST_OUTPUT = 1 << 20  # characters that kernels print, as on a GPU
_PATIENCE = 512  # steps of one group before another gets a turn


class Stopped(Exception):
    """The launch ended early; the message is for people."""


@define
class Fault:
    """An access outside everything: instruction number, thread of the launch, address, how often."""

    number: int
    thread: int
    address: int
    count: int = 0


@define
class Waiting:
    """Threads that wait, or would have to: instruction number → threads, and the threads that have left."""

    places: dict[int, Array]
    exited: Array
    spinning: bool = False


@define(eq=False, slots=False)
class Machine:
    """One launch of some blocks. ``detector`` None: plain execution. ``watched``: by instruction number."""

    program: Program
    lanes: Lanes
    memory: Memory
    order: Order
    detector: Detector | None
    watched: Array
    deadline: float
    backwards: bool = False
    registers: list[Array] = field(factory=list[Array])
    faults: dict[int, Fault] = field(factory=dict[int, Fault])
    stuck: list[Waiting] = field(factory=list[Waiting])
    executed: Any = None
    failure: str | None = None
    printed: list[str] = field(factory=list[str])
    printed_size: int = 0
    images: set[str] = field(factory=set[str])
    costly: dict[int, list[tuple[Array, Array]]] | None = None  # shared accesses for bank counting
    alive: Any = None
    pc: Any = None
    parked: Any = None  # 0 runs, 1 at a block barrier, 2 waits for lanes of its warp
    arrived: dict[tuple[int, int], Array] = field(factory=dict[tuple[int, int], Array])

    def __attrs_post_init__(self) -> None:
        n = self.lanes.count
        self.threads = n
        self.shared_base = self.memory.shared_base
        self.local_base = self.memory.local_base
        self.alive = np.ones(n, bool)
        self.pc = np.zeros(n, np.int64)
        self.resting = np.zeros(n, bool)
        self.asynchronous = Async(self)
        self.parked = np.zeros(n, np.int8)
        self.executed = np.zeros(len(self.program.sites), bool)
        self.registers = [np.dtype(kind).type(0) for kind in self.program.registers]
        self._visited = np.zeros(len(self.program.blocks) + 1, bool)
        if self.program.grid_wide:
            workspace = self.memory.workspace
            self.lanes.registers["%envreg1"] = np.uint32(workspace >> 32)
            self.lanes.registers["%envreg2"] = np.uint32(workspace & 0xFFFFFFFF)

    # -------------------------------------------------------------------------------- schedule

    def run(self) -> None:
        """Execute to the end, or until stuck, stopped or out of time."""
        with np.errstate(all="ignore"):
            try:
                self._run()
            except Stopped as stop:
                self.failure = str(stop)
        if self.detector is not None:
            self.asynchronous.linger()
            self.detector.finish()

    def _run(self) -> None:
        blocks, steps, turns = self.program.blocks, 0, 0
        here: int | None = 0  # where all living threads are, None: apart
        everyone: Mask = None  # the mask of living threads, None: all threads
        while True:
            steps += 1
            if steps % 256 == 0 and time.monotonic() > self.deadline:
                raise Stopped("the kernel did not finish before the deadline")
            if here is not None:
                if here >= len(blocks):
                    return
                block = blocks[here]
                here, everyone = self._together(block, here, everyone)
                if here == -1:
                    return
                if here is not None:
                    continue
            turns += 1
            here, everyone = self._apart(turns)
            if here == -1:
                return

    def _together(self, block: Block, number: int, everyone: Mask) -> tuple[int | None, Mask]:
        """All living threads execute one block; where they are then (None: apart, -1: gone)."""
        if block.wait is not None:
            self.order.warp_sync(everyone, self._lane_mask(block), everyone)
        self._visited[number] = True
        out = block.run(self, self.registers, everyone)
        match block.kind:
            case "next" | "jump":
                return block.targets[0], everyone
            case "branch":
                return self._branch(block, out, everyone)
            case "exit":
                if out is None:
                    self.alive[:] = False
                    return -1, None
                left = self._active(out, everyone)
                self.alive &= ~left
                self.pc[:] = block.targets[0]
                if not self.alive.any():
                    return -1, None
                return block.targets[0], self.alive.copy()
            case "barrier" if self._plain(block, out):
                self._open(None if everyone is None else everyone)
                if everyone is not None:
                    self._exited_at(block, everyone)
                return block.targets[0], everyone
            case _:
                self.pc[:] = number
                self._leave(block, number, self.alive.copy(), out)
                return None, None

    def _plain(self, block: Block, out: Mask) -> bool:
        op = block.barrier
        return (
            op is not None
            and op.count is None
            and not op.arrive
            and op.reduce is None
            and out is None
            and (isinstance(op.id, int))
        )

    def _branch(self, block: Block, out: Array, everyone: Mask) -> tuple[int | None, Mask]:
        taken = self._active(out, everyone)
        count = int(np.count_nonzero(taken))
        if count == 0:
            return block.targets[1], everyone
        if count == (self.threads if everyone is None else int(np.count_nonzero(everyone))):
            return block.targets[0], everyone
        self.pc = np.where(taken, block.targets[0], block.targets[1])
        return None, None

    def _active(self, predicate: Array, everyone: Mask) -> Array:
        if np.ndim(predicate) == 0:
            predicate = np.full(self.threads, bool(predicate))
        return predicate if everyone is None else predicate & everyone

    def _apart(self, turns: int) -> tuple[int | None, Mask]:
        """One group of threads executes one block."""
        ready = self.alive & (self.parked == 0)
        if self.resting.any():
            eager = ready & ~self.resting
            if eager.any():
                ready = eager
            else:
                self.resting[:] = False
        places = self.pc[ready]
        if not len(places):
            if not self.alive.any():
                return -1, None
            if not self._release():
                self._stuck()
                return -1, None
            return None, None
        last_resort = turns % _PATIENCE == _PATIENCE - 1
        number = int(places.max() if last_resort != self.backwards else places.min())
        if number >= len(self.program.blocks):
            self.alive &= self.pc != number
            return None, None
        block = self.program.blocks[number]
        group = ready & (self.pc == number)
        if block.wait is not None:
            group = self._wait(block, number, group)
            if group is None:
                return None, None
        self._visited[number] = True
        out = block.run(self, self.registers, group)
        self._leave(block, number, group, out)
        return self._reunited()

    def _leave(self, block: Block, number: int, group: Array, out: Mask) -> None:
        match block.kind:
            case "next" | "jump":
                self.pc = np.where(group, block.targets[0], self.pc)
            case "branch":
                taken = self._active(out, group)
                self.pc = np.where(group, np.where(taken, block.targets[0], block.targets[1]), self.pc)
            case "table":
                index = np.broadcast_to(np.asarray(out), (self.threads,)).astype(np.int64)
                table = np.asarray(block.targets)
                self.pc = np.where(group, table[np.clip(index, 0, len(table) - 1)], self.pc)
            case "exit":
                left = group if out is None else self._active(out, group)
                self.alive &= ~left
                self.pc = np.where(group, block.targets[0], self.pc)
            case _:
                self._barrier(block, number, group, out)

    def _reunited(self) -> tuple[int | None, Mask]:
        if self.parked.any():
            return None, None
        places = self.pc[self.alive]
        if len(places) and (places == places[0]).all():
            return int(places[0]), None if len(places) == self.threads else self.alive.copy()
        return (None, None) if len(places) else (-1, None)

    # ------------------------------------------------------------------------------- waiting

    def _lane_mask(self, block: Block) -> Array | int:
        wait = block.wait
        assert wait is not None
        return wait.mask if wait.mask is not None else self.registers[wait.register].astype(np.uint32)

    def _wait(self, block: Block, number: int, group: Array) -> Mask:
        """The lanes of ``group`` whose whole mask has arrived; None (and parked) when there are none."""
        assert block.wait is not None
        here = self.alive & (self.pc == number)
        if block.wait.anywhere:
            waiting = np.array(
                [b.wait is not None and b.wait.anywhere for b in self.program.blocks] + [False]
            )
            here = self.alive & waiting[self.pc] & ((self.parked == 2) | (self.pc == number))
        named = np.broadcast_to(np.asarray(self._lane_mask(block), np.uint32), (self.threads,))
        living = self.lanes.mask(self.alive)[self.lanes.warp]
        present = self.lanes.mask(here)[self.lanes.warp]
        complete = group & (named & living & ~present == 0)
        if not complete.any():
            self.parked[group] = 2
            return None
        released = here & complete
        if block.wait.anywhere:
            bits = self.lanes.mask(complete)[self.lanes.warp]
            released = here & (self.lanes.mask(here)[self.lanes.warp] != 0) & (bits != 0)
        self.order.warp_sync(released, named, self.alive)
        self.parked[group & ~complete] = 2
        at_this = released & (self.pc == number)
        self.parked[at_this] = 0
        others = released & ~at_this  # they stand at another wait of the same kind and go on from there
        self.parked[others] = 0
        self.pc = np.where(others, self.pc + 1, self.pc)
        # A wait alone in its block has nothing to execute but what follows it there.
        return at_this

    def _barrier(self, block: Block, number: int, group: Array, out: Mask) -> None:
        op = block.barrier
        assert op is not None
        if out is not None:  # a predicated barrier: the others pass by
            skips = group & ~self._active(out, group)
            self.pc = np.where(skips, block.targets[0], self.pc)
            group = group & ~skips
        self.pc = np.where(group, number, self.pc)
        identity = np.broadcast_to(np.asarray(self._operand(op.id)), (self.threads,))
        keys = set(zip(self.lanes.block[group].tolist(), identity[group].tolist(), strict=True))
        for key in sorted(keys):
            mine = group & (self.lanes.block == key[0]) & (identity == key[1])
            if op.arrive:
                self.arrived[key] = self.arrived.get(key, np.zeros(self.threads, bool)) | mine
                self.pc = np.where(mine, block.targets[0], self.pc)
            else:
                self.parked[mine] = 1
            self._try_counted(key, op)

    def _operand(self, value: int | str | None) -> Array:
        if isinstance(value, str):
            return self.registers[self.program.numbers[value]]
        return np.int64(value or 0)

    def _at(self, key: tuple[int, int]) -> Array:
        """Threads parked at a barrier of that identity."""
        parked = (self.parked == 1) & (self.lanes.block == key[0])
        found = np.zeros(self.threads, bool)
        for number in np.unique(self.pc[parked]).tolist():
            op = self.program.blocks[number].barrier
            if op is not None:
                at = parked & (self.pc == number)
                identity = np.broadcast_to(np.asarray(self._operand(op.id)), (self.threads,))
                found |= at & (identity == key[1])
        return found

    def _try_counted(self, key: tuple[int, int], op: BarrierOp) -> None:
        if op.count is None:
            return
        waiting = self._at(key)
        arrived = self.arrived.get(key, np.zeros(self.threads, bool))
        both: Any = waiting | arrived
        count = np.broadcast_to(np.asarray(self._operand(op.count)), (self.threads,))
        expected = int(count[np.flatnonzero(both)[0]]) if both.any() else 0
        # Whole warps count: a warp that has arrived counts with its missing lanes (PTX ISA 9.7.13.1).
        warps = np.unique(self.lanes.warp[both])
        if len(warps) * 32 < expected and int(both.sum()) < expected:
            return
        self.arrived.pop(key, None)
        mine = self.lanes.block == key[0]
        if (both & mine).sum() == (mine & self.alive).sum() and not arrived.any():
            self._open(both)
        else:
            self.order.partial_barrier(both, waiting)
        self._reduce(waiting)
        self._pass(waiting)

    def _pass(self, threads: Array) -> None:
        self.parked[threads] = 0
        self.pc = np.where(threads, self.pc + 1, self.pc)

    def _release(self) -> bool:
        """Open every block barrier at which all living threads of a block wait. False: none is."""
        opened = False
        unparked = self.parked == 2
        for b in range(int(self.lanes.block[-1]) + 1):
            mine = self.lanes.block == b
            living = mine & self.alive
            if not living.any() or not (self.parked[living] == 1).all():
                continue
            places = np.unique(self.pc[living])
            ops = [self.program.blocks[p].barrier for p in places.tolist()]
            if len({op.id for op in ops if op}) > 1 or any(op and op.count is not None for op in ops):
                continue
            if len(places) > 1 or not self.alive[mine].all():
                self._exited_at(self.program.blocks[int(places[0])], living)
            self._open(living)
            self._reduce(living)
            self._pass(living)
            opened = True
        if not opened and unparked.any() and not getattr(self, "_retried", False):
            # lanes that wait for one another may all have come by now: look at each group again
            self._retried = True
            self.parked[unparked] = 0
            return True
        self._retried = False
        return opened

    def _open(self, threads: Mask) -> None:
        """A barrier of whole blocks: one interval ends, the next begins."""
        if self.detector is not None:
            self.asynchronous.linger()
            self.detector.interval_ends(threads)
        self.order.block_barrier(threads)

    def _reduce(self, threads: Array) -> None:
        """The result of ``barrier.red`` for the threads that pass."""
        for number in np.unique(self.pc[threads]).tolist():
            op = self.program.blocks[number].barrier
            if op is None or op.reduce is None or op.predicate is None or op.result is None:
                continue
            negated = op.predicate.startswith("!")
            held = self.registers[self.program.numbers[op.predicate.lstrip("!")]]
            predicate = np.broadcast_to(np.asarray(held), (self.threads,)) ^ negated
            at = threads & (self.pc == number)
            slot = self.program.numbers[op.result]
            for b in np.unique(self.lanes.block[at]).tolist():
                mine = at & (self.lanes.block == b)
                votes = predicate[threads & (self.lanes.block == b)]
                value: Any = {"popc": votes.sum(), "and": votes.all(), "or": votes.any()}[op.reduce]
                kind = np.dtype(self.program.registers[slot])
                self.registers[slot] = np.where(mine, kind.type(value), self.registers[slot])

    def _exited_at(self, block: Block, living: Array) -> None:
        """A barrier opened although threads of the block have left, or wait at another one."""
        places = {block.last: living}
        for number in np.unique(self.pc[living & (self.parked == 1)]).tolist():
            places[self.program.blocks[number].last] = living & (self.pc == number)
        gone = ~self.alive & np.isin(self.lanes.block, np.unique(self.lanes.block[living]))
        if not any(w.places.keys() == places.keys() for w in self.stuck):
            self.stuck.append(Waiting(places, gone))

    def _stuck(self) -> None:
        places = {
            self.program.blocks[number].last: self.alive & (self.pc == number)
            for number in np.unique(self.pc[self.alive]).tolist()
        }
        self.stuck.append(Waiting(places, ~self.alive))
        self.failure = "the kernel is stuck: its threads wait for one another"

    # ------------------------------------------------------- services of generated code: memory

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

    def _allowed(self, number: int, address: Array, size: int, mask: Mask) -> Mask:
        """The mask without lanes that miss every object; None: all threads, none misses."""
        good = self.memory.valid[size].take(address >> _SHIFT[size], mode="clip")
        if size > 1:
            good = good & (address & size - 1 == 0)
        bad = ~good if mask is None else mask & ~good
        if not bad.any():
            return mask
        lane = int(np.flatnonzero(bad)[0])
        fault = self.faults.setdefault(number, Fault(number, lane, int(address[lane])))
        fault.count += int(bad.sum())
        return good if mask is None else mask & good

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
        allowed = self._allowed(number, address, size, mask)
        self._log(number, address, allowed, size, strong)
        if strong:
            self.order.synchronise(address, allowed, reads=True, writes=False, release=release)
        values = self._view(kind).take(address >> _SHIFT[size], mode="clip")
        return values if allowed is mask else np.where(allowed, values, values.dtype.type(0))

    def _view(self, kind: str) -> Array:
        return self.memory.views[kind]

    def load_vector(
        self, number: int, address: Array, kind: str, count: int, mask: Mask
    ) -> tuple[Array, ...]:
        address = self._addresses(address)
        size = int(kind[1:])
        allowed = self._allowed(number, address, size, mask)
        self._log(number, address, allowed, size * count, 0)
        index = address >> _SHIFT[size]
        view = self._view(kind)
        return tuple(view.take(index + k, mode="clip") for k in range(count))

    def store(
        self, number: int, address: Array, kind: str, mask: Mask, value: Array, strong: int = 0,
        release: bool = False,
    ) -> None:  # fmt: skip
        address = self._addresses(address)
        size = int(kind[1:])
        allowed = self._allowed(number, address, size, mask)
        value = np.broadcast_to(np.asarray(value), (self.threads,))
        self._log(number, address, allowed, size, strong or 1, value)
        if strong:
            self.order.synchronise(address, allowed, reads=False, writes=True, release=release)
        index = address >> _SHIFT[size]
        view = self._view(kind)
        if allowed is None:
            view[index] = value
        else:
            view[index[allowed]] = value[allowed]

    def store_vector(
        self, number: int, address: Array, kind: str, mask: Mask, values: tuple[Array, ...]
    ) -> None:
        address = self._addresses(address)
        size = int(kind[1:])
        allowed = self._allowed(number, address, size, mask)
        self._log(number, address, allowed, size * len(values), 1)
        index = address >> _SHIFT[size]
        view = self._view(kind)
        for k, value in enumerate(values):
            value = np.broadcast_to(np.asarray(value), (self.threads,))
            if allowed is None:
                view[index + k] = value
            else:
                view[index[allowed] + k] = value[allowed]

    def atomic(
        self, number: int, address: Array, operation: str, kind: str, mask: Mask, value: Array,
        second: Mask, returns: bool, block_scope: bool, release: bool,
    ) -> Array:  # fmt: skip
        address = self._addresses(address)
        size = int(kind[1:])
        allowed = self._allowed(number, address, size, mask)
        self._log(number, address, allowed, size, 3 if block_scope else 2)
        self.order.synchronise(address, allowed, reads=True, writes=True, release=release)
        lanes = np.arange(self.threads) if allowed is None else np.flatnonzero(allowed)
        value = np.broadcast_to(np.asarray(value), (self.threads,))[lanes]
        other = None if second is None else np.broadcast_to(np.asarray(second), (self.threads,))[lanes]
        old = np.zeros(self.threads, kind)
        old[lanes] = atomics.apply(self._view(kind), address[lanes] >> _SHIFT[size], operation, value, other)
        return old

    def copy(self, number: int, target: Array, source: Array, size: int, given: Mask, mask: Mask) -> Mask:
        """Move ``size`` bytes a lane, zeros beyond the ``given`` ones. The lanes that could."""
        target, source = self._addresses(target), self._addresses(source)
        allowed = self._allowed(number, target, 4, self._allowed(number, source, 4, mask))
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

    # -------------------------------------------------------- services of generated code: lanes

    def shuffle(self, mode: str, value: Array, lane: Array, clamp: Array, mask: Mask) -> Any:
        return self.lanes.shuffle(mode, value, lane, clamp, mask)

    def vote(self, mode: str, predicate: Array, mask: Mask) -> Array:
        return self.lanes.vote(mode, predicate, mask)

    def match(self, value: Array, everyone: bool, mask: Mask) -> Any:
        return self.lanes.match(value, everyone, mask)

    def reduce(self, operation: str, value: Array, mask: Mask) -> Array:
        return self.lanes.reduce(operation, value, mask)

    def fence(self, mask: Mask) -> None:
        self.order.fence(mask)

    def unbound(self, what: str) -> None:
        self.images.add("surfaces" if what.startswith("su") else "textures")

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
