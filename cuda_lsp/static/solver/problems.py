"""The pairs of accesses that arithmetic leaves open, most suspicious first."""

from __future__ import annotations

from functools import cache

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import STRETCH
from cuda_lsp.model import LaunchConfig, Mode, SourceRange, Space
from cuda_lsp.static import work
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.solver.answer import Stats
from cuda_lsp.static.symbolic import extremes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import (
    Copies,
    Problem,
    problem,
    refuted,
    shared_level,
)
from cuda_lsp.static.symbolic.events import Access, Summary
from cuda_lsp.static.symbolic.intervals import (
    Apart,
    Pair,
    Relation,
    Sites,
    Ticketed,
    TooManyPairs,
    pairs,
    relations,
)
from cuda_lsp.static.symbolic.launch import Setting, rank, related
from cuda_lsp.static.symbolic.terms import Op, Term

_LOOKED_AT = 20
"""Instructions that a look at two addresses is worth, beside the terms that it makes."""

Candidate = tuple[Problem, Term]
"""A pair's formula, and how its two threads relate."""


def ticketed(kernel: ir.Kernel, launch: LaunchConfig, gpu: GpuModel) -> Ticketed:
    """Places that only the numbers drawn from a counter kept apart when the kernel was executed.

    The order that they give is a matter of the whole grid, which two generic threads do not show.
    """

    @cache
    def shown() -> frozenset[frozenset[SourceRange]]:
        trace = execute(kernel, launch, launch.arguments, gpu)
        races = {frozenset(race.key[1:]) for race in find_races(trace) if race.between_blocks}
        return frozenset(trace.ticketed - races)

    return lambda a, b: frozenset((a.range, b.range)) in shown()


def problems(
    kernel: ir.Kernel, summary: Summary, where: Setting, gpu: GpuModel, stats: Stats, deadline: float,
    ticketed: Ticketed = lambda a, b: False,
) -> list[Candidate]:  # fmt: skip
    """What arithmetic leaves open, most suspicious first, with the relation's constraints.

    Raises ``TooManyPairs``, also when listing them takes longer than ``deadline`` (of ``work.now``).
    """
    lock_step = kernel.directives.warp_synchronous
    told = t.and_(summary.assumptions or t.TRUE, where.bounds)
    found: list[Candidate] = []
    seen: set[tuple[Sites, Term]] = set()
    for relation in relations(summary, gpu.warp_size, lock_step, kernel.cluster is not None):
        facts = related(where, relation)
        if facts is t.FALSE:
            continue
        own = rank(where) if relation.same_cluster else None
        copies = Copies(shared_level(relation), told, summary.invariants, own)
        apart = _apart(copies, facts, relation, where, gpu, stats)
        for pair in pairs(summary, relation, gpu.warp_size, ticketed, deadline, apart):
            stats.pairs += 1
            if work.now() > deadline:
                raise TooManyPairs("the kernel has too many pairs of accesses for the solver's time")
            candidate = problem(pair, where.axes, gpu.warp_size, copies)
            if _is_refuted(candidate, facts, where, stats):
                stats.refuted += 1
                continue
            formula = t.and_(facts, candidate.formula)
            key = (pair.sites, formula)
            if formula is t.FALSE or key in seen:
                stats.refuted += 1
                continue
            seen.add(key)
            found.append((candidate, facts))
    found.sort(key=lambda entry: _suspicion(entry[0]))
    return found


def _is_refuted(p: Problem, facts: Term, where: Setting, stats: Stats) -> bool:
    if refuted(p, where.axes):
        return True
    decided = extremes.never(p.overlap, (facts, p.guards))
    if decided:
        stats.mentioned |= {x.args[0] for x in t.subterms(p.formula) if x.op is Op.SYMBOL}
    return decided


def _apart(
    copies: Copies, facts: Term, relation: Relation, where: Setting, gpu: GpuModel, stats: Stats
) -> Apart:
    """Whether arithmetic decides two accesses without what separates them; it looks at two addresses once."""
    known: dict[tuple[object, ...], bool] = {}
    alike: dict[tuple[object, ...], bool] = {}

    def decided(one: Access, other: Access) -> bool:
        work.DONE.instructions += _LOOKED_AT
        pair = Pair(one, other, (), relation)
        return _is_refuted(problem(pair, where.axes, gpu.warp_size, copies), facts, where, stats)

    def apart(one: Access, other: Access) -> bool:
        if one.array is not other.array:
            return False
        key = one.array, *((x.offset, x.guard, x.size, x.word, x.held) for x in (one, other))
        if key not in known:
            # Planes are as far apart as others are. (Not objects of a table, which are told apart by more.)
            gap = t.sub(copies.place(one, 1), copies.place(other, 2))
            moved = one.array, gap, *((x.guard, x.size, x.word, x.held) for x in (one, other))
            if any(abs(c) >= STRETCH // 2 for c in t.monomials(gap).values()):
                known[key] = decided(one, other)
            else:
                if moved not in alike:
                    alike[moved] = decided(one, other)
                known[key] = alike[moved]
        return known[key]

    return apart


def _suspicion(p: Problem) -> tuple[bool, bool, bool]:
    """Smaller is more suspicious: shared memory, different expressions, two plain writes."""
    a, b = p.pair.first, p.pair.second
    alike = a.offset is b.offset or a.site.range == b.site.range
    return (a.array.space is not Space.SHARED, alike, Mode.READ in (a.mode, b.mode))
