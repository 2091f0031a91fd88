"""Barriers that two threads disagree on: which two, for what sizes.

Threads mostly part where a size ends. Hosts have round sizes, so that threads are told which part for such,
if any do: of a block of 256 the second warp comes too late, and not the second thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.deciding import KERNEL
from cuda_lsp.ir.program import Axis, BarrierScope
from cuda_lsp.model import Code, Site, SourceRange, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.exact.replay import NeedsData, TooLong
from cuda_lsp.static.findings import conditions as c
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.partings import as_decided, decided_by, have_returned, only_leavers_miss
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.solver.report import argument_values, model_threads
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import copy_of, names_lane, shared_level
from cuda_lsp.static.symbolic.encode import closure
from cuda_lsp.static.symbolic.events import BarrierEvent
from cuda_lsp.static.symbolic.intervals import Relation
from cuda_lsp.static.symbolic.launch import related
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_DATA = "a condition computed from data"


def divergences(
    query: Query, found: Iterable[BarrierEvent], not_settled: set[SourceRange]
) -> Iterator[Diagnosis]:
    """Barriers that two threads disagree on which meet there; maybe also those ``not_settled``."""
    seen: set[Site] = set()
    for barrier in found:
        for relation in _who_meets(query, barrier):
            if barrier.site in seen or t.level_of(barrier.guard) <= shared_level(relation):
                continue
            finding = _divergence(query, barrier, relation, not_settled)
            if finding is not None:
                seen.add(barrier.site)
                yield finding


def _who_meets(query: Query, barrier: BarrierEvent) -> Iterator[Relation]:
    """How those relate who wait for one another there."""
    if barrier.scope.of_blocks:
        yield Relation()
    if barrier.scope is BarrierScope.GRID:
        yield Relation(same_block=False)
    if barrier.scope is BarrierScope.CLUSTER and query.where.cluster is not None:
        yield Relation(same_block=False, same_cluster=True)
    if barrier.returned is not None and not only_leavers_miss(query.kernel, barrier.site):
        tile = barrier.size if barrier.scope is BarrierScope.TILE else None
        yield Relation(within=tile or query.where.warp_size)


def _parted(query: Query, barrier: BarrierEvent, shared: Level) -> Term:
    """The first thread comes to the barrier, and the second, which it waits for, does not."""
    parted = t.and_(copy_of(barrier.guard, 1, shared, {}), t.not_(copy_of(barrier.guard, 2, shared, {})))
    if barrier.returned is None:
        return parted
    lane = query.where.axes[Axis.LANE]
    masks = () if barrier.mask is None else (copy_of(barrier.mask, 1, shared, {}),)
    lanes = [copy_of(lane, which, shared, {}) for which in (1, 2)]
    named = (names_lane(mask, lane, query.where.warp_size) for mask in masks for lane in lanes)
    return t.and_(parted, t.not_(copy_of(barrier.returned, 2, shared, {})), *named)


def _divergence(
    query: Query, barrier: BarrierEvent, relation: Relation, not_settled: set[SourceRange]
) -> Diagnosis | None:
    shared = shared_level(relation)
    parted = _parted(query, barrier, shared)
    assumed = query.summary.assumptions or t.TRUE
    granted = (copy_of(assumed, which, shared, {}) for which in (1, 2))
    formula = t.and_(related(query.where, relation), parted, *granted)
    if formula is t.FALSE:
        return None
    answer = query.solve(closure(formula, query.summary, shared))
    if answer.outcome is not Outcome.REFUTED:
        not_settled.add(barrier.site.range)
    if answer.outcome is not Outcome.MODEL:
        return None
    doubt: c.Doubt | None = None
    for values in (*_for_round_sizes(query, formula, barrier, shared), answer.values or {}):
        try:
            found = _replayed(query, barrier, relation, values, parted)
        except NeedsData:
            doubt = c.OnData(_unknown_in(query, barrier, shared) or _DATA)
        except TooLong:
            doubt = doubt or c.Open.REPLAY
        else:
            if found is not None:
                return found
    return None if doubt is None else _suspected(query, barrier, relation, doubt)


def _for_round_sizes(
    query: Query, formula: Term, barrier: BarrierEvent, shared: Level
) -> Iterator[Mapping[Term, int]]:
    """Models in which the parameters that part threads are sizes as hosts have them, the roundest first."""
    parting = t.and_(*(part for part in t.conjuncts(barrier.guard) if t.level_of(part) > shared))
    parameters = query.parameters(parting)
    for size in budgets.ROUND_SIZES if parameters else ():
        whole = (t.eq(t.floor_mod(x, size), t.ZERO) for x in parameters)
        answer = query.solve(closure(t.and_(formula, *whole), query.summary, shared))
        if answer.values is not None:
            yield answer.values


def _replayed(
    query: Query, barrier: BarrierEvent, relation: Relation, values: Mapping[Term, int], parted: Term
) -> Diagnosis | None:
    """Two threads that part in the kernel itself; None: the model is wrong. Raises NeedsData, TooLong."""
    threads = model_threads(values, query, relation)
    arguments = argument_values(query, values, query.where.launch)
    runs = [query.replay(thread, arguments, frozenset()).barriers for thread in threads]
    counts = [sum(passed.scope is barrier.scope for passed in run) for run in runs]
    if counts[0] == counts[1]:
        return None
    if barrier.returned is not None and _returns_in_loops(query.kernel):
        return _suspected(query, barrier, relation, c.Open.REPLAY)  # the second may have returned
    here, there = (words.thread(x.tid, None if relation.same_block else x.bid) for x in threads)
    returned = have_returned(query.kernel, barrier.scope, barrier.site)
    near = _near(barrier)
    there = f"{there} of the same {near}" if relation.same_block and not returned else there
    does = "has returned before it" if returned else "does not"
    story = f"{here} reaches {_named(barrier)} and {there} {does}"
    found = _told(query, barrier, Status.PROVED, story)
    names = sorted({x.args[0] for x in query.parameters(parted)})
    if names:
        return found.needing(c.Example(tuple((name, arguments[name]) for name in names)))
    return found.needing(c.Needs.RETURNED) if returned else found


def _suspected(query: Query, barrier: BarrierEvent, relation: Relation, doubt: c.Doubt) -> Diagnosis:
    whom = "one block" if relation.same_block else "two blocks"
    whom = whom if barrier.returned is None else f"one {_near(barrier)}"
    story = f"threads of {whom} may disagree on reaching {_named(barrier)}"
    found = _told(query, barrier, Status.POSSIBLE, story)
    if isinstance(doubt, c.OnData) and doubt.what != _DATA:
        found = evolve(found, story=f"{found.story}: it depends on {doubt.what}")
    return found.doubted(doubt)


def _near(barrier: BarrierEvent) -> str:
    """What threads are of that wait for one another there."""
    if barrier.returned is None:
        return "block"
    return "tile" if barrier.scope is BarrierScope.TILE else "warp"


def _unknown_in(query: Query, barrier: BarrierEvent, shared: Level) -> str | None:
    """Of what not all threads share, and nobody knows, the barrier's condition is made."""
    for part in t.subterms(barrier.guard):
        if part.op is Op.APPLY and t.level_of(part) > shared and part.args[0] in query.summary.unknowns:
            return query.summary.unknowns[part.args[0]]
    return None


def _told(query: Query, barrier: BarrierEvent, status: Status, story: str) -> Diagnosis:
    story += as_decided(query.kernel, barrier.site)
    return Diagnosis(
        Code.BARRIER_DIVERGENCE, status, story, query.kernel.name, barrier.site, launch=query.where.launch,
        parted=decided_by(query.kernel, barrier.site),
    )  # fmt: skip


def _named(barrier: BarrierEvent) -> str:
    return f"`{barrier.site.text}`" if barrier.site.text else "this barrier"


def _returns_in_loops(kernel: ir.Kernel) -> bool:
    """Which rounds a thread returned in is not followed (``BarrierEvent.returned``)."""
    loops = (s for s in walk.walk(kernel.body) if isinstance(s, ir.Loop))
    return any(isinstance(s, ir.Leave) and s.label == KERNEL for loop in loops for s in walk.inside(loop))
