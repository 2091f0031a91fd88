"""Two threads that meet however wide rows are: in one row, where the addresses are linear.

The certain race of a pair whose addresses are products. Parameters are positive in it, as sizes are: nothing
is divided by 0, nothing wraps below it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.solver import query as z3
from cuda_lsp.static.solver.query import Outcome, Query, is_linear
from cuda_lsp.static.solver.report import race_finding
from cuda_lsp.static.solver.rows.pitch import meetings_in_a_row
from cuda_lsp.static.solver.tactics.pair import OpenPair, Shown
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Term


def in_a_row(pair: OpenPair) -> Shown | None:
    """The first meeting that is certain when it is run again."""
    for within, answer in meetings(pair.p, pair.facts, pair.query):
        finding = race_finding(within, pair.facts, answer, pair.query, pair.launch)
        if finding is not None and finding.certain:
            return Shown(finding)
        if finding is not None and finding.doubt is Open.LAUNCH_ASSUMED:
            pair.met = finding
    return None


def under_the_launch(pair: OpenPair) -> Shown | None:
    """A meeting that happens, under a launch that nobody told: no other one would be surer."""
    return Shown(pair.met) if pair.met is not None else None


def meetings(p: Problem, facts: Term, query: Query) -> Iterator[tuple[Problem, z3.Answer]]:
    """Models of the pair that are linear where the pair's addresses are not."""
    for meeting in () if is_linear(p.overlap) else meetings_in_a_row(p, query.summary, query.where.free):
        within = evolve(p, overlap=meeting, guards=t.and_(p.guards, positive(p.formula, query)))
        if meeting is not t.FALSE and is_linear(meeting):
            answer = query.ask(within, facts)
            if answer.outcome is Outcome.MODEL:
                yield within, answer


def positive(formula: Term, query: Query) -> Term:
    """The formula's parameters are positive."""
    return t.and_(*(t.le(t.ONE, part) for part in query.parameters(formula)))
