"""One launch in the C engine: its program as tables, its memory and registers, and how far it goes alone.

What stands in a launch is shared with Python step by step: threads, registers, memory, the log. ``advance``
goes on until the next step is Python's.
"""

# NumPy's stubs leave views and fancy indexing unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import ctypes
from collections.abc import Iterator
from typing import Any
from weakref import proxy

import numpy as np

from cuda_lsp.dynamic.emulator.accesses import MOST_EXECUTIONS, Fault
from cuda_lsp.dynamic.emulator.native.instructions import Value
from cuda_lsp.dynamic.emulator.native.log import Common, CostlyLog, NativeLog
from cuda_lsp.dynamic.emulator.native.operations import SIZES
from cuda_lsp.dynamic.emulator.native.structures import CALLBACK
from cuda_lsp.dynamic.emulator.native.structures import Fault as FaultRow
from cuda_lsp.dynamic.emulator.native.structures import Launch as State
from cuda_lsp.dynamic.emulator.native.tables import tables_of
from cuda_lsp.dynamic.emulator.services import Services
from cuda_lsp.dynamic.emulator.threads import Threads

Array = Any

_MOST_LOGGED = 1 << 22  # accesses of one interval; what looks through them takes many times their memory


class Registers:
    """Registers that outlive a block. What is read is a copy, or a scalar where all threads agree, as blocks
    in NumPy take it. ``same``: whether all threads agree on the first element."""

    def __init__(self, kinds: list[str], threads: int) -> None:
        self.arrays: list[Array] = [np.zeros(threads, kind) for kind in kinds]
        self.same = np.ones(len(kinds) + 1, np.uint8)

    def __getitem__(self, number: int) -> Array:
        values = self.arrays[number]
        return values[0] if self.same[number] else values.copy()

    def __setitem__(self, number: int, value: Array) -> None:
        self.same[number] = np.ndim(value) == 0
        if np.ndim(value):
            self.arrays[number][:] = value
        else:
            self.arrays[number][0] = value

    def __iter__(self) -> Iterator[Array]:
        return (self[number] for number in range(len(self)))

    def __len__(self) -> int:
        return len(self.arrays)


