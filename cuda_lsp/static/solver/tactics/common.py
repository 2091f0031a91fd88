"""Pairs that differ in conditions on data only, proved at once: with what all ask for they are one pair.

So are pairs of accesses in different loops that run alike, whose counters have other names.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from cuda_lsp.model import Space
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.components import stored_both
from cuda_lsp.static.solver.tactics.meetings import meetings
from cuda_lsp.static.solver.tactics.pair import Group, OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term

_PLAIN = "k0.0."
"""What counters begin with that have no names of their own; the walk begins with another number."""


_MEMOS = dict[tuple[str, ...], dict[Term, Term]]
"""Of terms with other counters, by the counters that they had."""


def put_into_groups(pairs: Iterable[OpenPair]) -> None:
    """Gives each pair the group of those that are like it but for conditions on data, and counters' names.

    Rows may be those of components for stores only: these are alike where all of them are.
    """
    groups: dict[tuple[Term, Space, bool], Group] = {}
    memos: _MEMOS = {}
    for pair in pairs:
        p, accesses = _with_plain_counters(pair.p, memos), pair.p.pair
        key = t.and_(pair.facts, p.overlap, _without_data(p.guards, pair.query))
        stored = stored_both(accesses, pair.query.summary)
        pair.group = groups.setdefault((key, accesses.first.array.space, stored), Group(p, p.guards))
        shared = set(t.conjuncts(p.guards))
        pair.group.guards = t.and_(*(c for c in t.conjuncts(pair.group.guards) if c in shared))
        pair.group.members += 1


def for_group(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries ``proofs`` on what is common to a group of more than one pair, once for all of them."""

    def in_common(pair: OpenPair) -> Proved | None:
        group = pair.group
        if group.members > 1 and proofs not in group.answers:
            common = evolve(group.p or pair.p, guards=group.guards)
            if group.meet is None:
                group.meet = any(meetings(common, pair.facts, pair.query))
            answer = None if group.meet else first_answer(proofs, evolve(pair, p=common))
            group.answers[proofs] = answer if isinstance(answer, Proved) else None
        return group.answers.get(proofs)

    return in_common


def _with_plain_counters(p: Problem, memos: _MEMOS) -> Problem:
    """The pair whose loops' counters have names that say only of which thread they are, outer ones first."""
    named = {x.args[0]: x for x in t.subterms(p.formula, *p.offsets) if x.op is Op.SYMBOL}
    counters = sorted((x.order, name) for name, x in named.items() if _is_counter(name))
    names = tuple(name for _, name in counters)
    if not names or any(name.startswith(_PLAIN) for name in named):
        return p
    numbers = {1: 0, 2: 0, 0: 0}
    plain: dict[str, str] = {}
    for name in names:
        whose = side(named[name])
        plain[name] = f"{_PLAIN}{numbers[whose]}{f'#{whose}' if whose else '.0'}"
        numbers[whose] += 1
    memo = memos.setdefault(names, {})
    return p.mapped(lambda term: t.renamed(term, lambda x: plain.get(x.args[0]), memo))


def _is_counter(name: str) -> bool:
    return name.startswith("k") and ROUND.fullmatch(name) is not None


def _without_data(guards: Term, query: Query) -> Term:
    """The conditions that no unknown predicate or value is part of."""
    summary = query.summary
    known = {*summary.facts, *summary.slots, *summary.places, *summary.limits}

    def is_data(part: Term) -> bool:
        return part.op is Op.TEST or (part.op is Op.APPLY and base_name(part.args[0]) not in known)

    return t.and_(*(c for c in t.conjuncts(guards) if not any(map(is_data, t.subterms(c)))))
