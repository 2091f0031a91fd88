"""A real schedule of a kernel: threads run in turns on one memory, statement by statement.

Every run is a sequentially consistent execution that the hardware may show: barriers wait for everybody
they order, atomics are atomic, a lock that is held is not taken. What a thread does next depends on values
that are exact; a thread that needs one that nobody knows (floating point, uninitialised shared memory)
stops there, and with it whoever waits for it.

Theory: two conflicting accesses that two threads may perform next in one reachable state of a
sequentially consistent execution are a data race (Netzer and Miller 1992, "What are race conditions?").
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir.atomics import AtomicRow, updated
from cuda_lsp.ir.program import Array, Axis, Barrier, BarrierScope
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.model import Dim3, LaunchConfig, Mode, Site, Space
from cuda_lsp.static import work
from cuda_lsp.static.schedules.code import (
    Assign,
    Branch,
    Close,
    Code,
    Demand,
    Jump,
    Region,
    Touch,
    Wait,
)
from cuda_lsp.static.schedules.exact_values import Value
from cuda_lsp.static.schedules.real_memory import Memory
from cuda_lsp.static.solver.witness import Thread, memory_base

MAX_STEPS = 1_500_000
"""Instructions of one run, all threads together."""

_TURN = 4_000  # instructions of one thread until others have their turn
_TURNS = 3  # without a barrier: a thread that takes more is not waited for

Choice = tuple[Site, bool]


class Status(enum.Enum):
    READY = "ready"
    WAITING = "waiting"
    DONE = "done"
    STUCK = "stuck"  # it needs a value that nobody knows
    FROZEN = "frozen"  # before an access, while others go on


class Excluded(Exception):
    """The run violates what the kernel states as a fact."""


class Unfinished(Exception):
    """The run takes too long."""


@define(eq=False)
class Runner:
    """One thread: where it stands and what it holds."""

    thread: Thread
    number: int
    block: int
    held: list[Value]
    axes: Mapping[Axis, int]
    pc: int = 0
    status: Status = Status.READY
    wait: Wait | None = None
    mask: int | None = None
    offered: tuple[Value, ...] = ()
    offers: Mapping[int, Value] = field(factory=dict[int, Value])
    local: Memory | None = None
    chosen: list[tuple[Region, Choice]] = field(factory=list[tuple[Region, Choice]])
    passed: int = 0  # barriers of the block
    turns: int = 0  # since the last wait
    grouped: bool = False  # passed a barrier of lanes that nobody knows
    touches: int = 0  # watched accesses
    asked: dict[tuple[Array, int], int] = field(factory=dict[tuple[Array, int], int])
    """What the thread read of what memory held when the kernel started."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(choice for _, choice in self.chosen)


@frozen(eq=False)
class Pending:
    """An access that a thread performs next."""

    runner: Runner
    touch: Touch
    array: Array
    base: Hashable
    start: int
    stop: int
    number: int  # of the thread's watched accesses
    value: Value = None


Watch = Callable[[Pending], bool]
"""Told of each access at a watched place before it happens; True: the thread stops there."""


