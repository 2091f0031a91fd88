"""What linear arithmetic shows of two threads, whichever of them reads the earlier element of an array."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, side
from cuda_lsp.static.symbolic.terms import Op, Term


def linearly(pair: OpenPair) -> Proved | None:
    """Linear arithmetic refutes the pair, where need be with signs of products, of which it knows none."""
    formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
    if pair.query.refutes_quickly(formula):
        return Proved()
    signs = tuple(_natural_products(formula))
    return Proved() if signs and pair.query.refutes_quickly(t.and_(formula, *signs)) else None


def _natural_products(formula: Term) -> Iterator[Term]:
    """That products are not negative none of whose factors is, as the formula's conditions say.

    ``columns * k`` where ``i < columns``, and ``i`` and ``k`` count from 0.
    """
    known = t.bounds_of(formula)
    products = {m for part in t.subterms(formula) if part.op is Op.SUM for m in t.monomials(part)}
    for atoms in sorted(products, key=lambda m: [x.order for x in m]):
        least = (known.get(x, (x.lo, x.hi))[0] for x in atoms)
        if len(atoms) > 1 and t.monomial_range(atoms)[0] < 0 and all(low >= 0 for low in least):
            yield t.le(t.ZERO, t.from_monomials({atoms: 1}))


def whoever_is_first(elements: list[Term], proofs: tuple[Tactic, ...]) -> Tactic:
    """What linear arithmetic shows where one stretch begins before the other, or behind it.

    That they do not begin at one element, where that is all that is asked, ``proofs`` may show as well.
    """
    places = {side(x): x.args[2][0] for x in reversed(elements)}

    def in_each_case(pair: OpenPair) -> Proved | None:
        if FIRST not in places or SECOND not in places:
            return None
        one, other = places[FIRST], places[SECOND]
        for case in (t.lt(one, other), t.lt(other, one)):
            if linearly(evolve(pair, p=evolve(pair.p, guards=t.and_(pair.p.guards, case)))) is None:
                return None
        met = evolve(pair.p, overlap=t.eq(one, other), difference=t.sub(one, other), offsets=(one, other))
        answer = first_answer((linearly, *proofs), evolve(pair, p=met))
        return answer if isinstance(answer, Proved) else None

    return in_each_case
