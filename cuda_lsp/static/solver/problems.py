"""The pairs of accesses that arithmetic leaves open, most suspicious first."""

from __future__ import annotations

from functools import cache

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.model import LaunchConfig, Mode, SourceRange, Space
from cuda_lsp.static import work
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.solver.answer import Stats
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Copies, Problem, problem, refuted, shared_level
from cuda_lsp.static.symbolic.events import Summary
from cuda_lsp.static.symbolic.intervals import Sites, Ticketed, TooManyPairs, pairs, relations
from cuda_lsp.static.symbolic.launch import Setting, rank, related
from cuda_lsp.static.symbolic.terms import Term

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
        for pair in pairs(summary, relation, gpu.warp_size, ticketed, deadline):
            stats.pairs += 1
            if work.now() > deadline:
                raise TooManyPairs("the kernel has too many pairs of accesses for the solver's time")
            candidate = problem(pair, where.axes, gpu.warp_size, copies)
            if refuted(candidate, where.axes):
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


def _suspicion(p: Problem) -> tuple[bool, bool, bool]:
    """Smaller is more suspicious: shared memory, different expressions, two plain writes."""
    a, b = p.pair.first, p.pair.second
    alike = a.offset is b.offset or a.site.range == b.site.range
    return (a.array.space is not Space.SHARED, alike, Mode.READ in (a.mode, b.mode))
