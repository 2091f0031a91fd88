"""Stretches that two arrays tell, one where they begin and one how long they are, do not overlap.

``for (i = 0; i < count[v]; i++) out[first[v] + i] = v``: who reads both at one place has a stretch of its
own, as between neighbouring offsets (``ascending``). So it is where the other array tells where these end, or
the one does (``end[v] - count[v]``). Nobody stores to pieces that overlap other than to add to what is there;
so of what is updated it is not granted, nor of arrays that the kernel writes, of batches with lists of their
own, or of an access that comes to be reached only where stretches do overlap.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from cuda_lsp.ir.program import Array
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.contents import is_update
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.ascending import atoms_of, in_one_row
from cuda_lsp.static.solver.tactics.first import linearly, whoever_is_first
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.solver.tactics.whole import elements_read, index_of, read_only
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term


class _Told(enum.Enum):
    """What the two arrays tell of a stretch, for people."""

    LENGTH = "stretches from `{}` on, as long as `{}` says, do not overlap"
    END = "stretches from `{}` up to `{}` do not overlap"
    BACKWARDS = "stretches up to `{}`, as long as `{}` says, do not overlap"


@frozen(eq=False)
class _Stretches:
    """``places``: where they begin, or end, part of addresses. ``bounds``: what else is told of them."""

    places: Array
    bounds: Array
    told: _Told

    @property
    def granted(self) -> str:
        """That they do not overlap, for people."""
        return self.told.value.format(self.places.name, self.bounds.name)

    def apart(self, formula: Term) -> Term:
        """What that says of those which a formula names."""
        places, bounds = (_by_index(formula, x) for x in (self.places, self.bounds))
        both = [x for x in places if x in bounds]
        ends = {x: self._ends(places[x], bounds[x]) for x in both}
        return t.and_(
            *(
                t.or_(t.eq(x, y), t.le(ends[x][1], ends[y][0]), t.le(ends[y][1], ends[x][0]))
                for x, y in itertools.combinations(both, 2)
            )
        )

    def _ends(self, place: Term, bound: Term) -> tuple[Term, Term]:
        if self.told is _Told.BACKWARDS:
            return t.sub(place, bound), place
        return place, bound if self.told is _Told.END else t.add(place, bound)


def that_lists_tell(proofs: tuple[Tactic, ...]) -> Tactic:
    """What linear arithmetic and ``proofs`` show where the stretches that the pair reads do not overlap."""

    def apart(pair: OpenPair) -> Proved | None:
        accesses = pair.p.pair.first, pair.p.pair.second
        if any(is_update(x, pair.query) for x in accesses):
            return None
        formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
        for stretches, places in _stretches(formula, pair):
            told = stretches.apart(formula)
            if told is t.TRUE or not all(_reached(x, stretches.apart, pair) for x in accesses):
                continue
            known = evolve(pair.p, guards=t.and_(pair.p.guards, told))
            tactics = (linearly, whoever_is_first(places, proofs), *proofs)
            answer = first_answer(tactics, evolve(pair, p=known))
            if isinstance(answer, Proved):
                return Proved((stretches.granted, *answer.assumptions))
        return None

    return apart


def _stretches(formula: Term, pair: OpenPair) -> Iterator[tuple[_Stretches, list[Term]]]:
    """Arrays whose elements are in both addresses, with those that bound how far these go on from there."""
    whole = sorted(read_only(pair.query.kernel), key=lambda array: array.id)
    placed = [atoms_of(offset) for offset in pair.p.offsets]
    limits = [atoms_of(x.args[0]) for x in t.subterms(pair.p.guards) if x.op is Op.LE]
    limited = [set[Term]().union(*(x for x in limits if any(map(_goes_on, x & at)))) for at in placed]
    for places in whole:
        read = elements_read(formula, places)
        if not 1 < len(read) <= budgets.MOST_OFFSETS or any(x.isdisjoint(read) for x in placed):
            continue
        if not all(in_one_row(x, places, pair) for x in read):
            continue
        for bounds in whole:
            ends = elements_read(formula, bounds)
            if bounds is not places and not any(x.isdisjoint(ends) for x in limited):
                yield from ((_Stretches(places, bounds, told), read) for told in _Told)


def _goes_on(atom: Term) -> bool:
    """A coordinate, or a loop's counter: a place alone is no stretch (``if (keep[i]) out[at[i]] = x``)."""
    return atom.op is Op.SYMBOL and bool(side(atom))


def _by_index(formula: Term, array: Array) -> dict[Term, Term]:
    return {index_of(x, array): x for x in elements_read(formula, array)}


def _reached(access: Access, apart: Callable[[Term], Term], pair: OpenPair) -> bool:
    """The access by itself is reached where stretches do not overlap."""
    query: Query = pair.query
    formula = query.complete(t.and_(query.where.bounds, access.guard), pair.p)
    told = apart(formula)
    return told is t.TRUE or not query.refutes(t.and_(formula, told))
