"""Sizes that the host computes as sums of others, as sizes: rows of ``out``, where ``out = in - k + 1``.

The kernel's program has the sum in the place of such a parameter, so that what it computes from the same
others is the same to it. But rows of ``in - k + 1`` elements are no digits of a number. Here the parameter is
itself again, and one of the others is what the sum says of it (``in = out + k - 1``).
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Term


def as_sizes(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with the sums of the pair as parameters."""

    def renamed(pair: OpenPair) -> Proved | None:
        p, facts, told = pair.p, pair.facts, t.and_(*pair.query.told)
        for other, value in _solved(pair.query):
            if other in t.subterms(p.formula):
                known = {other: value}
                p, facts, told = (
                    p.mapped(t.replacing(known)),
                    *(t.substitute(x, known) for x in (facts, told)),
                )
        if p is pair.p:
            return None
        p = evolve(p, guards=t.and_(p.guards, told))
        answer = first_answer(proofs, evolve(pair, p=p, facts=facts))
        return answer if isinstance(answer, Proved) else None

    return renamed


def _solved(query: Query) -> Iterator[tuple[Term, Term]]:
    """Parameters, and what they are by the sums they are a part of: one for each sum, one after the other."""
    sums: dict[str, Term] = {
        name: total for name, total in query.summary.computed.items() if name in query.where.free
    }
    for name in list(sums):
        total = sums.pop(name)
        parts = {x: factor for x in query.parameters(total) if (factor := _times(x, total))}
        own = query.where.arguments[query.where.free[name]]
        if not parts or not isinstance(own, Term) or len(t.monomials(total)) < 2:
            continue
        other = min(parts, key=lambda x: sum(x in t.subterms(more) for more in sums.values()))
        rest = t.sub(total, t.scale(other, parts[other]))
        value = t.scale(t.sub(own, rest), parts[other])
        yield other, value
        sums = {more: t.substitute(of, {other: value}) for more, of in sums.items()}


def _times(x: Term, total: Term) -> int:
    """1 or -1: how often the sum has a parameter that no other part of it speaks of; else 0."""
    parts = {atoms: factor for atoms, factor in t.monomials(total).items() if x in t.subterms(*atoms)}
    return parts[(x,)] if len(parts) == 1 and abs(parts.get((x,), 0)) == 1 else 0
