"""Executes the instructions of one thread at a time on a memory; exact integers, or not known.

A thread that needs a value that nobody knows (floating point, uninitialised shared memory) stops there. What
is told of accesses, when a thread waits and how conditions come out that nobody knows is for the clients:
``run`` has many threads in turns on one memory, ``replay`` one alone.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

from attrs import define, field

from cuda_lsp.ir.atomics import AtomicRow, updated, updated_real
from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.ir.types import Float, Int, Type
from cuda_lsp.model import Dim3, Mode, Site, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.exact.code import (
    Assign,
    Branch,
    Close,
    Code,
    Demand,
    Jump,
    Keep,
    Region,
    Touch,
    Wait,
)
from cuda_lsp.static.exact.memory import Held, Memory
from cuda_lsp.static.exact.threads import Thread, memory_base
from cuda_lsp.static.exact.values import Evaluate, Value

Choice = tuple[Site, bool]


class Status(enum.Enum):
    READY = "ready"
    WAITING = "waiting"
    DONE = "done"
    STUCK = "stuck"  # it needs a value that nobody knows
    FROZEN = "frozen"  # before an access, while others go on


class Excluded(Exception):
    """The run violates what the kernel states as a fact."""


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
    places: dict[int, tuple[Memory, Held, int]] = field(factory=dict[int, tuple[Memory, Held, int]])
    """Where arrays are, by ``id``: the memory, the object there, and where in it the array starts."""
    chosen: list[tuple[Region, Choice]] = field(factory=list[tuple[Region, Choice]])
    passed: int = 0  # barriers of the block
    turns: int = 0  # since the last wait
    grouped: bool = False  # passed a barrier of lanes that nobody knows
    touches: int = 0  # watched accesses
    asked: dict[tuple[Array, int], float] = field(factory=dict[tuple[Array, int], float])
    """What the thread read of what memory held when the kernel started."""
    drawn: dict[tuple[Array, int], float] = field(factory=dict[tuple[Array, int], float])
    """What a place held then from which its atomics drew, and which nothing else has written."""
    drew: bool = False  # what an atomic found: which thread comes first decides it

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(choice for _, choice in self.chosen)


@define(eq=False)
class Machine:
    """Executes the instructions of one thread at a time.

    ``choice``: the outcome of every ``if`` whose condition nobody knows; None: they are passed over.
    """

    code: Code
    memory: Memory
    choice: bool | None = None

    # -- what a client decides

    def meets(self, t: Runner, i: Touch, array: Array, offset: int, size: int) -> bool:
        """The thread is about to access these bytes of an array; False: it stops here."""
        raise NotImplementedError

    def ignores(self, arrays: Collection[Array], writes: bool) -> bool:
        """An access somewhere in one of the arrays (none: anywhere) need not be seen."""
        raise NotImplementedError

    def waits(self, t: Runner, i: Wait) -> bool:
        """The thread comes to a barrier; whether it has to wait."""
        raise NotImplementedError

    def chooses(self, t: Runner, i: Branch) -> bool | None:
        """The outcome of a condition that nobody knows; None: what it decides over is passed over."""
        raise NotImplementedError

    def goes_round(self, t: Runner, i: Jump) -> bool:
        """A loop whose rounds are counted begins another one; False: it stops here."""
        raise NotImplementedError

    # -- execution

    def advance(self, t: Runner, most: int) -> int:
        """Executes at most so many instructions of a thread, until it waits, stops or ends; returns how many.

        Raises ``Excluded`` when it contradicts the kernel's assumptions.
        """
        code = self.code.instructions
        end, steps = len(code), 0
        while t.pc < end:
            steps += 1
            if steps > most:
                break
            i = code[t.pc]
            if isinstance(i, Assign):
                t.held[i.slot] = i.value(t)
            elif isinstance(i, Touch):
                if not self._touch(t, i):
                    break
            elif isinstance(i, Branch):
                if not self._branch(t, i):
                    break
                continue
            elif isinstance(i, Jump):
                if i.rounds is not None and isinstance(rounds := t.held[i.rounds], int):
                    if not self.goes_round(t, i):
                        break
                    t.held[i.rounds] = rounds + 1
                t.pc = i.target[0]
                continue
            elif isinstance(i, Close):
                if t.chosen and t.chosen[-1][0] is i.region:
                    t.chosen.pop()
                    if not self._pass_over(t, i.region):
                        break
            elif isinstance(i, Wait):
                t.pc += 1
                if self.waits(t, i):
                    break
                continue
            elif isinstance(i, Demand):
                if not i.condition(t):
                    raise Excluded
            elif isinstance(i, Keep):
                if _leaves(t, i):
                    t.status = Status.STUCK  # out of bounds; what others do before it is real
                    break
            else:
                t.status = Status.STUCK
                break
            t.pc += 1
        else:
            t.status = Status.DONE
        return steps

    def _branch(self, t: Runner, i: Branch) -> bool:
        outcome, chosen = i.condition(t), None
        if outcome is None:
            outcome = chosen = self.chooses(t, i)
            if chosen is None:
                t.pc = i.region.end[0]
                return self._pass_over(t, i.region)
        if i.choice is not None:
            t.held[i.choice] = chosen
        t.pc = t.pc + 1 if outcome else i.target[0]
        return True

    def _pass_over(self, t: Runner, region: Region) -> bool:
        """Nobody knows what is done there; False: nor what it may be."""
        if region.passable and all(self._lost(t, x.root, x.arrays, x.writes) for x in region.accesses):
            for slot in region.slots:
                t.held[slot] = None
            return True
        t.status = Status.STUCK
        return False

    def _lost(self, t: Runner, root: Evaluate | None, arrays: Collection[Array], writes: bool) -> bool:
        """An access somewhere in an array; False: it may be to memory that matters."""
        where = root(t) if root is not None else None
        arrays = (where[0],) if isinstance(where, tuple) else arrays
        if not self.ignores(arrays, writes):
            return False
        for array in arrays if writes else ():
            memory, object, _ = self.place(t, array)
            memory.forget(object)
        return True

    def place(self, t: Runner, array: Array) -> tuple[Memory, Held, int]:
        """The memory an array is in, the object there, and where in it the array starts."""
        known = t.places.get(id(array))
        if known is None:
            known = t.places[id(array)] = self._placed(t, array)
        return known

    def _placed(self, t: Runner, array: Array) -> tuple[Memory, Held, int]:
        if array.space is Space.LOCAL:
            if t.local is None:
                t.local = Memory()
            return t.local, t.local.held(array), 0
        base, shift = memory_base(array)
        of = (t.block, base) if array.space is Space.SHARED else base
        return self.memory, self.memory.held(of), shift

    def _touch(self, t: Runner, i: Touch) -> bool:
        where, size = i.pointer(t), i.size if isinstance(i.size, int) else i.size(t)
        result: Value = None
        if not isinstance(where, tuple) or where[1] is None or not isinstance(size, int):
            if not i.part and not self._lost(t, i.pointer, (), i.mode.writes):
                t.status = Status.STUCK
                return False
        elif self.meets(t, i, where[0], where[1], size):
            result = self._perform(t, i, where[0], where[1], size)
        else:
            return False
        if i.slot is not None:
            t.held[i.slot] = result
        return True

    def _perform(self, t: Runner, i: Touch, array: Array, offset: int, size: int) -> Value:
        """What the access does to memory; what it finds there."""
        memory, object, shift = self.place(t, array)
        start = offset + shift
        if i.type is None:  # a copy
            if i.mode.writes:
                memory.forget(object)
            return None
        if i.mode is Mode.WRITE and not memory.keeps:
            return None
        if i.parts:
            for at, width, value in i.parts:
                memory.store(object, start + at, width, None if t.chosen else value(t))
            return None
        if i.value is not None:
            memory.store(object, start, size, None if t.chosen else i.value(t))
            return None
        if i.atomic is None:
            value = memory.load(object, array, start, i.type) if i.slot is not None else None
            if start in object.initially and isinstance(value, (int, float)):
                t.asked[array, start] = value
            return value
        operands = [operand(t) for operand in i.operands]
        row, type, known = i.atomic, i.type, not t.chosen
        found = memory.update(
            object, array, start, type, lambda old: _updated(row, old, operands, type) if known else None
        )
        began = object.began.get(start)
        if i.slot is not None and isinstance(found, (int, float)):
            t.drew = True
            if isinstance(began, (int, float)):
                t.drawn[array, start] = began
        return found


def _leaves(t: Runner, i: Keep) -> bool:
    """The thread goes beyond a member array of a record in global memory."""
    index, where = i.index(t), i.pointer(t)
    if not isinstance(index, int) or not isinstance(where, tuple):
        return False
    return where[0].space is Space.GLOBAL and not 0 <= index < i.extent


def _updated(row: AtomicRow, old: Value, operands: Sequence[Value], type: Type) -> Value:
    if isinstance(type, Float):
        reals = [v if isinstance(v, float) else None for v in (old, *operands)]
        return updated_real(row, reals[0], reals[1:], type)
    if not isinstance(type, Int):
        return None
    number, *numbers = (v if isinstance(v, int) else None for v in (old, *operands))
    return updated(row, number, numbers, type)


def runners_of(code: Code, threads: Sequence[Thread], arguments: Mapping[str, int]) -> list[Runner]:
    """Threads at the kernel's first statement."""
    pointees = {array.param: array for array in code.kernel.arrays if array.param is not None}
    initial: list[Value] = [None] * code.slots
    for var, slot in code.params:
        if var in pointees:
            initial[slot] = (pointees[var], 0)
        elif isinstance(var.type, Int) and var.name in arguments:
            initial[slot] = var.type.wrap(arguments[var.name])
        elif isinstance(var.type, Float) and code.floats:
            initial[slot] = budgets.ORDINARY_REAL
    blocks: dict[Dim3, int] = {}
    return [
        Runner(thread, number, blocks.setdefault(thread.bid, len(blocks)), list(initial), thread.axes)
        for number, thread in enumerate(threads)
    ]
