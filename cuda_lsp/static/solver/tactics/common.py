"""Pairs that differ in conditions on data only, proved at once: with what all ask for they are one pair."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.meetings import meetings
from cuda_lsp.static.solver.tactics.pair import Group, OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.terms import Op, Term


def put_into_groups(pairs: Iterable[OpenPair]) -> None:
    """Gives each pair the group of those that are like it but for conditions on data."""
    groups: dict[Term, Group] = {}
    for pair in pairs:
        key = t.and_(pair.facts, pair.p.overlap, _without_data(pair.p.guards, pair.query))
        pair.group = groups.setdefault(key, Group(pair.p.guards))
        shared = set(t.conjuncts(pair.p.guards))
        pair.group.guards = t.and_(*(c for c in t.conjuncts(pair.group.guards) if c in shared))
        pair.group.members += 1


def for_group(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries ``proofs`` on what is common to a group of more than one pair, once for all of them."""

    def in_common(pair: OpenPair) -> Proved | None:
        group = pair.group
        if group.members > 1 and proofs not in group.answers:
            common = evolve(pair.p, guards=group.guards)
            if group.meet is None:
                group.meet = any(meetings(common, pair.facts, pair.query))
            answer = None if group.meet else first_answer(proofs, evolve(pair, p=common))
            group.answers[proofs] = answer if isinstance(answer, Proved) else None
        return group.answers.get(proofs)

    return in_common


def _without_data(guards: Term, query: Query) -> Term:
    """The conditions that no unknown predicate or value is part of."""
    summary = query.summary
    known = {*summary.facts, *summary.slots, *summary.places, *summary.limits}

    def is_data(part: Term) -> bool:
        return part.op is Op.TEST or (part.op is Op.APPLY and base_name(part.args[0]) not in known)

    return t.and_(*(c for c in t.conjuncts(guards) if not any(map(is_data, t.subterms(c)))))
