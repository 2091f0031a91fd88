"""A solver's model is not believed: each of its threads is run again, alone, on plain integers.

The replay takes nothing from the symbolic walk, nor from any other analysis of the kernel. What memory holds
is not known but for what is said of it; a thread whose way or addresses need more stops (``NeedsData``),
unless what it would pass over holds neither barrier, jump nor access of interest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from attrs import define, field, frozen

from cuda_lsp.ir.program import Array, Barrier, BarrierScope, Kernel
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.code import Branch, Jump, Touch, Wait, whole_code
from cuda_lsp.static.exact.machine import Choice, Machine, Runner, Status, runners_of
from cuda_lsp.static.exact.memory import Given, Initial
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.exact.values import Value

Lock = tuple[Value, Scope | None]
"""Where it is, and whom its holders' fences order."""


@define(eq=False)  # not frozen, as there are many: that takes four times as long to make
class ThreadAccess:
    """One access of one thread, to the bytes from ``start`` to ``stop`` of an array.

    ``passed``: how many barriers of its log came before. ``rounds``: how many rounds each enclosing loop had
    finished, outermost first. ``chosen``: the innermost condition on data under which it happens, and the
    outcome taken. ``held``: locks.
    """

    touch: Touch
    array: Array
    start: int
    stop: int
    passed: int
    chosen: Choice | None = None
    rounds: tuple[int, ...] = ()
    held: frozenset[Lock] = frozenset()

    @property
    def site(self) -> Site:
        return self.touch.site

    @property
    def mode(self) -> Mode:
        return self.touch.mode


@frozen
class PassedBarrier:
    """``mask``: of lanes, None: not known. ``everyone``: all threads of the block take part."""

    scope: BarrierScope
    size: int | None
    mask: int | None
    everyone: bool


@define
class Run:
    """What one thread did."""

    accesses: list[ThreadAccess] = field(factory=list[ThreadAccess])
    barriers: list[PassedBarrier] = field(factory=list[PassedBarrier])


_NO_LOCKS: frozenset[Lock] = frozenset()


class Cut(Exception):
    """The thread did not come to its end; ``run``: what it did until then."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


class NeedsData(Cut):
    """The run depends on what memory holds, or on a value nobody knows."""


class TooLong(Cut):
    """The run exceeds its budget of instructions, or has no end."""


def replay(
    kernel: Kernel,
    thread: Thread,
    arguments: Mapping[str, int],
    interesting: frozenset[Array],
    memory: Initial | None = None,
    choice: bool | None = None,
    until: float = math.inf,
    floats: bool = False,
) -> Run:
    """Runs one thread alone; what accesses to ``interesting`` arrays it does is known in full.

    ``memory``: what it holds; None: nobody knows. ``choice``: the outcome of every ``if`` whose condition is
    not known (None: such a run stops). ``until``: when it is too late to go on (``work.now``). ``floats``:
    they are computed as well (``values``). Raises ``NeedsData`` or ``TooLong``.
    """
    code = whole_code(kernel, floats)
    (runner,) = runners_of(code, [thread], arguments)
    machine = _Alone(code, Given(memory), choice, interesting)
    done = 0
    while runner.status is Status.READY:
        steps = machine.advance(runner, budgets.REPLAY_TURN)
        done += steps
        work.DONE.instructions += steps
        if steps > budgets.REPLAY_TURN and (done > budgets.REPLAY_INSTRUCTIONS or work.now() > until):
            raise TooLong(machine.run)
    if machine.endless:
        raise TooLong(machine.run)
    if runner.status is not Status.DONE:
        raise NeedsData(machine.run)
    return machine.run


@define(eq=False)
class _Alone(Machine):
    interesting: frozenset[Array] = frozenset()
    run: Run = field(factory=Run)
    passed: dict[tuple[Wait, Value], PassedBarrier] = field(factory=dict[tuple[Wait, Value], PassedBarrier])
    rounds: dict[Jump, list[Value]] = field(factory=dict[Jump, list[Value]])
    """What the thread held after the last round of each loop."""
    endless: bool = False

    def meets(self, t: Runner, i: Touch, array: Array, offset: int, size: int) -> bool:
        """The access is logged, wherever in or outside its array."""
        if i.part or array.space not in (Space.SHARED, Space.GLOBAL):
            return True
        inside, held = i.inside, t.held
        locks = frozenset((held[slot], scope) for slot, scope in inside.locks) if inside.locks else _NO_LOCKS
        if locks and any(not isinstance(place, tuple) or place[1] is None for place, _ in locks):
            t.status = Status.STUCK  # nobody knows whom the lock keeps away
            return False
        chosen = None
        for slot, site in inside.choices:
            if (outcome := held[slot]) is not None:
                chosen = site, bool(outcome)
                break
        rounds = tuple(n for slot in inside.rounds if isinstance(n := held[slot], int))
        done = ThreadAccess(i, array, offset, offset + size, len(self.run.barriers), chosen, rounds, locks)
        self.run.accesses.append(done)
        return True

    def ignores(self, arrays: Collection[Array], writes: bool) -> bool:
        """What is surely of no interest."""
        return bool(arrays) and not self.interesting.intersection(arrays)

    def chooses(self, t: Runner, i: Branch) -> bool | None:
        """As ``choice`` says, also where barriers and jumps hang on it."""
        return self.choice if i.chosen else None

    def goes_round(self, t: Runner, i: Jump) -> bool:
        """A round that leaves all as it was is followed by others like it: nothing here changes memory."""
        held = t.held.copy()
        held[i.rounds or 0] = None
        self.endless = t.local is None and self.rounds.get(i) == held
        self.rounds[i] = held
        if self.endless:
            t.status = Status.STUCK
        return not self.endless

    def waits(self, t: Runner, i: Wait) -> bool:
        """It never does: what it would wait for is logged."""
        mask = i.mask(t) if i.mask is not None else None
        if (i, mask) not in self.passed:
            self.passed[i, mask] = _passed(i.barrier, mask)
        self.run.barriers.append(self.passed[i, mask])
        return False


def _passed(s: Barrier, mask: object) -> PassedBarrier:
    """A barrier object as one of the block: any other is not replayed (``Summary.locks``)."""
    if s.scope is BarrierScope.OBJECT:
        return PassedBarrier(BarrierScope.BLOCK, None, None, True)
    return PassedBarrier(s.scope, s.size, mask if isinstance(mask, int) else None, s.count is None)
