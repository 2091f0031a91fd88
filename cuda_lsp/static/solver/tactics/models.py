"""A model of the pair becomes a finding when it happens on plain integers; else one of early rounds may."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.model import MAX_BLOCK_THREADS, Mode
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import Doubt, Example, OnData, Open, UpToLibrary
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.solver import query as z3
from cuda_lsp.static.solver import report
from cuda_lsp.static.solver.grains import evened, of_whole_blocks, step_of
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.solver.tactics import plain
from cuda_lsp.static.solver.tactics.meetings import positive
from cuda_lsp.static.solver.tactics.pair import (
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
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.terms import Op, Term


def already_shown(pair: OpenPair) -> Shown | None:
    """What is certain of these places needs no second finding; but threads of two warps tell more than lanes.

    That lanes of one warp meet may be lock step, which a ``__syncwarp()`` mends: other threads are none.
    """
    known = pair.known
    if known is None or not known.certain or known.same_value:
        return None
    relation = pair.p.pair.relation
    worse = known.lanes_only and relation.same_block and relation.across is not None
    return None if worse else Shown(known)


def soon(tactic: Tactic) -> Tactic:
    """The tactic, as far as what it finds happens within a short replay: others may still be decided."""

    def within_a_short_replay(pair: OpenPair) -> Answer | None:
        brief = evolve(pair, query=pair.query.briefly_replaying())
        answer, pair.met = tactic(brief), brief.met
        return answer

    return within_a_short_replay


def in_turn(tactic: Tactic) -> Tactic:
    """The tactic, whose replays take no time of the pairs that wait: one may run longer than all there is."""

    def within_its_share(pair: OpenPair) -> Answer | None:
        shared = evolve(pair, query=pair.query.replaying_for_one_of(pair.waiting))
        answer, pair.met = tactic(shared), shared.met
        return answer

    return within_its_share


def replayed_unless(proof: Tactic) -> Tactic:
    """``replayed``; what has a proof for sizes that a layout divides evenly is a doubt about such a size."""

    def replayed_or_uneven(pair: OpenPair) -> Answer:
        return _unless_even(pair, replayed(pair), proof)

    return replayed_or_uneven


def soon_replayed_unless(proof: Tactic) -> Tactic:
    """The same, as far as a model is known and happens within a short replay."""

    def soon_replayed_or_uneven(pair: OpenPair) -> Answer | None:
        brief = evolve(pair, query=pair.query.briefly_replaying())
        answer = brief.query.ask(pair.p, pair.facts)
        if answer.outcome is not Outcome.MODEL:
            return None
        finding = _in_early_rounds(brief) if _runs_long(answer) else _happening(brief, answer)
        return _unless_even(pair, _shown(pair, finding), proof) if finding and finding.certain else None

    return soon_replayed_or_uneven


def _runs_long(answer: z3.Answer) -> bool:
    """A thread of the model makes more rounds than a short replay has time for."""
    rounds = (value for term, value in (answer.values or {}).items() if _is_counter(term))
    return max(rounds, default=0) > budgets.BRIEF_ROUNDS


def _is_counter(term: Term) -> bool:
    return term.op in (Op.SYMBOL, Op.APPLY) and ROUND.fullmatch(term.args[0]) is not None


def _unless_even(pair: OpenPair, answer: Answer, proof: Tactic) -> Answer:
    if not isinstance(answer, Shown):
        return answer
    finding, asked = answer.finding, (pair.p, pair.facts, pair.query)
    if finding.certain and finding.conditions:
        cases = evened(*asked)
    elif finding.doubt is Open.ARGUMENTS:
        cases = of_whole_blocks(*asked)
    else:
        return answer
    for uneven, p, facts, query in cases:
        if isinstance(proof(evolve(pair, p=p, facts=facts, query=query)), Proved):
            needed = tuple(c for c in finding.conditions if not isinstance(c, Example))
            return Shown(evolve(finding.doubted(uneven), conditions=needed))
    return answer


def of_one_value(tactic: Tactic, proofs: tuple[Tactic, ...]) -> Tactic:
    """The tactic; a race of stores is of one value where ``proofs`` show that no other values meet."""

    def told(pair: OpenPair) -> Answer | None:
        answer = tactic(pair)
        differ = _values_differ(pair.p)
        finding = answer.finding if isinstance(answer, Shown) else None
        if finding is None or differ is None or finding.same_value or not finding.certain:
            return answer
        others = evolve(pair, p=evolve(pair.p, guards=t.and_(pair.p.guards, differ)))
        if _shown_for(others, finding):
            return answer
        refuted = first_answer((*proofs, plain.refuted), others)
        if not isinstance(refuted, Proved):
            return answer
        return Shown(evolve(finding, same_value=True), refuted.assumptions)

    return told


def _shown_for(others: OpenPair, finding: Diagnosis) -> bool:
    """For the finding's own arguments there is a model: numbers for all sizes make that a cheap question."""
    query = others.query
    formula = query.complete(t.and_(others.facts, others.p.formula), others.p)
    witness = finding.witness
    if witness is None:
        return False
    named = (x for x in query.parameters(formula) if x.args[0] in witness.arguments)
    given = {x: t.const(witness.arguments[x.args[0]]) for x in named}
    return query.briefly(t.substitute(formula, given)).outcome is Outcome.MODEL


