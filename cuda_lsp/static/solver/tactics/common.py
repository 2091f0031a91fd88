"""Pairs that differ in conditions on data only, proved at once: with what all ask for they are one pair.

So are those of several loops that do the same, whose counters have other names: a model of the one is a model
of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import evolve

from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.components import stored_both
from cuda_lsp.static.solver.tactics.meetings import meetings
from cuda_lsp.static.solver.tactics.pair import Group, OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term

_Counters = tuple[Term, ...]
_Rename = Callable[[Term], Term]


def put_into_groups(pairs: Iterable[OpenPair]) -> None:
    """Gives each pair the group of those that are like it but for data, and for names of counters."""
    groups: dict[object, Group] = {}
    for alike in _of_like_places(pairs).values():
        names = _names({counters for _, counters in alike})
        for pair, counters in alike:
            rename = names[counters]
            known = t.and_(pair.facts, pair.p.overlap, _without_data(pair.p.guards, pair.query))
            group = groups.setdefault((_places(pair), rename(known)), Group(pair.p, rename))
            if group.members:
                shared = set(map(rename, t.conjuncts(pair.p.guards)))
                kept = (c for c in t.conjuncts(group.first.guards) if group.rename(c) in shared)
                group.first = evolve(group.first, guards=t.and_(*kept))
            group.members += 1
            pair.group = group


def for_group(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries ``proofs`` on what is common to a group of more than one pair, once for all of them."""

    def in_common(pair: OpenPair) -> Proved | None:
        group = pair.group
        if group is None or group.members < 2:
            return None
        if proofs not in group.answers:
            if group.meet is None:
                group.meet = any(meetings(group.first, pair.facts, pair.query))
            answer = None if group.meet else first_answer(proofs, evolve(pair, p=group.first))
            group.answers[proofs] = answer if isinstance(answer, Proved) else None
        return group.answers[proofs]

    return in_common


def _of_like_places(pairs: Iterable[OpenPair]) -> dict[object, list[tuple[OpenPair, _Counters]]]:
    """Pairs, with their counters of rounds, that may be one but for names."""
    found: dict[object, list[tuple[OpenPair, _Counters]]] = {}
    for pair in pairs:
        counters = _counters(pair)
        ranges = tuple((side(x), x.args[1], x.lo, x.hi) for x in counters)
        found.setdefault((_places(pair), ranges), []).append((pair, counters))
    return found


def _places(pair: OpenPair) -> object:
    """What a proof may ask of the two accesses besides their formula."""
    first, second = pair.p.pair.first, pair.p.pair.second
    of_each = ((x.array.space, x.size, x.word) for x in (first, second))
    return *of_each, pair.p.pair.relation, stored_both(pair.p.pair, pair.query.summary)


def _counters(pair: OpenPair) -> _Counters:
    """Counters of rounds in the pair's address, by thread, those of outer loops first."""
    symbols = (x for x in t.subterms(pair.p.overlap) if x.op is Op.SYMBOL and ROUND.fullmatch(x.args[0]))
    return tuple(sorted(symbols, key=lambda x: (side(x), x.order)))


def _names(counters: Iterable[_Counters]) -> Mapping[_Counters, _Rename]:
    """For each of these what gives them names that they have in common, and nothing else has."""
    every = list(counters)
    if len(every) < 2:
        return dict.fromkeys(every, lambda term: term)

    def numbered(number: int, counter: Term) -> Term:
        name, level = counter.args
        return t.symbol(f"round {number}{name[len(base_name(name)) :]}", level, counter.lo, counter.hi)

    return {each: t.replacing({x: numbered(i, x) for i, x in enumerate(each)}) for each in every}


def _without_data(guards: Term, query: Query) -> Term:
    """The conditions that no unknown predicate or value is part of."""
    summary = query.summary
    known = {*summary.facts, *summary.slots, *summary.places, *summary.limits}

    def is_data(part: Term) -> bool:
        return part.op is Op.TEST or (part.op is Op.APPLY and base_name(part.args[0]) not in known)

    return t.and_(*(c for c in t.conjuncts(guards) if not any(map(is_data, t.subterms(c)))))
