"""Barrier intervals: which accesses of two threads no barrier orders.

Events are replayed in program order with a set of *open* accesses that barriers close.  A loop that
holds a closing barrier is common to both threads: its round k is paired with itself and with round
k+1 (what follows the last barrier of one meets what precedes the first of the next); any other loop
is each thread's own.  Which barriers close depends on how the two threads relate: lanes of one warp,
threads of one block, or of two blocks.  A barrier under a condition closes only where it holds.
Theory: the two-thread reduction of PUG and GPUVerify; loop alignment as in Faial (Cogumbreiro et al.).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import Array, BarrierPhase, BarrierScope
from cuda_lsp.model import Mode, Site, SourceRange, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import (
    Access,
    BarrierEvent,
    CopyEvent,
    Event,
    LoopEvent,
    Summary,
    TicketEvent,
    accesses,
)
from cuda_lsp.static.symbolic.terms import Level, Op, Term

Sites = tuple[SourceRange, SourceRange]
"""The places of two accesses, in the order of the text (of the files' names, where they stand in two)."""


@frozen
class Relation:
    """How the two threads relate.

    ``same_block``: False: two different blocks. ``same_cluster``: of one cluster; None: of whichever, or the
    kernel has none. ``within``: both in one aligned group of so many
    threads. ``across``: in different groups of so many. None: no restriction.
    """

    same_block: bool = True
    same_cluster: bool | None = None
    within: int | None = None
    across: int | None = None
    lock_step: bool = False


@frozen(eq=False)
class Separator:
    """A barrier between the two accesses, passed when ``guard``.

    ``both``: it orders the threads only if both pass it (warp level, with ``mask``); otherwise
    one suffices (the other has exited, or the barrier diverges, which is a finding of its own).
    ``labels`` as in ``BarrierEvent``.
    """

    guard: Term
    both: bool
    mask: Term | None = None
    labels: bool = False


@frozen(eq=False)
class Pair:
    """Two accesses, by two threads, that may meet unless all of ``separators`` lie between them."""

    first: Access
    second: Access
    separators: tuple[Separator, ...]
    relation: Relation

    @property
    def sites(self) -> Sites:
        """Where the two accesses stand, first in the text first."""
        first, second = sorted((self.first.site.range, self.second.site.range))
        return first, second


@frozen(eq=False)
class _Open:
    """``root``: the access as it was when it came up, which what is known of it since leaves alone."""

    access: Access
    root: Access
    separators: tuple[Separator, ...] = ()
    old: bool = False
    published: bool = False
    arrived: bool = False
    groups: int | None = None  # of copies that were committed since this one began; None: it is complete
    bound: bool = False


class TooManyPairs(Exception):
    """The kernel's pairs exceed the budget."""


def relations(summary: Summary, warp_size: int, lock_step: bool, in_clusters: bool = False) -> list[Relation]:
    """The relations that matter for this kernel, each pair of threads in exactly one."""
    if lock_step:
        block = [Relation(within=warp_size, lock_step=True), Relation(across=warp_size)]
    else:
        groups = {group_size(b, warp_size) for b in barriers(summary.events)} - {0}
        # places in votes, also in those that nobody waits for, are of one warp
        sizes = sorted(groups | ({warp_size} if summary.places else set()))
        block = [Relation(within=s, across=sizes[i - 1] if i else None) for i, s in enumerate(sizes)]
        block.append(Relation(across=sizes[-1] if sizes else None))
    kinds = (True, False) if in_clusters else (None,)
    return [*block, *(Relation(same_block=False, same_cluster=kind) for kind in kinds)]


def barriers(events: Sequence[Event]) -> list[BarrierEvent]:
    """Every barrier, those of loops where the loops stand."""
    found: list[BarrierEvent] = []
    for event in events:
        if isinstance(event, BarrierEvent):
            found.append(event)
        elif isinstance(event, LoopEvent):
            found += barriers(event.events)
    return found


def group_size(barrier: BarrierEvent, warp_size: int) -> int:
    """Threads that a warp-level barrier orders; 0 for wider barriers."""
    if barrier.scope in (BarrierScope.WARP, BarrierScope.COALESCED):
        return warp_size
    return barrier.size or warp_size if barrier.scope is BarrierScope.TILE else 0


Ticketed = Callable[[Site, Site], bool]
"""Whether an execution showed that the numbers drawn from a counter keep two places apart."""

Apart = Callable[[Access, Access], bool]
"""Whether no two threads make two accesses meet, as far as is seen at once; asked where pairs are many."""


def _unseen(one: Access, other: Access) -> bool:
    del one, other
    return False


def pairs(
    summary: Summary, relation: Relation, warp_size: int, ticketed: Ticketed = lambda a, b: False,
    deadline: float = math.inf, apart: Apart = _unseen,
) -> list[Pair]:  # fmt: skip
    """Every pair of accesses that a barrier does not certainly order.

    Raises ``TooManyPairs``, also when that takes longer than ``deadline`` (of ``work.now``).
    """
    if relation.lock_step:
        return _same_instruction(summary.events, relation)
    harmless = _harmless(accesses(summary.events), relation.same_block)
    pairing = _Pairing(
        relation, warp_size, summary.tainted, ticketed, summary.reached, deadline, harmless, apart
    )
    pairing.process(summary.events, {}, [], True)
    return pairing.found


def _harmless(every: Iterable[Access], same_block: bool) -> frozenset[Access]:
    """Accesses that conflict with none, wherever they are: what nobody writes is read, or atomics alone."""
    of_kind: dict[tuple[object, ...], list[Access]] = {}
    for a in every:
        of_kind.setdefault((a.array, a.mode, a.scope, a.elementwise, a.size), []).append(a)
    kinds = [alike[0] for alike in of_kind.values()]

    def conflict(a: Access, b: Access) -> bool:
        if not conflicts.may_overlap(a.array, b.array):
            return False
        known = a.size.is_const and b.size.is_const  # others may be of one size in some round only
        return conflicts.conflicting(a, b, same_block) or (not known and (a.mode.writes or b.mode.writes))

    alone = (of for of in of_kind.values() if not any(conflict(of[0], b) for b in kinds))
    return frozenset(a for of in alone for a in of)


@frozen(eq=False)
class OwnCopy:
    """A thread touches bytes that its own copy may be moving, when ``formula``. ``text``: for people."""

    formula: Term
    text: str


def unfinished_copies(summary: Summary, warp_size: int) -> list[OwnCopy]:
    """What a thread may do with bytes that its own copies are moving. Raises ``TooManyPairs``."""
    if not any(a.copying for a in accesses(summary.events)):
        return []
    pairing = _Pairing(Relation(), warp_size, summary.tainted, lambda a, b: False)
    pairing.process(summary.events, {}, [], True)
    return pairing.own


def _same_instruction(events: Sequence[Event], relation: Relation) -> list[Pair]:
    """Lock step: only lanes executing one instruction at once can race, with common iterators."""
    found: list[Pair] = []
    for event in events:
        if isinstance(event, Access) and event.mode is Mode.WRITE:
            found.append(Pair(event, event, (), relation))
        elif isinstance(event, LoopEvent):
            found += _same_instruction(event.events, relation)
    return found


_COMPARED = 4  # accesses, in the time of an instruction
_RENAMED = 8  # instructions, in the time in which one is told of other rounds


@define
class _Pairing:
    relation: Relation
    warp_size: int
    tainted: frozenset[str]
    ticketed: Ticketed
    reached: frozenset[Array] = frozenset()
    deadline: float = math.inf
    harmless: frozenset[Access] = frozenset()
    apart: Apart = _unseen
    found: list[Pair] = field(factory=list[Pair])
    renamed: int = 0
    own: list[OwnCopy] = field(factory=list[OwnCopy])

    def process(
        self, events: Sequence[Event], mapping: Mapping[Term, Term], opened: list[_Open], emit_new: bool,
        condition: Term = t.TRUE,
    ) -> list[_Open]:  # fmt: skip
        """Replays ``events``; returns what is open behind them. ``emit_new`` False: only old entries pair."""
        memo: dict[Term, Term] = {}
        for event in events:
            if work.now() > self.deadline:
                raise TooManyPairs("the kernel has too many pairs of accesses for the solver's time")
            if isinstance(event, Access):
                self._add(event, mapping, memo, opened, emit_new, condition)
            elif isinstance(event, BarrierEvent):
                opened = self._close(event, t.substitute(event.guard, mapping, memo), mapping, opened)
            elif isinstance(event, CopyEvent):
                guard = t.substitute(event.guard, mapping, memo)
                opened = [copied for e in opened for copied in _copied(e, event, guard)]
                if len(opened) > budgets.MOST_PAIRS:
                    raise TooManyPairs("the kernel has too many copies under way for the solver")
            elif isinstance(event, TicketEvent):
                opened = [evolve(e, published=True) for e in opened]
            else:
                opened = self._loop(event, mapping, opened, emit_new, condition)
        return opened

    # -- accesses

    def _add(
        self, access: Access, mapping: Mapping[Term, Term], memo: dict[Term, Term], opened: list[_Open],
        emit_new: bool, condition: Term,
    ) -> None:  # fmt: skip
        if access in self.harmless:
            return
        if not self.relation.same_block and not self._seen_by_both(access.array):
            return
        guard = t.and_(t.substitute(access.guard, mapping, memo), condition)
        if guard is t.FALSE:
            return
        value = access.value and t.substitute(access.value, mapping, memo)
        mine = evolve(
            access, guard=guard, offset=t.substitute(access.offset, mapping, memo),
            size=t.substitute(access.size, mapping, memo), value=value,
            members=tuple(x.mapped(lambda term: t.substitute(term, mapping, memo)) for x in access.members),
        )  # fmt: skip
        writes = mine.mode.writes
        work.DONE.instructions += len(opened) // _COMPARED
        for entry in opened:
            if (emit_new or entry.old) and (writes or entry.access.mode.writes):
                self._pair(entry, mine)
            if entry.groups is not None and entry.access.array is mine.array:
                self._own_copy(entry.access, mine)
        if emit_new and not mine.team:
            self._pair(_Open(mine, mine), mine)
        opened.append(_Open(mine, mine, groups=0 if mine.copying else None))

    def _seen_by_both(self, array: Array) -> bool:
        near = bool(self.relation.same_cluster) and array in self.reached
        return near or array.space is not Space.SHARED

    def _own_copy(self, copy: Access, mine: Access) -> None:
        """The thread touches what it may be copying itself; where a group copies, it meets the others."""
        if copy.team or copy.site == mine.site or not (copy.mode.writes or mine.mode.writes):
            return
        gap = t.sub(mine.offset, copy.offset)
        if gap.lo >= copy.size.hi or gap.hi <= -mine.size.hi:
            return
        lines = f"line {mine.site.range.start.line} and the copy of line {copy.site.range.start.line}"
        text = f"{lines} may touch the same bytes of {copy.array.name} in one thread"
        meet = (
            t.lt(mine.offset, t.add(copy.offset, copy.size)),
            t.lt(copy.offset, t.add(mine.offset, mine.size)),
        )
        self.own.append(OwnCopy(t.and_(copy.guard, mine.guard, *meet), text))
        if len(self.own) > budgets.MOST_PAIRS:
            raise TooManyPairs("the kernel has too many pairs of accesses for the solver")

    def _pair(self, entry: _Open, later: Access) -> None:
        earlier = entry.access
        if not conflicts.may_overlap(earlier.array, later.array):
            return
        if not conflicts.conflicting(earlier, later, self.relation.same_block):
            return
        if conflicts.guessed(earlier, later):
            return  # the first tier tells of it where it is certain
        if any(_certain(s, earlier, later) for s in entry.separators):
            return
        across_blocks = not self.relation.same_block and self._is_tainted(later.guard)
        drew = across_blocks and (entry.published or self._is_tainted(earlier.guard))
        if drew and self.ticketed(earlier.site, later.site):
            return  # the last block done: only it passes the ticket's test
        if len(self.found) >= budgets.PAIRS_NOT_LOOKED_AT and self.apart(earlier, later):
            return
        self.found.append(Pair(earlier, later, entry.separators, self.relation))
        if len(self.found) > budgets.MOST_PAIRS:
            raise TooManyPairs("the kernel has too many pairs of accesses for the solver")

    def _is_tainted(self, guard: Term) -> bool:
        return bool(self.tainted) and any(
            p.op in (Op.APPLY, Op.TEST) and p.args[0] in self.tainted for p in t.subterms(guard)
        )

    # -- barriers

    def closes(self, barrier: BarrierEvent) -> bool:
        if not barrier.assured:
            return False
        if barrier.scope is BarrierScope.GRID:
            return True
        if not self.relation.same_block:
            return bool(self.relation.same_cluster) and barrier.scope is BarrierScope.CLUSTER
        if barrier.scope.of_blocks:
            return True
        if barrier.scope is BarrierScope.NAMED:
            return barrier.everyone
        within = self.relation.within
        return within is not None and group_size(barrier, self.warp_size) >= within

    def _close(
        self, barrier: BarrierEvent, guard: Term, mapping: Mapping[Term, Term], opened: list[_Open]
    ) -> list[_Open]:
        if not self.closes(barrier):
            return opened
        if barrier.phase is BarrierPhase.ARRIVE:
            done = barrier.completes
            return [evolve(e, arrived=e.groups is None or (done and e.bound)) for e in opened]
        mask = barrier.mask and t.substitute(barrier.mask, mapping)
        both = group_size(barrier, self.warp_size) > 0
        separator = Separator(guard, both, mask, barrier.labels)
        kept: list[_Open] = []
        for entry in opened:
            early = barrier.phase is BarrierPhase.WAIT and not entry.arrived
            if early or (entry.groups is not None and not (barrier.completes and entry.bound)):
                kept.append(entry)
            elif guard is t.TRUE and mask is None:
                continue
            elif both or not t.implies(entry.access.guard, guard):
                kept.append(evolve(entry, separators=(*entry.separators, separator)))
        return kept

    # -- loops

    def has_closing(self, event: LoopEvent) -> bool:
        return any(self.closes(b) for b in barriers(event.events))

    def _loop(
        self, loop: LoopEvent, mapping: Mapping[Term, Term], opened: list[_Open], emit_new: bool,
        condition: Term,
    ) -> list[_Open]:  # fmt: skip
        if not self.has_closing(loop):
            own = self._iterator(loop, Level.THREAD)
            return self.process(loop.events, {**mapping, loop.iterator: own}, opened, emit_new, condition)
        return self._common_loop(loop, mapping, opened, emit_new, condition)

    def _iterator(self, loop: LoopEvent, level: Level) -> Term:
        self.renamed += 1
        return t.symbol(f"{t.show(loop.iterator)}.{self.renamed}", level, 0)

    def _common_loop(
        self, loop: LoopEvent, mapping: Mapping[Term, Term], opened: list[_Open], emit_new: bool,
        condition: Term,
    ) -> list[_Open]:  # fmt: skip
        k, c = loop.iterator, self._iterator(loop, Level.GRID)
        exit_round = t.substitute(loop.exit, mapping)
        if t.substitute(loop.runs, {**mapping, k: t.add(c, t.ONE)}) is t.FALSE:
            return self._only_round(loop, {**mapping, k: t.ZERO}, exit_round, opened, emit_new, condition)
        runs = t.substitute(loop.runs, {**mapping, k: c})
        before = [_when(_while(e, runs), t.eq(c, t.ZERO)) for e in opened]
        end = self.process(loop.events, {**mapping, k: c}, before, emit_new, condition)

        following = {**mapping, k: t.add(c, t.ONE)}
        next_runs = t.substitute(loop.runs, following)
        # Who is in the next round, or in a later one, has made this one.
        left = [e for e in end if not _behind(e, runs)]
        aged = [
            evolve(_while(e, next_runs), old=e.old or emit_new)
            for e in self._in_next_round(loop, next_runs, left)
        ]
        stayed = t.and_(condition, _stayed(loop, {**mapping, k: c}))
        after_next = self.process(loop.events, following, list(aged), False, stayed)
        known = {id(e.root) for e in aged}
        survivors = [e for e in after_next if id(e.root) in known and not _surely_closed(e, next_runs)]
        if survivors:  # some round may pass no barrier: they meet every later round as well
            later = self._iterator(loop, Level.GRID)
            far = t.and_(stayed, t.le(t.add(c, t.const(2)), later))
            self.process(loop.events, {**mapping, k: later}, list(survivors), False, far)

        at_last = t.replacing({c: t.sub(exit_round, t.ONE)})
        work.DONE.instructions += _RENAMED * (len(opened) + len(end) + len(survivors))
        result = self._passing_by(loop, {**mapping, k: t.ZERO}, exit_round, opened)
        # The thread of what is open behind its last round has made that.
        kept = (e for e in end if _stays(e, runs))
        result += [_when(_renamed(e, at_last), t.le(t.ONE, exit_round)) for e in kept]
        kept = (e for e in survivors if _stays(e, t.and_(runs, next_runs)))
        result += [_when(e, t.le(t.add(c, t.const(2)), exit_round)) for e in kept]
        if loop.begun:
            result = self._unfinished_round(loop, {**mapping, k: exit_round}, result, condition)
        return [e for e in result if e.access.guard is not t.FALSE]

    def _in_next_round(self, loop: LoopEvent, runs: Term, opened: list[_Open]) -> list[_Open]:
        """What is open as the next round begins, by whether its thread makes that, where loops in it ask.

        A thread that makes none passes all of them by. Where both threads make it there is no other.
        """
        asked = any(isinstance(inner, LoopEvent) and self.has_closing(inner) for inner in loop.events)
        if loop.left or not asked:
            return opened
        making = [_when(e, runs) for e in opened]
        if self.relation.same_block and t.level_of(runs) <= Level.BLOCK:
            return making
        others = [_when(e, t.not_(runs)) for e in opened]
        return [e for e in (*making, *others) if e.access.guard is not t.FALSE]

    def _only_round(
        self, loop: LoopEvent, mapping: Mapping[Term, Term], exit_round: Term, opened: list[_Open],
        emit_new: bool, condition: Term,
    ) -> list[_Open]:  # fmt: skip
        """A loop of one round at most, which is its first."""
        runs = t.substitute(loop.runs, mapping)
        end = self.process(loop.events, mapping, [_while(e, runs) for e in opened], emit_new, condition)
        result = self._passing_by(loop, mapping, exit_round, opened)
        kept = (e for e in end if _stays(e, runs))
        result += [_when(e, t.le(t.ONE, exit_round)) for e in kept]
        if loop.begun:
            result = self._unfinished_round(loop, {**mapping, loop.iterator: exit_round}, result, condition)
        return [e for e in result if e.access.guard is not t.FALSE]

    def _passing_by(
        self, loop: LoopEvent, first: Mapping[Term, Term], exit_round: Term, opened: list[_Open]
    ) -> list[_Open]:
        """What is open where its thread completes no round, unless its guard says that the ``first`` runs."""
        if loop.left:
            passing = opened
        else:
            runs = t.substitute(loop.runs, first)
            passing = [e for e in opened if not _implies(e.access.guard, runs)]
        return [_when(e, t.eq(exit_round, t.ZERO)) for e in passing]

    def _unfinished_round(
        self, loop: LoopEvent, mapping: Mapping[Term, Term], opened: list[_Open], condition: Term
    ) -> list[_Open]:
        """What is open behind the round that a ``break`` or the last test ends.

        Its pairs with what was open before are known: it followed a completed round.
        """
        old = {id(e.root) for e in opened if e.old}
        young = [evolve(e, old=False) for e in opened]
        found = self.process(loop.events, mapping, young, False, condition)
        return [evolve(e, old=id(e.root) in old) for e in found]


def _stayed(loop: LoopEvent, mapping: Mapping[Term, Term]) -> Term:
    """Who is in a later round has not left the loop in this one: said where a block leaves it together."""
    if t.level_of(loop.leaving) > Level.BLOCK:
        return t.TRUE
    return t.not_(t.substitute(loop.leaving, mapping))


def _while(entry: _Open, runs: Term) -> _Open:
    """A copy that is under way as a round begins: what that round does to it, it does when it runs."""
    return entry if entry.groups is None else _when(entry, runs)


def _copied(entry: _Open, event: CopyEvent, guard: Term) -> list[_Open]:
    """An open copy behind a commit, a wait, or what binds it to a barrier, which happens when ``guard``.

    Where its own guard leaves open whether that happens there are two: where it does, where it does not.
    """
    if entry.groups is None:
        return [entry]
    if event.bound:
        moved = evolve(entry, bound=True)
    elif event.pending is None:
        moved = evolve(entry, groups=entry.groups + 1)
    else:
        moved = evolve(entry, groups=None) if entry.groups > event.pending else entry
    if moved is entry or t.implies(entry.access.guard, guard):
        return [moved]
    parts = [_when(moved, guard), _when(entry, t.not_(guard))]
    return [part for part in parts if part.access.guard is not t.FALSE]


def _when(entry: _Open, condition: Term) -> _Open:
    return evolve(entry, access=evolve(entry.access, guard=t.and_(entry.access.guard, condition)))


def _surely_closed(entry: _Open, runs: Term) -> bool:
    """Some barrier after the entry is passed in every round that runs."""
    return any(s.mask is None and t.implies(runs, s.guard) for s in entry.separators)


def _implies(premise: Term, conclusion: Term) -> bool:
    """As ``t.implies``, and what follows from that counters of the premise are 0. Makes no terms."""
    known = set(t.conjuncts(premise))
    more = [part for part in t.conjuncts(conclusion) if part not in known]
    if not more:
        return True
    zero = {x: (0.0, 0.0) for x in map(_is_zero, known) if x is not None}
    return bool(zero) and all(
        part.op is Op.LE and t.interval_of(t.monomials(part.args[0]), zero)[1] <= 0 for part in more
    )


def _is_zero(condition: Term) -> Term | None:
    """The symbol that a condition says to be 0."""
    products = list(t.monomials(condition.args[0])) if condition.op is Op.EQ else []
    alone = products[0] if len(products) == 1 else ()
    return alone[0] if len(alone) == 1 and alone[0].op is Op.SYMBOL else None


def _stays(entry: _Open, runs: Term) -> bool:
    """A thread that makes the round ``runs`` may make the access, and come by no barrier that is enough."""
    made = t.and_(entry.access.guard, runs)
    enough = (s.guard for s in entry.separators if s.mask is None and not s.both)
    return not _contradicts(made) and not any(_implies(made, guard) for guard in enough)


def _contradicts(condition: Term) -> bool:
    """Some of what it is made of excludes the rest, as far as that can be seen."""
    either = (part for part in t.conjuncts(condition) if part.op is Op.OR)
    return condition is t.FALSE or any(t.implies(condition, t.not_(part)) for part in either)


def _behind(entry: _Open, runs: Term) -> bool:
    """A thread for which the round ``runs`` has come by a barrier after the entry, and so is behind it."""
    return any(
        s.mask is None and t.implies(runs, s.guard) and (not s.both or t.implies(entry.access.guard, s.guard))
        for s in entry.separators
    )


def _renamed(entry: _Open, put_in: Callable[[Term], Term]) -> _Open:
    a = entry.access
    moved = evolve(
        a, guard=put_in(a.guard), offset=put_in(a.offset), size=put_in(a.size),
        value=a.value and put_in(a.value), members=tuple(x.mapped(put_in) for x in a.members),
    )  # fmt: skip
    separators = tuple(
        evolve(s, guard=put_in(s.guard), mask=s.mask and put_in(s.mask)) for s in entry.separators
    )
    return evolve(entry, access=moved, separators=separators)


def _certain(separator: Separator, earlier: Access, later: Access) -> bool:
    """The guards of the accesses imply that the separator lies between them."""
    if separator.mask is not None:
        return False
    behind = t.implies(later.guard, separator.guard)
    return behind and (not separator.both or t.implies(earlier.guard, separator.guard))
