"""A model of the pair becomes a finding when it happens on plain integers; else one of early rounds may."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.model import MAX_BLOCK_THREADS, Mode
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import Doubt, OnData, Open, UpToLibrary
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.solver import report
from cuda_lsp.static.solver.grains import evened
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.solver.tactics import plain
from cuda_lsp.static.solver.tactics.meetings import positive
from cuda_lsp.static.solver.tactics.pair import (
    ROUND,
    Answer,
    GaveUp,
    OpenPair,
    Proved,
    Shown,
    Tactic,
    first_answer,
)
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, copy_of, shared_level
from cuda_lsp.static.symbolic.intervals import barriers
from cuda_lsp.static.symbolic.terms import Op, Term


def already_shown(pair: OpenPair) -> Shown | None:
    """What is certain of these places needs no second finding."""
    known = pair.known
    certain = known is not None and known.certain and not known.same_value
    return Shown(known) if known is not None and certain else None


def replayed_unless(proof: Tactic) -> Tactic:
    """``replayed``; what has a proof for sizes that a layout divides evenly is a doubt about such a size."""

    def replayed_or_uneven(pair: OpenPair) -> Answer:
        answer = replayed(pair)
        if isinstance(answer, Shown) and answer.finding.certain and answer.finding.conditions:
            for uneven, p, facts, query in evened(pair.p, pair.facts, pair.query):
                if isinstance(proof(evolve(pair, p=p, facts=facts, query=query)), Proved):
                    return Shown(answer.finding.doubted(uneven))
        return answer

    return replayed_or_uneven


def of_one_value(tactic: Tactic, proofs: tuple[Tactic, ...]) -> Tactic:
    """The tactic; a race of stores is of one value where ``proofs`` show that no other values meet."""

    def told(pair: OpenPair) -> Answer | None:
        answer = tactic(pair)
        differ = _values_differ(pair.p)
        finding = answer.finding if isinstance(answer, Shown) else None
        if finding is None or differ is None or finding.same_value or not finding.certain:
            return answer
        others = evolve(pair, p=evolve(pair.p, guards=t.and_(pair.p.guards, differ)))
        refuted = first_answer((*proofs, plain.refuted), others)
        if not isinstance(refuted, Proved):
            return answer
        return Shown(evolve(finding, same_value=True), refuted.assumptions)

    return told


def _values_differ(p: Problem) -> Term | None:
    """Of two stores of known values: these are not the same."""
    first, second, shared = p.pair.first, p.pair.second, shared_level(p.pair.relation)
    if first.value is None or second.value is None or not first.mode is second.mode is Mode.WRITE:
        return None
    values = (copy_of(x.value, n, shared, {}) for n, x in enumerate((first, second), 1) if x.value)
    return t.not_(t.eq(*values))


def replayed(pair: OpenPair) -> Answer:
    """The finding of Z3's model; where there is neither a model nor a proof, why."""
    p, facts, query, launch = pair.p, pair.facts, pair.query, pair.launch
    answer = query.ask(p, facts)
    if answer.outcome is Outcome.UNKNOWN and pair.among <= budgets.FEW_PAIRS:
        answer = query.ask(_of_small_sizes(p, facts), facts)
        if answer.outcome is not Outcome.MODEL:
            answer = query.ask(p, facts, patiently=True)
    if answer.outcome is Outcome.REFUTED:
        return Proved()
    if answer.outcome is Outcome.UNKNOWN:
        if not pair.meets:
            return GaveUp(Open.TIME)
        return Shown(pair.known or report.unexcluded(p, facts, query, launch))
    finding = report.race_finding(p, facts, answer, query, launch)
    if finding is None or finding.doubt is Open.REPLAY or _undefined(finding, pair):
        finding = _in_early_rounds(pair) or finding
    if finding is None:
        return GaveUp(_not_replayed(query))
    return Shown(report.with_broken_rows(finding, pair.broken) if pair.broken is not None else finding)


def _of_small_sizes(p: Problem, facts: Term) -> Problem:
    """The pair for few blocks, rounds and elements: a model of it is found much sooner, if there is one.

    Nothing is divided by 0 in it: that a size is less than its divisor is no race.
    """
    most, parts = t.const(min(budgets.SMALL_WITNESSES)), list(t.subterms(facts, p.formula))
    named = (x for x in parts if x.op is Op.SYMBOL and x.hi >= MAX_BLOCK_THREADS)
    few = (t.and_(t.le(t.ZERO, x), t.le(x, most)) for x in named)
    divisors = (t.le(t.ONE, x.args[1]) for x in parts if x.op in (Op.DIV, Op.REM))
    return evolve(p, guards=t.and_(p.guards, *few, *divisors))


def _undefined(finding: Diagnosis, pair: OpenPair) -> bool:
    """The model divides by 0, or the like: nothing that the pair asks of memory is unknown."""
    return isinstance(finding.doubt, OnData) and report.data_dependence(pair.p, pair.query) is None


def _in_early_rounds(pair: OpenPair) -> Diagnosis | None:
    """The certain race of a model with positive sizes whose loops run a few rounds, which can be replayed."""
    p, facts, query = pair.p, pair.facts, pair.query
    counters = [
        part for part in t.subterms(p.formula)
        if part.op in (Op.SYMBOL, Op.APPLY) and ROUND.fullmatch(part.args[0])
        and part.args[0] not in query.where.free
    ]  # fmt: skip
    limits = (t.le(part, t.const(budgets.EARLY_ROUNDS)) for part in counters)
    early = evolve(p, guards=t.and_(p.guards, positive(p.formula, query), *limits))
    answer = query.ask(early, facts)
    if answer.outcome is not Outcome.MODEL:
        return None
    finding = report.race_finding(early, facts, answer, query, pair.launch)
    return finding if finding is not None and finding.certain else None


def _not_replayed(query: Query) -> Doubt:
    """Replays accuse nobody across a barrier that is up to a library; proofs do not rest on it."""
    site = next((b.site for b in barriers(query.summary.events) if not b.assured), None)
    return Open.NOT_REPLAYED if site is None else UpToLibrary(site.text)
