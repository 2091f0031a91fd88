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
from cuda_lsp.static import work
from cuda_lsp.static.exact.code import Branch, Touch, Wait, whole_code
from cuda_lsp.static.exact.machine import Choice, Machine, Runner, Status, runners_of
from cuda_lsp.static.exact.memory import Given, Initial
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.exact.values import Value

MAX_STEPS = 80_000
"""Instructions of one replay."""

_TURN = 256  # instructions between two looks at the clock


Lock = tuple[Value, Scope | None]
"""Where it is, and whom its holders' fences order."""


@frozen
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


class Cut(Exception):
    """The thread did not come to its end; ``run``: what it did until then."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


class NeedsData(Cut):
    """The run depends on what memory holds, or on a value nobody knows."""


class TooLong(Cut):
    """The run exceeds its budget of instructions."""


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
        steps = machine.advance(runner, _TURN)
        done += steps
        work.DONE.instructions += steps
        if steps > _TURN and (done > MAX_STEPS or work.now() > until):
            raise TooLong(machine.run)
    if runner.status is not Status.DONE:
        raise NeedsData(machine.run)
    return machine.run


@define(eq=False)
class _Alone(Machine):
    interesting: frozenset[Array] = frozenset()
    run: Run = field(factory=Run)

    def meets(self, t: Runner, i: Touch, array: Array, offset: int, size: int) -> bool:
        """The access is logged, wherever in or outside its array."""
        if i.part or array.space not in (Space.SHARED, Space.GLOBAL):
            return True
        inside, held = i.inside, t.held
        locks = frozenset((held[slot], scope) for slot, scope in inside.locks)
        if any(not isinstance(place, tuple) or place[1] is None for place, _ in locks):
            t.status = Status.STUCK  # nobody knows whom the lock keeps away
            return False
        chosen = next(((x, bool(v)) for slot, x in inside.choices if (v := held[slot]) is not None), None)
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

    def waits(self, t: Runner, i: Wait) -> bool:
        """It never does: what it would wait for is logged."""
        self.run.barriers.append(_passed(i.barrier, i.mask(t) if i.mask is not None else None))
        return False


def _passed(s: Barrier, mask: object) -> PassedBarrier:
    """A barrier object as one of the block: any other is not replayed (``Summary.locks``)."""
    if s.scope is BarrierScope.OBJECT:
        return PassedBarrier(BarrierScope.BLOCK, None, None, True)
    return PassedBarrier(s.scope, s.size, mask if isinstance(mask, int) else None, s.count is None)
