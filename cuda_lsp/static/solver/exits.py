"""Barriers that are missed only by threads that pass no later one: threads that have left the kernel.

Where all threads that miss a barrier miss every later barrier too, no two barriers are ever taken for one
another: those who stay are ordered by it, those who left have no order with them (``symbolic.intervals``
treats them so). Verdicts about races hold; the divergence itself is still a finding. Where a thread misses a
barrier and reaches another, the two may be matched, and nothing after them has a known order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from attrs import evolve

from cuda_lsp.model import SourceRange
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import copy_of, shared_level
from cuda_lsp.static.symbolic.encode import closure
from cuda_lsp.static.symbolic.events import BarrierEvent, Event, LoopEvent
from cuda_lsp.static.symbolic.intervals import Relation
from cuda_lsp.static.symbolic.launch import related
from cuda_lsp.static.symbolic.terms import Level, Term

_Placed = tuple[BarrierEvent, tuple[Term, ...]]
"""A barrier and the round counters of the loops around it, outermost first."""


def missed_by_leavers_only(query: Query, events: Sequence[Event], not_settled: Set[SourceRange]) -> bool:
    """Proved: no thread misses a barrier that another one passes, and reaches a later one.

    Of warps' barriers nobody asks which of them come later: that none is ``not_settled``.
    """
    relation = Relation()
    facts = related(query.where, relation)
    shared = shared_level(relation)
    every = list(_barriers(events, (), t.TRUE))
    if any(b.returned is not None and b.site.range in not_settled for b, _ in every):
        return False
    placed = [p for p in every if p[0].scope.of_blocks]
    for i, (barrier, rounds) in enumerate(placed):
        if t.level_of(barrier.guard) <= Level.BLOCK:
            continue
        passes = copy_of(barrier.guard, 1, shared, {})
        misses = t.not_(copy_of(barrier.guard, 2, shared, {}))
        for j, (other, other_rounds) in enumerate(placed):
            if j < i and not set(rounds) & set(other_rounds):
                continue  # before it, and never again
            reached = copy_of(_in_any_round(other.guard, other_rounds), 2, shared, {})
            formula = closure(t.and_(facts, passes, misses, reached), query.summary, shared)
            if query.solve(formula).outcome is not Outcome.REFUTED:
                return False
    return True


def passed_barriers(events: Sequence[Event]) -> list[BarrierEvent]:
    """Every barrier, those of loops where the loops stand, with all that a thread needs to come to it."""
    return [barrier for barrier, _ in _barriers(events, (), t.TRUE)]


def _barriers(events: Sequence[Event], rounds: tuple[Term, ...], inside: Term) -> Iterator[_Placed]:
    """``inside``: that no ``break`` of a loop around has ended it in a round before."""
    for event in events:
        if isinstance(event, BarrierEvent):
            yield evolve(event, guard=t.and_(event.guard, inside)), rounds
        elif isinstance(event, LoopEvent):
            there = t.le(event.iterator, event.exit) if event.left else t.TRUE
            yield from _barriers(event.events, (*rounds, event.iterator), t.and_(inside, there))


def _in_any_round(guard: Term, rounds: Sequence[Term]) -> Term:
    """The guard with round counters of its own, of the same range."""
    renamed = {r: t.symbol(f"{r.args[0]}'", r.args[1], r.lo, r.hi) for r in rounds}
    return t.substitute(guard, renamed)
