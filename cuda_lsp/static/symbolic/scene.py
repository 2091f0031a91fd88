"""What the generic thread knows while its kernel is walked, and the names that unknown values get."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Var
from cuda_lsp.ir.types import Pointer, Type
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Claim, Drawing, Event, Fact, Held, Member, Place
from cuda_lsp.static.symbolic.filled import Filled
from cuda_lsp.static.symbolic.objects import WholeObjects
from cuda_lsp.static.symbolic.terms import Level, Term
from cuda_lsp.static.symbolic.values import NOWHERE, Value, type_range

WAITING = "what a loop waits for, which may act as a lock"


class TooLarge(Exception):
    """The kernel exceeds the walk's budget."""


@frozen(eq=False)
class Vote:
    """``word``: the vote as a term. ``voter``: whether the generic thread is in it.

    ``label``: what lanes have in common whose word it is; None: all that come by have one.
    """

    word: Term
    voter: Term
    label: Term | None = None


@frozen(eq=False)
class Stored:
    """A store to an element, when ``guard``."""

    guard: Term
    value: Term | None  # None: it varies, or is not known


@frozen(eq=False)
class Drawn:
    """A number (an application) that was drawn when ``guard``; ``past``: a barrier came since."""

    number: Term
    amount: Term
    guard: Term
    past: bool = False


@frozen(eq=False)
class Cell:
    """One element of ``size`` bytes since the last barrier.

    ``known``: its value for the whole block, unless ``stored`` to. ``least``: a bound from below.
    """

    size: int
    known: Term | None = None
    least: int | None = None
    stored: tuple[Stored, ...] = ()
    drawn: tuple[Drawn, ...] = ()


@frozen(eq=False)
class WarpCell:
    """The element of ``size`` bytes that a warp has to itself. ``known``: to all its lanes."""

    size: int
    stored: Stored
    known: Term | None = None


@frozen(eq=False)
class Cells:
    """The elements of one array that something is known of, by offset in bytes.

    ``by_warp``: by offsets that are one for a warp and may differ between warps.
    """

    by_offset: Mapping[int, Cell] = field(factory=dict[int, Cell])
    by_warp: Mapping[Term, WarpCell] = field(factory=dict[Term, WarpCell])


Versions = Mapping[Array, tuple[int, Level]]
"""Which version of memory an array is in, and among which threads that is one."""


@define
class State:
    """What the generic thread knows at one point of the program."""

    values: dict[Var, Value] = field(factory=dict[Var, Value])
    alive: Term = t.TRUE  # has not left the enclosing blocks, given the path
    versions: dict[Array, tuple[int, Level]] = field(factory=dict[Array, tuple[int, Level]])
    local: dict[Array, dict[Term, tuple[int, Value]]] = field(
        factory=dict[Array, dict[Term, tuple[int, Value]]]
    )
    filled: dict[Array, Filled] = field(factory=dict[Array, Filled])

    def copy(self) -> State:
        """The same knowledge, to go on from by itself."""
        local = {array: dict(cells) for array, cells in self.local.items()}
        return State(dict(self.values), self.alive, dict(self.versions), local, dict(self.filled))

    def forget(self, array: Array) -> None:
        """What elements of an array of the thread's own hold is not known any more."""
        self.local.pop(array, None)
        self.filled.pop(array, None)


