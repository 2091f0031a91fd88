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
from collections.abc import Callable, Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.ir.program import Array
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.contents import is_update
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.ascending import in_one_row
from cuda_lsp.static.solver.tactics.first import linearly, whoever_is_first
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.solver.tactics.whole import elements_read, index_of, read_only
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term

_Sums = Mapping[t.Monomial, int]


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
        """What that says of those which a formula names: lengths, and where they begin, are not negative."""
        places, bounds = (_by_index(formula, x) for x in (self.places, self.bounds))
        ends = {x: self._ends(places[x], bounds[x]) for x in places if x in bounds}
        apart = (
            t.or_(t.eq(x, y), t.le(ends[x][1], ends[y][0]), t.le(ends[y][1], ends[x][0]))
            for x, y in itertools.combinations(ends, 2)
        )
        lengths = bounds.values() if self.told is not _Told.END else ()
        natural = (*lengths, *(begin for begin, _ in ends.values())) if len(ends) > 1 else ()
        return t.and_(*apart, *(t.le(t.ZERO, x) for x in natural))

    def _ends(self, place: Term, bound: Term) -> tuple[Term, Term]:
        if self.told is _Told.BACKWARDS:
            return t.sub(place, bound), place
        return place, bound if self.told is _Told.END else t.add(place, bound)


def that_lists_tell(proofs: tuple[Tactic, ...]) -> Tactic:
    """What linear arithmetic and ``proofs`` show where the stretches that the pair reads do not overlap."""

    def apart(pair: OpenPair) -> Proved | None:
        accesses = pair.p.pair.first, pair.p.pair.second
        if len(read_only(pair.query.kernel)) < 2 or any(is_update(x, pair.query) for x in accesses):
            return None  # it takes two arrays
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
    placed = [_parts(offset) for offset in pair.p.offsets]
    limits = [_parts(x.args[0]) for x in t.subterms(pair.p.guards) if x.op is Op.LE]
    for places in whole:
        read = elements_read(formula, places)
        if not 1 < len(read) <= budgets.MOST_OFFSETS or not all(in_one_row(x, places, pair) for x in read):
            continue
        for bounds in whole:
            ends = set(elements_read(formula, bounds)) if bounds is not places else set[Term]()
            ways = [
                {_goes_on(x, set(read), ends, limit) for limit in limits} if ends else {None} for x in placed
            ]
            for told in (x for x in _Told if all(x in way for way in ways)):
                yield _Stretches(places, bounds, told), read


def _goes_on(parts: _Sums, places: set[Term], ends: set[Term], limit: _Sums) -> _Told | None:
    """An address goes on from the place by what the limit holds against a bound, in the same units.

    A place alone is no stretch (``if (keep[v]) out[at[v]] = x``), nor is a row (``out[id[v] * w + c]``).
    """
    bound = [-c for m, c in limit.items() if len(m) == 1 and m[0] in ends]
    steps = {m: c for m, c in limit.items() if m and not places.union(ends).intersection(m)}
    units = [(m, c) for m, c in parts.items() if not places.isdisjoint(m)]
    if len(bound) != 1 or len(units) != 1 or not any(side(x) for m in steps for x in m):
        return None
    ((atoms, unit),) = units
    unit_of = tuple(x for x in atoms if x not in places)
    if any(parts.get(_product((*m, *unit_of)), 0) * bound[0] != unit * c for m, c in steps.items()):
        return None
    begins = [c for m, c in limit.items() if not places.isdisjoint(m)]
    behind = [c for m, c in parts.items() if not ends.isdisjoint(m)]
    return {
        (0, 0): _Told.LENGTH,
        (bound[0], 0): _Told.END,
        (0, -unit): _Told.BACKWARDS,
    }.get((sum(begins), sum(behind)))


def _parts(term: Term) -> _Sums:
    """What a sum is made of, however it is cut."""
    found: dict[t.Monomial, int] = {}
    for atoms, factor in t.monomials(term).items():
        cut = len(atoms) == 1 and atoms[0].op is Op.WRAP
        for m, c in (_parts(atoms[0].args[0]) if cut else {atoms: 1}).items():
            found[_product(m)] = found.get(_product(m), 0) + c * factor
    return found


def _product(atoms: t.Monomial) -> t.Monomial:
    return tuple(sorted(atoms, key=lambda x: x.order))


def _by_index(formula: Term, array: Array) -> dict[Term, Term]:
    return {index_of(x, array): x for x in elements_read(formula, array)}


def _reached(access: Access, apart: Callable[[Term], Term], pair: OpenPair) -> bool:
    """The access by itself is reached where stretches do not overlap."""
    query: Query = pair.query
    formula = query.complete(t.and_(query.where.bounds, access.guard), pair.p)
    told = apart(formula)
    return told is t.TRUE or not query.refutes(t.and_(formula, told))