def _values_differ(p: Problem) -> Term | None:
    """Of two stores of known values: not the same is written, or to other bytes."""
    first, second, shared = p.pair.first, p.pair.second, shared_level(p.pair.relation)
    if first.value is None or second.value is None or not first.mode is second.mode is Mode.WRITE:
        return None
    one, other = copy_of(first.value, 1, shared, {}), copy_of(second.value, 2, shared, {})
    sizes = copy_of(first.size, 1, shared, {}), copy_of(second.size, 2, shared, {})
    return t.not_(t.and_(t.eq(one, other), t.eq(p.difference, t.ZERO), t.eq(*sizes)))


def replayed(pair: OpenPair) -> Answer:
    """The finding of Z3's model; where there is neither a model nor a proof, why.

    Of places that data say no more time would tell: whether they meet is up to these data.
    """
    p, facts, query, launch = pair.p, pair.facts, pair.query, pair.launch
    answer = query.ask(p, facts)
    data = report.data_in_addresses(p, query) if answer.outcome is Outcome.UNKNOWN else None
    if answer.outcome is Outcome.UNKNOWN and data is None and pair.among <= budgets.FEW_PAIRS:
        answer = query.ask(_of_small_sizes(p, facts), facts)
        if answer.outcome is not Outcome.MODEL:
            answer = query.ask(p, facts, patiently=True)
    if answer.outcome is Outcome.REFUTED:
        return Proved()
    if answer.outcome is Outcome.UNKNOWN:
        if not pair.meets:
            return GaveUp(data or Open.TIME)
        return Shown(pair.known or report.unexcluded(p, facts, query, launch))
    finding = _happening(pair, answer)
    return _shown(pair, finding) if finding is not None else GaveUp(_not_replayed(query))


def _happening(pair: OpenPair, answer: z3.Answer) -> Diagnosis | None:
    """What comes of a model, or of one of early rounds; None: neither happens."""
    finding = report.race_finding(pair.p, pair.facts, answer, pair.query, pair.launch)
    if finding is None or finding.doubt is Open.REPLAY or _undefined(finding, pair):
        finding = _in_early_rounds(pair) or _divided(pair, finding) or finding
    if finding is not None and _before_array(finding):
        return _behind_its_begin(pair, finding) or finding
    return finding


def _divided(pair: OpenPair, found: Diagnosis | None) -> Diagnosis | None:
    """Of a model in which nothing is divided by 0, where one of the other kind is all that was found."""
    p, query = pair.p, pair.query
    divisors = {
        x.args[1] for x in t.subterms(p.formula) if x.op in (Op.DIV, Op.REM) and not x.args[1].is_const
    }
    if found is None or not divisors or not _undefined(found, pair):
        return None
    answer = query.ask(evolve(p, guards=t.and_(p.guards, *(t.le(t.ONE, x) for x in divisors))), pair.facts)
    if answer.outcome is not Outcome.MODEL:
        return None
    return report.race_finding(p, pair.facts, answer, query, pair.launch)


def _before_array(finding: Diagnosis) -> bool:
    return finding.witness is not None and min(finding.witness.index, default=0) < 0


def _behind_its_begin(pair: OpenPair, found: Diagnosis) -> Diagnosis | None:
    """The same at a place of the array: contents that lead in front of it are none that anybody has."""
    p, query = pair.p, pair.query
    inside = evolve(p, guards=t.and_(p.guards, *(t.le(t.ZERO, offset) for offset in p.offsets)))
    answer = query.ask(inside, pair.facts)
    if answer.outcome is not Outcome.MODEL:
        return None
    finding = report.race_finding(inside, pair.facts, answer, query, pair.launch)
    return finding if finding is not None and finding.status is found.status else None


def _shown(pair: OpenPair, finding: Diagnosis) -> Shown:
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


def of_given_sizes(pair: OpenPair) -> Shown | None:
    """The certain race that there is for several numbers in place of what products and quotients are made of.

    Addresses are linear then. Numbers that rise and that fall are tried: no one order of sizes makes it. They
    are multiples of what the layout divides them by.
    """
    p, facts, query = pair.p, pair.facts, pair.query
    formula = query.complete(t.and_(facts, _of_small_sizes(p, facts).formula), p)
    sizes, found = _multiplied(formula, query), list[Diagnosis]()
    for order in (sizes, sizes[::-1]) if sizes else ():
        given = {x: (budgets.LEAST_GIVEN_SIZE + i) * step_of(x, p) for i, x in enumerate(order)}
        answer = query.solve(t.substitute(formula, {x: t.const(n) for x, n in given.items()}))
        if answer.outcome is not Outcome.MODEL:
            return None
        answer = evolve(answer, values={**(answer.values or {}), **given})
        finding = report.race_finding(p, facts, answer, query, pair.launch)
        if finding is None or not finding.certain:
            return None
        found.append(finding)
    return _shown(pair, found[0]) if found else None


def _multiplied(formula: Term, query: Query) -> list[Term]:
    """Parameters that something is multiplied with, or divided by."""
    parts = list(t.subterms(formula))
    named = {x for part in parts for m in t.monomials(part) if len(m) > 1 for x in m}
    named |= {x for part in parts if part.op in (Op.DIV, Op.REM) for x in t.subterms(part.args[1])}
    return [x for x in query.parameters(formula) if x in named]


def _undefined(finding: Diagnosis, pair: OpenPair) -> bool:
    """The model divides by 0, or the like: nothing that the pair asks of memory is unknown."""
    return isinstance(finding.doubt, OnData) and report.data_dependence(pair.p, pair.query) is None


def _in_early_rounds(pair: OpenPair) -> Diagnosis | None:
    """The certain race of a model with positive sizes whose loops run a few rounds, which can be replayed."""
    p, facts, query = pair.p, pair.facts, pair.query
    parts = t.subterms(p.formula)
    counters = [x for x in parts if _is_counter(x) and x.args[0] not in query.where.free]
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