@define
class Scene:
    """One walk of a kernel under one launch. ``unroll``: rounds of a loop walked one by one (0: none).

    ``unrolled``: some loop was.
    """

    axes: Mapping[ir.Axis, Term]
    arguments: Mapping[Var, Value]
    unroll: int = 0
    unrolled: bool = False
    state: State = field(factory=State)
    path: Term = t.TRUE
    assumed: Term = t.TRUE
    members: tuple[Member, ...] = ()
    events: list[Event] = field(factory=list[Event])
    iterators: tuple[Term, ...] = ()
    facts: dict[str, Fact] = field(factory=dict[str, Fact])
    unknowns: dict[str, str] = field(factory=dict[str, str])
    changed: dict[str, Var] = field(factory=dict[str, Var])
    loaded: set[str] = field(factory=set[str])
    sizes: dict[str, frozenset[str]] = field(factory=dict[str, frozenset[str]])
    cut: dict[tuple[Term, Term], None] = field(factory=dict[tuple[Term, Term], None])
    slots: dict[str, Drawing] = field(factory=dict[str, Drawing])
    claims: dict[str, Claim] = field(factory=dict[str, Claim])
    votes: dict[str, Vote] = field(factory=dict[str, Vote])
    places: dict[str, Place] = field(factory=dict[str, Place])
    limits: dict[str, Fact] = field(factory=dict[str, Fact])
    invariants: dict[str, Fact] = field(factory=dict[str, Fact])
    lasting: dict[Term, Term] = field(factory=dict[Term, Term])  # conditions, and what they say at round k
    cells: dict[tuple[Array, int], Cells] = field(factory=dict[tuple[Array, int], Cells])
    tainted: set[str] = field(factory=set[str])
    unsteady: set[Array] = field(factory=set[Array])  # counters that something may set back
    counters: frozenset[Array] = frozenset()  # those that begin at 0 or above, and only grow
    tainted_arrays: set[Array] = field(factory=set[Array])
    reasons: dict[str, None] = field(factory=dict[str, None])
    left: dict[int, list[tuple[Term, State]]] = field(factory=dict[int, list[tuple[Term, State]]])
    returned: Term = t.FALSE  # the generic thread has left the kernel
    written: frozenset[Array] = frozenset()
    reached: frozenset[Array] = frozenset()  # other blocks of a cluster may store there, too
    fenced: bool = False
    held: tuple[Held, ...] = ()
    locks: str = ""  # what may order threads and is not followed, for people
    waiting: frozenset[int] = frozenset()  # id() of loops that wait for what other threads store
    acquiring: frozenset[int] = frozenset()  # id() of atomics in loops that may take a lock
    claimed: frozenset[Array] = frozenset()  # no word of them is ever given back
    cleared: Mapping[int, int] = field(factory=dict[int, int])  # … but behind barriers, in so many loops
    arrives: bool = False  # some threads arrive at a named barrier without waiting
    named_apart: bool = False  # a named barrier may be met at several places
    objects: WholeObjects = field(factory=lambda: WholeObjects(None, regular=False))
    counter: int = 0
    statements: int = 0
    depth: int = 0
    deadline: float = math.inf  # work.now

    # -- naming

    def number(self) -> int:
        """The next number, for a name."""
        self.counter += 1
        return self.counter

    def fresh(self, what: str, level: Level, type: Type, loaded: bool = False) -> Value:
        """A value that nothing is known of, one per execution of this program point.

        ``loaded``: data from memory is part of it.
        """
        if isinstance(type, Pointer):
            return NOWHERE
        name = f"?{self.number()}"
        self.unknowns[name] = what
        if loaded:
            self.loaded.add(name)
        return t.apply(name, level, self.iterators, *type_range(type))

    def conditions(self) -> Iterator[Term]:
        """What holds here."""
        for part in (self.path, self.state.alive, self.assumed):
            yield from t.conjuncts(part)

    def lookup(self, var: Var) -> Value:
        """What the variable holds; one that was never assigned holds an unknown value."""
        known = self.state.values.get(var)
        if known is None:
            known = self.arguments.get(var)
        if known is None:
            known = self.fresh(f"what `{var.name}` holds before any assignment", Level.THREAD, var.type)
            self.state.values[var] = known
        return known

    @property
    def guard(self) -> Term:
        """The condition under which the generic thread is here."""
        return t.and_(self.path, self.state.alive)

    @property
    def block_threads(self) -> int | None:
        """Of a block; None: not known."""
        x, y, z = (self.axes[axis] for axis in ir.BDIM)
        return x.value * y.value * z.value if x.is_const and y.is_const and z.is_const else None

    def disturb(self, arrays: Iterable[Array]) -> None:
        """What these arrays hold is not known any more."""
        for array in in_order(arrays):
            self.state.versions[array] = (self.number(), Level.THREAD)


def memory_name(array: Array) -> str:
    """The function that a read-only array's contents are: byte offset → value."""
    return f"{array.name}[{array.id}]"


def in_order(arrays: Iterable[Array]) -> list[Array]:
    """The arrays as the program has them: the numbers that they are given decide the order of terms."""
    return sorted(arrays, key=lambda array: array.id)
