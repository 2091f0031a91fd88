"""What linear arithmetic shows of two threads, whichever of them reads the earlier element of an array."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, side
from cuda_lsp.static.symbolic.terms import Term


def linearly(pair: OpenPair) -> Proved | None:
    """Linear arithmetic refutes the pair."""
    formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
    return Proved() if pair.query.refutes_quickly(formula) else None


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
