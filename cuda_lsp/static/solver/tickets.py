"""What two threads know of numbers drawn from counters, and of their places in votes, as facts for Z3.

An atomic that adds ``n`` to a counter which only grows has ``n`` numbers to itself, from what it returned on:
the numbers of two executions lie apart. So do those of warps or blocks of which one thread drew for all. Two
voters of one vote stand in the order of their lanes. A word that is claimed and never given back
(``atomicCAS(&seen[v], 0, 1) == 0``) is found free by one execution, but for those that leave it free.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from cuda_lsp.model import WARP_SIZE, Space
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import copy_of, shared_level
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.events import Claim, Drawing, Place, Summary
from cuda_lsp.static.symbolic.intervals import Relation
from cuda_lsp.static.symbolic.terms import Level, Op, Term


def number_facts(formula: Term, summary: Summary, relation: Relation) -> Iterator[Term]:
    """Facts about the numbers and places that the formula mentions."""
    found = [p for p in t.subterms(formula) if p.op is Op.APPLY]
    found.sort(key=lambda p: p.order)
    numbers = [_Number(p, summary.slots[base_name(p.args[0])], relation) for p in found
               if base_name(p.args[0]) in summary.slots]  # fmt: skip
    for a, b in itertools.combinations(numbers, 2):
        yield _apart(a, b, summary, relation)
    claims = [(_Number(p, claim.drawing, relation), claim) for p in found
              if (claim := summary.claims.get(base_name(p.args[0])))]  # fmt: skip
    for (a, claim), (b, _) in itertools.combinations(claims, 2):
        yield _found_once(a, b, claim, relation)
    if relation.within is not None and relation.within <= WARP_SIZE:
        places = [p for p in found if base_name(p.args[0]) in summary.places]
        for a, b in itertools.combinations(places, 2):
            yield _in_order(a, b, summary.places, relation)


@frozen(eq=False)
class _Number:
    """``term``: the number itself, a thread's or a warp's or a block's."""

    term: Term
    drawing: Drawing
    relation: Relation

    @property
    def thread(self) -> int:
        """1 or 2; 0 when both have it."""
        return _thread(self.term)

    @property
    def place(self) -> Term:
        return self.term.args[2][0]

    @property
    def which(self) -> tuple[Term, ...]:
        """What tells executions by one thread, or for one warp or block, apart."""
        return self.term.args[2][1 : 1 + self.drawing.rounds]

    @property
    def asking(self) -> tuple[Term, ...]:
        """What tells apart who asks for the number."""
        return self.term.args[2][1 + self.drawing.rounds :]

    @property
    def amount(self) -> Term:
        formals, actual = self.drawing.formals, self.term.args[2]
        if not self.thread:  # what it is of, such as the lanes that take part, may be one thread's
            told = {f: a for f, a in zip(formals, actual, strict=True) if not f.is_const}
            return t.substitute(self.drawing.amount, told)
        mine = copy_of(self.drawing.amount, self.thread, shared_level(self.relation), {})
        return t.substitute(mine, _actual(formals, actual))


def _thread(term: Term) -> int:
    name = term.args[0]
    return 0 if base_name(name) == name else int(name[-1])


def _actual(formals: Iterable[Term], actual: Iterable[Term]) -> Mapping[Term, Term]:
    return {f: a for f, a in zip(formals, actual, strict=True) if f.op is Op.SYMBOL}


def _apart(a: _Number, b: _Number, summary: Summary, relation: Relation) -> Term:
    """The numbers that two executions have to themselves, when they surely are two, lie apart."""
    array = a.drawing.array
    if array is not b.drawing.array or (array.space is Space.SHARED and not relation.same_block):
        return t.TRUE
    again = t.and_(*(t.eq(x, y) for x, y in zip(a.which, b.which, strict=False)))
    alike = a.drawing.point == b.drawing.point
    if array in summary.set:  # within the block somebody sets it back, between barriers: in one round only
        if not alike or a.drawing.level is not Level.THREAD or b.drawing.level is not Level.THREAD:
            return t.TRUE
        one = t.TRUE if a.thread != b.thread else t.FALSE
        two = t.and_(one, again)
    elif not alike:
        two = t.TRUE
    else:
        two = _two_executions(a, b, again, relation)
    together = t.TRUE
    if a.term.args[0] == b.term.args[0]:  # a lane hands a number round to one part of the warp
        together = t.and_(*(t.eq(x, y) for x, y in zip(a.asking, b.asking, strict=True)))
        together = t.or_(t.not_(again), together)
    lies = t.or_(t.le(t.add(a.term, a.amount), b.term), t.le(t.add(b.term, b.amount), a.term))
    return t.and_(together, t.or_(t.not_(t.and_(two, t.eq(a.place, b.place))), lies))


def _found_once(a: _Number, b: _Number, claim: Claim, relation: Relation) -> Term:
    """Of two executions at one word one finds it free, unless it was left so, or cleared between them."""
    array = a.drawing.array
    if array is not b.drawing.array or (array.space is Space.SHARED and not relation.same_block):
        return t.TRUE
    again = t.and_(*(t.eq(x, y) for x, y in zip(a.which, b.which, strict=False)))
    alike = a.drawing.point == b.drawing.point
    if claim.rounds is not None and not alike:
        return t.TRUE
    two = _two_executions(a, b, again, relation) if alike else t.TRUE
    cleared = zip(a.which[: claim.rounds or 0], b.which[: claim.rounds or 0], strict=True)
    one_round = t.and_(*(t.eq(x, y) for x, y in cleared))
    both = t.and_(two, one_round, t.eq(a.place, b.place))
    if claim.free is None:
        return t.or_(t.not_(both), t.eq(a.term, a.amount), t.eq(b.term, b.amount))
    was = t.const(claim.free)
    both = t.and_(both, t.eq(a.term, was), t.eq(b.term, was))
    return t.or_(t.not_(both), t.eq(a.amount, was), t.eq(b.amount, was))


def _two_executions(a: _Number, b: _Number, again: Term, relation: Relation) -> Term:
    """When two executions of one atomic are not one and the same."""
    if a.drawing.level is not b.drawing.level:
        return t.FALSE  # the thread that drew for others may be the other one
    if a.thread == b.thread:
        return t.not_(again)
    if a.drawing.level is Level.THREAD or not relation.same_block:
        return t.TRUE
    apart = relation.across is not None and relation.across >= WARP_SIZE
    return t.TRUE if a.drawing.level is Level.WARP and apart else t.FALSE


def _in_order(a: Term, b: Term, places: Mapping[str, Place], relation: Relation) -> Term:
    """Voters of one vote of one warp stand in the order of their lanes."""
    if base_name(a.args[0]) != base_name(b.args[0]) or {_thread(a), _thread(b)} != {1, 2}:
        return t.TRUE
    place, shared = places[base_name(a.args[0])], shared_level(relation)

    def seen(term: Term, by: Term) -> Term:
        return t.substitute(copy_of(term, _thread(by), shared, {}), _actual(place.formals, by.args[2]))

    one = t.eq(seen(place.votes, a), seen(place.votes, b))
    facts: list[Term] = []
    for low, high in ((a, b), (b, a)):
        below = t.lt(seen(place.lane, low), seen(place.lane, high))
        premise = t.and_(one, below, seen(place.voter, low))
        facts.append(t.or_(t.not_(premise), t.le(t.add(low, t.ONE), high)))
    return t.and_(*facts)
