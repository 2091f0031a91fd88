"""What a kernel does, as far as races can see: a tree of guarded accesses, barriers and loops.

This is the output of the symbolic walk (``walk``) and the input of the barrier intervals
(``intervals``).  Guards and offsets are terms for one generic thread (``terms``).
Source of the form: access traces between barriers, as in GPUVerify, PUG and Faial's memory access
protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import field, frozen

from cuda_lsp.ir.program import Array, BarrierPhase, BarrierScope, Var
from cuda_lsp.model import Mode, Scope, Site
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Term


@frozen(eq=False)
class Held:
    """A lock that the generic thread has: its place. ``scope``: whom it orders (``Lock``)."""

    array: Array
    offset: Term
    scope: Scope | None


@frozen(eq=False)
class Member:
    """``holds`` when element ``index`` of a member array lies in it; ``text``: that it does, for people."""

    index: Term
    holds: Term
    text: str

    def mapped(self, rewrite: Callable[[Term], Term]) -> Member:
        """The same of another round, or thread."""
        return Member(rewrite(self.index), rewrite(self.holds), self.text)


@frozen(eq=False)
class Access:
    """One memory access of the generic thread.

    ``offset``, ``size`` in bytes. ``order``: place in program text order. ``value``: what a store
    writes, when known. ``published``: set when a fence and an atomic ticket follow it.
    """

    array: Array
    offset: Term
    size: Term
    mode: Mode
    guard: Term
    site: Site
    order: int
    scope: Scope | None = None
    value: Term | None = None
    held: tuple[Held, ...] = ()
    copying: bool = False  # goes on until its copy is awaited
    team: bool = False  # by some thread of the block, which one is not told
    elementwise: bool = False  # an atomic on a vector, atomic in each element only
    members: tuple[Member, ...] = ()  # its place is in these arrays, unless it is out of bounds
    word: bool = False  # of several elements, at a multiple of its size: elsewhere the GPU ends the kernel


@frozen(eq=False)
class CopyEvent:
    """What the generic thread does about the copies it has under way, when ``guard``.

    ``pending`` None: they become a group (``bound``: of a barrier object's phase); else: all but so many of
    the latest groups are complete, -1: all copies.
    """

    guard: Term
    pending: int | None = None
    bound: bool = False


@frozen(eq=False)
class BarrierEvent:
    """A barrier that the generic thread passes when ``guard``. ``mask``: lane mask, None: all lanes.

    ``labels``: the mask is no word of bits but a number: one for the lanes that wait for one another.
    ``assured``: False where it may be none; it separates nothing then. ``returned``: of a ``__syncwarp`` of
    known lanes: whether the generic thread has left the kernel before it, as far as that is followed (what
    rounds before did is not); None: any other barrier.
    """

    scope: BarrierScope
    phase: BarrierPhase
    guard: Term
    site: Site
    mask: Term | None = None
    size: int | None = None
    key: Term | None = None  # NAMED: which barrier
    everyone: bool = True  # NAMED: no count given
    assured: bool = True
    completes: bool = False  # the copies that are bound to it
    labels: bool = False
    returned: Term | None = None


@frozen(eq=False)
class TicketEvent:
    """A device-scope fence followed by an atomic on global memory: what came before is published."""


@frozen(eq=False)
class LoopEvent:
    """``iterator`` counts rounds from 0; round k runs when ``runs`` (a term in ``iterator``).

    ``exit``: the round that was not completed (= number of completed rounds), an application whose
    defining facts stand in ``Summary.facts``. Guards of ``events`` include ``runs``, and not that no round
    before has left the loop. ``begun``: something may happen in that round, before a ``break`` or in the test
    that ends the loop. ``left``: a ``break`` or ``return`` may end it; ``leaving``: when one ends round k.
    """

    iterator: Term
    runs: Term
    exit: Term
    events: tuple[Event, ...]
    site: Site
    begun: bool = False
    left: bool = False
    leaving: Term = t.FALSE


Event = Access | BarrierEvent | CopyEvent | TicketEvent | LoopEvent


def accesses(events: Iterable[Event]) -> Iterator[Access]:
    """Every access, those of loops where the loops stand."""
    for event in events:
        if isinstance(event, Access):
            yield event
        elif isinstance(event, LoopEvent):
            yield from accesses(event.events)


@frozen(eq=False)
class Fact:
    """``fact`` holds of every application of the function named by the key, for its formals."""

    formals: tuple[Term, ...]
    fact: Term


@frozen(eq=False)
class Drawing:
    """An atomic that raises the counter in ``array`` by ``amount`` and returns what it was before.

    ``formals``: the operands of the function that stands for that: the place in bytes, then ``rounds`` that
    tell executions apart (so does who draws for a warp), then what tells apart the lanes that ask.
    ``point``: equal for one place in the program. ``level``: who has the value: the thread that drew it, or
    everybody in its warp or block.
    """

    array: Array
    amount: Term
    formals: tuple[Term, ...]
    point: str
    rounds: int
    level: Level = Level.THREAD


@frozen(eq=False)
class Claim:
    """An atomic on a word that nobody gives back: who finds it ``free`` has it.

    ``free`` None: who finds anything but what each of them leaves there.

    ``drawing``: where, by which function, and what it leaves there as ``amount``. ``rounds``: words are
    cleared again behind barriers, in so many of the outermost loops; None: never.
    """

    drawing: Drawing
    free: int | None
    rounds: int | None = None


@frozen(eq=False)
class Place:
    """How many lanes stand below the generic thread's ``lane`` in a vote of its warp.

    ``formals``: the operands of the function that stands for that. ``voter``: whether the thread is in it.
    """

    formals: tuple[Term, ...]
    votes: Term
    voter: Term
    lane: Term


@frozen(eq=False)
class Summary:
    """A kernel under one launch, symbolically.

    ``facts``: defining facts by function name. ``reasons``: what the walk does not cover, for
    people. ``assumptions``: conditions on parameters that hold throughout. ``tainted``: names of
    functions whose values come from atomics; ``unknowns``: function name → what it stands for;
    ``changed``: the variables of those that a loop changes;
    ``slots``: functions whose value is what a counter was before it was raised; ``claims``: those whose value
    a word had before it was claimed; ``places``: those whose value is a place in a vote; ``limits``: what
    bounds these values, as ``facts`` do; ``invariants``: what bounds variables when a round of a loop starts.
    ``set``: arrays that plain stores write too.
    ``asserted``: what the kernel's own assertions demand of every thread. ``loaded``: names of functions
    that stand for values computed from memory in ways that are not followed (floating point).
    ``sizes``: what is compared as an unsigned number and was taken not to be negative: parameters and what is
    left of them, with the parameters in it. ``unrolled``: some loop was walked round by round.
    ``reached``: shared arrays that blocks of a cluster reach of one another. ``computed``: parameters, by
    name, that every launch computes from others. ``cut``: what is divided by something that is no number, and
    that, also where quotient and remainder together are again what was divided.
    """

    events: tuple[Event, ...]
    facts: Mapping[str, Fact] = field(factory=dict[str, Fact])
    unknowns: Mapping[str, str] = field(factory=dict[str, str])
    slots: Mapping[str, Drawing] = field(factory=dict[str, Drawing])
    tainted: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()
    assumptions: Term | None = None
    locks: str = ""
    asserted: Term | None = None
    loaded: frozenset[str] = frozenset()
    sizes: Mapping[str, frozenset[str]] = field(factory=dict[str, frozenset[str]])
    places: Mapping[str, Place] = field(factory=dict[str, Place])
    limits: Mapping[str, Fact] = field(factory=dict[str, Fact])
    invariants: Mapping[str, Fact] = field(factory=dict[str, Fact])
    set: frozenset[Array] = frozenset()
    unrolled: bool = False
    reached: frozenset[Array] = frozenset()
    claims: Mapping[str, Claim] = field(factory=dict[str, Claim])
    computed: Mapping[str, Term] = field(factory=dict[str, Term])
    changed: Mapping[str, Var] = field(factory=dict[str, Var])
    cut: tuple[tuple[Term, Term], ...] = ()