@define(eq=False)
class Schedule:
    """Threads of some blocks, run one after another from wait to wait, in the order given.

    ``choice``: the outcome of every ``if`` whose condition nobody knows, True also: one round of such loops;
    None: they are passed over. ``watched``: the accesses that ``watch`` is told of. ``whole``: there are no
    other blocks. ``enough``: asked when threads have waited once, twice, four times…: whether to end the run.
    """

    code: Code
    runners: list[Runner]
    memory: Memory
    watched: frozenset[Touch]
    watch: Watch
    choice: bool | None = None
    until: float = float("inf")
    warp_size: int = 32
    whole: bool = False
    enough: Callable[[], bool] = lambda: False
    steps: int = 0
    passed_over: bool = False  # some ``if`` on what nobody knows

    def run(self) -> None:
        """Until nobody can go on, or it is enough. Raises ``Excluded`` or ``Unfinished``."""
        for demand in self.code.demands:
            if self.runners and demand(self.runners[0]) == 0:
                raise Excluded
        order = list(self.runners)
        for times in itertools.count(1):
            moved = False
            for runner in order:
                if runner.status is Status.READY:
                    moved = True
                    self._advance(runner)
            if not self._release() and not moved:
                return
            if times & (times - 1) == 0 and self.enough():
                return

    def _advance(self, t: Runner) -> None:
        code = self.code.instructions
        end, steps = len(code), 0
        while t.pc < end:
            steps += 1
            if steps > _TURN:
                t.turns += 1
                if t.turns >= _TURNS:
                    t.status = Status.STUCK
                break
            i = code[t.pc]
            if isinstance(i, Touch):
                if i.mode is Mode.READ and i.slot is None and i not in self.watched:
                    t.pc += 1
                    continue
                if not self._touch(t, i):
                    break
            elif isinstance(i, Assign):
                t.held[i.slot] = i.value(t)
            elif isinstance(i, Branch):
                if not self._branch(t, i):
                    break
                continue
            elif isinstance(i, Jump):
                t.pc = i.target[0]
                continue
            elif isinstance(i, Close):
                if t.chosen and t.chosen[-1][0] is i.region:
                    t.chosen.pop()
                    self._forget(t, i.region)
            elif isinstance(i, Wait):
                t.pc += 1
                self._wait(t, i)
                break
            elif isinstance(i, Demand):
                if not i.condition(t):
                    raise Excluded
            else:
                t.status = Status.STUCK
                break
            t.pc += 1
        else:
            t.status = Status.DONE
        self.steps += steps
        work.DONE.instructions += steps
        if self.steps > MAX_STEPS or work.now() > self.until:
            raise Unfinished

    def _branch(self, t: Runner, i: Branch) -> bool:
        outcome = i.condition(t)
        if outcome is None:
            if not i.region.passable:
                t.status = Status.STUCK
                return False
            self.passed_over = True
            again = bool(t.chosen) and t.chosen[-1][0] is i.region
            if self.choice is None or again or not (i.chosen or self.choice):
                if again:
                    t.chosen.pop()
                self._forget(t, i.region)
                t.pc = i.region.end[0]
                return True
            t.chosen.append((i.region, (i.region.site, self.choice)))
            outcome = self.choice
        t.pc = t.pc + 1 if outcome else i.target[0]
        return True

    def _forget(self, t: Runner, region: Region) -> None:
        """Nobody knows what was done there."""
        for store in region.stores:
            where = store(t)
            if isinstance(where, tuple):
                memory, base, _ = self._place(t, where[0])
                memory.forget(base)
        for slot in region.slots:
            t.held[slot] = None

    def _place(self, t: Runner, array: Array) -> tuple[Memory, Hashable, int]:
        if array.space is Space.LOCAL:
            if t.local is None:
                t.local = Memory()
            return t.local, array, 0
        base, shift = memory_base(array)
        return self.memory, (t.block, base) if array.space is Space.SHARED else base, shift

    def _touch(self, t: Runner, i: Touch) -> bool:
        where = i.pointer(t)
        if not isinstance(where, tuple):
            if not i.mode.writes:
                if i.slot is not None:
                    t.held[i.slot] = None
                return True
            t.status = Status.STUCK  # it may write anywhere
            return False
        array, offset = where
        memory, base, shift = self._place(t, array)
        size = i.size if isinstance(i.size, int) else i.size(t)
        if offset is None or not isinstance(size, int):
            if i.mode.writes:
                memory.forget(base)
            if i.slot is not None:
                t.held[i.slot] = None
            return True
        if offset < 0 or (array.size is not None and not array.dynamic and offset + size > array.size):
            t.status = Status.STUCK  # out of bounds is told elsewhere; what others do before it is real
            return False
        offset += shift
        value = i.value(t) if i.value is not None else None
        if i in self.watched and array.space in (Space.SHARED, Space.GLOBAL) and size > 0:
            t.touches += 1
            pending = Pending(t, i, array, base, offset, offset + size, t.touches, value)
            if self.watch(pending):
                t.touches -= 1
                t.status = Status.FROZEN
                return False
        if i.type is None:  # a copy
            if i.mode.writes:
                memory.forget(base)
        elif i.mode is Mode.READ:
            if i.slot is not None:
                loaded = t.held[i.slot] = memory.load(base, array, offset, i.type)
                if isinstance(loaded, int) and (base, offset) in memory.initially:
                    t.asked[array, offset] = loaded
        elif i.mode is Mode.WRITE:
            memory.store(base, offset, size, None if t.chosen else value)
        else:
            old = memory.load(base, array, offset, i.type)
            operands = [operand(t) for operand in i.operands]
            new = None if t.chosen or i.atomic is None else _updated(i.atomic, old, operands, i.type)
            memory.store(base, offset, size, new)
            if i.slot is not None:
                t.held[i.slot] = old
        return True

    # -- waiting

    def _wait(self, t: Runner, i: Wait) -> None:
        if i.barrier.scope is BarrierScope.COALESCED:
            t.grouped = True  # order among lanes that nobody knows: none of them is accused
            t.offers = {}
            return
        mask = i.mask(t) if i.mask is not None else None
        t.status, t.wait = Status.WAITING, i
        t.mask = mask if isinstance(mask, int) else None
        t.offered = tuple(offer(t) for offer in i.offered)

    def _release(self) -> bool:
        groups: dict[Hashable, list[Runner]] = {}
        for t in self.runners:
            if t.status is Status.WAITING and t.wait is not None:
                groups.setdefault(self._group(t, t.wait.barrier), []).append(t)
        released = False
        for group in groups.values():
            released |= self._released(group)
        return released

    def _group(self, t: Runner, barrier: Barrier) -> Hashable:
        scope = barrier.scope
        if scope in (BarrierScope.BLOCK, BarrierScope.NAMED):
            return (scope, t.block)
        if scope is BarrierScope.TILE and barrier.size:
            return (scope, t.block, t.thread.linear // barrier.size)
        if scope in (BarrierScope.TILE, BarrierScope.WARP):
            return (scope, t.block, t.thread.linear // self.warp_size, t.mask)
        return (scope,)

    def _released(self, waiting: Sequence[Runner]) -> bool:
        first = waiting[0]
        wait = first.wait
        if wait is None or any(t.wait is not wait for t in waiting[1:]):
            return False  # threads at different barriers: what happens is not defined
        wide = wait.barrier.scope not in (BarrierScope.TILE, BarrierScope.WARP)
        if wait.barrier.scope is BarrierScope.CLUSTER or (
            wait.barrier.scope is BarrierScope.GRID and not self.whole
        ):
            return False
        if len(waiting) < sum(1 for t in self.runners if self._expected(t, first, wait)):
            return False
        key = Axis.LANE
        offers = {
            (t.number if wide else t.axes[key]): t.offered[0] for t in waiting if t.offered
        }  # fmt: skip
        for t in waiting:
            t.status, t.wait, t.offers = Status.READY, None, offers
            t.passed += wide
            t.turns = 0
        return True

    def _expected(self, t: Runner, first: Runner, wait: Wait) -> bool:
        """Whether the barrier waits for this thread: those that have ended are not waited for."""
        if t.status is Status.DONE:
            return False
        scope = wait.barrier.scope
        if scope is BarrierScope.GRID:
            return True
        if t.block != first.block:
            return False
        if scope in (BarrierScope.BLOCK, BarrierScope.NAMED):
            return True
        size = wait.barrier.size if scope is BarrierScope.TILE and wait.barrier.size else self.warp_size
        if t.thread.linear // size != first.thread.linear // size:
            return False
        return first.mask is None or bool(first.mask >> t.axes[Axis.LANE] & 1)


def _updated(row: AtomicRow, old: Value, operands: Sequence[Value], type: Type) -> Value:
    if not isinstance(type, Int):
        return None
    number, *numbers = (v if isinstance(v, int) else None for v in (old, *operands))
    return updated(row, number, numbers, type)


Standing = tuple[Thread, Mapping[Axis, int]]
"""A thread and its built-in variables."""


def runners_of(code: Code, places: Sequence[Standing], arguments: Mapping[str, int]) -> list[Runner]:
    """Threads at the kernel's first statement."""
    pointees = {array.param: array for array in code.kernel.arrays if array.param is not None}
    initial: list[Value] = [None] * code.slots
    for var, slot in code.params:
        if var in pointees:
            initial[slot] = (pointees[var], 0)
        elif isinstance(var.type, Int) and var.name in arguments:
            initial[slot] = var.type.wrap(arguments[var.name])
    blocks: dict[Dim3, int] = {}
    runners: list[Runner] = []
    for thread, axes in places:
        number = blocks.setdefault(thread.bid, len(blocks))
        runners.append(Runner(thread, len(runners), number, list(initial), axes))
    return runners


def threads_of(
    launch: LaunchConfig, grid: Dim3, places: Sequence[tuple[Dim3, Dim3]], warp_size: int
) -> list[Standing]:
    """Threads by block and thread index, with the built-in variables as numbers."""
    threads = (Thread(tid, bid, launch.block, grid, warp_size) for bid, tid in places)
    return [(thread, {axis: thread.axis(axis) for axis in Axis}) for thread in threads]