class NativeLaunch:
    """The engine's side of one launch. ``at``: its threads, whose registers live here from now on.

    ``eager``: lower all blocks at once.
    """

    def __init__(
        self, library: Any, services: Services, at: Threads, deadline: float, backwards: bool, often: int,
        look: int, patience: int, eager: bool,
    ) -> None:  # fmt: skip
        self.library, self.services, self.at = library, services, at
        self.tables = tables_of(services.program)
        memory, threads = services.memory, services.threads
        self.problem: BaseException | None = None
        registers = Registers(services.program.registers, threads)
        for number, value in enumerate(at.registers):
            registers[number] = value
        at.registers = registers  # type: ignore[assignment]
        self.slots: list[Array] = []
        self.rows: list[Array] = []
        self.row_same = np.empty(0, np.uint8)
        self.pool: list[int] = []
        self.active, self.faults = (
            np.zeros(threads, np.int32),
            np.zeros(len(services.program.sites), np.int32),
        )
        self.watched = np.ascontiguousarray(services.watched)
        self.limits = np.ascontiguousarray(memory.limits)
        here = proxy(self)  # no cycle: what a launch holds goes with it

        def call(number: int, count: int) -> None:
            here.call(number, count)

        self.callback = CALLBACK(call)
        self.registers = _pointers(registers.arrays)
        self.common = Common(library, memory, services.lanes)
        self.banks = None
        if services.costly is not None:
            services.costly = self.banks = CostlyLog(
                self.common, services.costly, len(services.program.sites)
            )
        self.state = State(
            threads=threads, granules=len(self.limits), memory=memory.data.ctypes.data,
            limits=self.limits.ctypes.data,
            shared_low=memory.shared[0], shared_high=memory.shared[1], local_low=memory.local[0],
            local_high=memory.local[1], registers=ctypes.addressof(self.registers),
            register_same=registers.same.ctypes.data,
            blocks=ctypes.addressof(self.tables.blocks), blocks_count=len(services.program.blocks),
            active=self.active.ctypes.data, often=often, look=look, patience=patience, backwards=backwards,
            deadline=deadline, watched=self.watched.ctypes.data, executed=services.executed.ctypes.data,
            only_shared=self.banks is not None, most=MOST_EXECUTIONS,
            fault_of=self.faults.ctypes.data, call=self.callback,
        )  # fmt: skip
        if self.banks is not None:
            self.state.logged = self.banks.logged.ctypes.data
        if eager:
            self.tables.meet_all()
        self._grow()
        if services.detector is not None:
            services.detector.log_in(NativeLog(self.common))

    def meet(self, number: int) -> None:
        """Python is about to execute a block."""
        if self.tables.meet(number):
            self._grow()

    def _grow(self) -> None:
        """Make room for what the blocks lowered so far need."""
        shared, threads = self.tables.shared, self.services.threads
        self.slots += [np.zeros(threads, np.uint64) for _ in range(shared.slots - len(self.slots))]
        for name in [*shared.rows][len(self.rows) :]:
            row = np.asarray(self._row(name))
            self.row_same = np.append(self.row_same, np.uint8(row.ndim == 0))
            self.rows.append(np.ascontiguousarray(np.atleast_1d(row)))
        self.same, self.scalars = (
            np.zeros(len(self.slots) + 1, np.uint8),
            np.zeros(len(self.slots) + 1, np.uint64),
        )
        self.state.same, self.state.scalars = self.same.ctypes.data, self.scalars.ctypes.data
        self.state.slots_count, self.state.row_same = len(self.slots), self.row_same.ctypes.data
        self.pool += [self._constant(*what) for what in [*shared.pool][len(self.pool) :]]
        self.own = _pointers(self.slots)
        self.state.own = ctypes.addressof(self.own)
        self.pointers = (
            _pointers(self.slots),
            _pointers(self.rows),
            (ctypes.c_uint64 * (len(self.pool) + 1))(*self.pool),
        )
        self.state.slots, self.state.rows, self.state.pool = map(ctypes.addressof, self.pointers)

    def _row(self, name: str) -> Array:
        services = self.services
        if name in ("shared_base", "local_base"):
            return getattr(services, name).astype(np.int64)
        return services.special(name).astype(np.uint32)

    def _constant(self, kind: str, what: str, *arguments: str) -> int:
        """Bits of a constant of the launch."""
        services = self.services
        if what in ("low", "high"):
            bounds: tuple[int, int] = getattr(services.memory, arguments[0])
            return bounds[what == "high"]
        name, offset = ast.literal_eval(arguments[0]), ast.literal_eval(arguments[1])
        if what == "argument":
            value = services.argument(name, offset, np.dtype(kind))
        else:
            value = getattr(services, what)(name, offset).astype(kind)
        return int(np.array([value]).view(f"u{SIZES[kind]}")[0])

    def call(self, number: int, count: int) -> None:
        """A function that NumPy computes, on the active threads."""
        call = self.tables.shared.calls[number]
        try:
            with np.errstate(all="ignore"):
                answer = call.function(*(self._given(v, count) for v in call.given))
            for part, result in zip(
                answer if isinstance(answer, tuple) else (answer,), call.results, strict=True
            ):
                self.slots[result.slot].view(result.kind)[:count] = part
                self.same[result.slot] = 0
        except BaseException as problem:  # noqa: BLE001 - it must not cross C; raised behind it
            self.problem, self.state.failed = problem, 1

    def _given(self, value: Value, count: int) -> Array:
        if self.same[value.slot]:
            return self.scalars[value.slot : value.slot + 1].view(value.kind)[0]
        place = self.pointers[0][value.slot]  # of a register, where the slot stands for it
        held = (ctypes.c_uint8 * (count * SIZES[value.kind])).from_address(place)
        return np.ctypeslib.as_array(held).view(value.kind)

    def advance(self, here: int | None, everyone: Array | None, steps: int, jumps: int) -> tuple[bool, Any]:
        """Go on as far as the engine can. Whether the launch has ended; where all threads are, their mask,
        and the counts, as the machine keeps them. Raises Stopped, MemoryError."""
        state, services, at = self.state, self.services, self.at
        at.pc = np.ascontiguousarray(at.pc)
        state.pc, state.alive = at.pc.ctypes.data, at.alive.ctypes.data
        state.parked, state.resting = at.parked.ctypes.data, services.resting.ctypes.data
        state.here, state.all_alive = -1 if here is None else here, everyone is None
        state.steps, state.jumps = steps, jumps
        detector, order = services.detector, services.order
        log = detector.pending if detector is not None else self.banks.log if self.banks else None
        state.log = None if log is None else ctypes.addressof(log.columns)  # type: ignore[attr-defined]
        state.sequence, state.tick = order.sequence, self.common.number(order.ticks)
        ended = self.library.advance(ctypes.byref(state)) == 0
        order.sequence = state.sequence
        if state.faults_count:
            self._faults()
        if state.failed:
            raise self.problem or MemoryError()
        now = None if state.here < 0 else state.here
        mask = None if now is None or state.all_alive else at.alive.copy()
        return ended, (now, mask, state.steps, state.jumps)

    @property
    def is_full(self) -> bool:
        """The log is as long as memory allows at this pace: a loop without end goes on in NumPy."""
        detector = self.services.detector
        return detector is not None and detector.pending.columns.entries > _MOST_LOGGED  # type: ignore[attr-defined]

    def _faults(self) -> None:
        state = self.state
        for row in (FaultRow * state.faults_count).from_address(state.faults):
            fault = self.services.faults.setdefault(
                row.number, Fault(row.number, row.thread, row.address, bool(row.misaligned))
            )
            fault.count += row.count
            fault.furthest = max(fault.furthest, row.furthest)
            self.faults[row.number] = 0
        state.faults_count = 0


def _pointers(arrays: list[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))
