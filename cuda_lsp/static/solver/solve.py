"""The second tier: proves a kernel race-free for all arguments (and launches), or finds a witness.

One kernel, one launch after another: summarise symbolically, list the pairs that no barrier orders,
refute by arithmetic (``affine``), ask Z3 for the rest, most suspicious first, within a budget.  A model
is run again on plain integers (``witness``) before it becomes a finding.  What stays unanswered is a
reason, never silence.  Runs in the calling process; ``workers`` runs it where it can be killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from threading import Lock

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.model import Code, GpuModel, LaunchConfig, Mode, SourceRange, Space, Verdict
from cuda_lsp.static import work
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.schedules.report import races_by_running
from cuda_lsp.static.solver import report as solve_report
from cuda_lsp.static.solver.bounds import out_of_bounds
from cuda_lsp.static.solver.exits import missed_by_leavers_only
from cuda_lsp.static.solver.masks import mask_cases
from cuda_lsp.static.solver.query import Answer, Outcome, Query, is_linear
from cuda_lsp.static.solver.rows import Pitch, meetings_in_a_row, pitches_of
from cuda_lsp.static.solver.stated import speaks_against_powers, speaks_against_sizes, speaks_of_rows
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, copy_of, problem, refuted, shared_level
from cuda_lsp.static.symbolic.digits import digits_of
from cuda_lsp.static.symbolic.encode import base_name, closure
from cuda_lsp.static.symbolic.events import Summary
from cuda_lsp.static.symbolic.intervals import (
    OwnCopy,
    Pair,
    Relation,
    Ticketed,
    TooManyPairs,
    barriers,
    pairs,
    relations,
    unfinished_copies,
)
from cuda_lsp.static.symbolic.launch import Setting, related, setting
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import forget
from cuda_lsp.static.symbolic.walk import TooLarge, summarise

_MANY_PAIRS = 16  # more may not all be decided in time
UNROLL = 12
"""Rounds of a loop with barriers walked one by one when its closed form leaves a doubt."""

MAX_DOUBTS = 4
"""Undecided pairs told one by one; the rest is counted."""

_GLANCE = 0.05
"""Of the budget, for executions before the solver is asked."""

_RUNNING = 0.2
"""Of the budget, for executions of a launch when the solver took all of it."""

_EARLY = 3
_ROUND = re.compile(r"(?:k\d+(?:\.\d+)*|exit\d+)(?:#\d)?")
"""Terms that count rounds of loops: iterators, and how often a loop runs."""

Sites = tuple[SourceRange, SourceRange]


@frozen
class Budget:
    """Limits in seconds of ``work``. ``launches``: how many known launches are looked at."""

    kernel: float = 2.0
    query: float = 0.4
    launches: int = 8


@define
class Stats:
    """What it took: pairs listed, refuted by arithmetic, Z3 queries, seconds of ``work``."""

    pairs: int = 0
    refuted: int = 0
    queries: int = 0
    seconds: float = 0.0


@frozen
class SolverResult:
    """What the solver says of a kernel.

    ``verdict``: for the launches looked at, all arguments. ``every_launch``: race-free for every
    launch of the target as well. ``reasons``: why it is undecided. ``assumptions``: what a proof took
    for granted, for people.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    findings: tuple[Diagnosis, ...] = ()
    stats: Stats = field(factory=Stats)
    every_launch: bool = False
    assumptions: tuple[str, ...] = ()
    mixed: bool = True  # barriers may be matched wrongly; False only when that is proved impossible


@define
class _Attempt:
    """One pass over a kernel under one setting."""

    findings: dict[Sites, Diagnosis] = field(factory=dict[Sites, Diagnosis])
    doubts: dict[Sites, str] = field(factory=dict[Sites, str])
    others: list[Diagnosis] = field(factory=list[Diagnosis])
    reasons: dict[str, None] = field(factory=dict[str, None])
    assumptions: dict[str, None] = field(factory=dict[str, None])
    mixed: bool = False  # threads may wait at different barriers

    @property
    def decided(self) -> bool:
        return not self.doubts and not self.reasons and not self.findings and not self.mixed

    def absorb(self, other: _Attempt) -> None:
        """Adds what another launch showed; of two findings at one pair of sites the surer stays."""
        for sites, finding in other.findings.items():
            known = self.findings.get(sites)
            if known is None or finding.effective_severity < known.effective_severity:
                self.findings[sites] = finding
        self.doubts = {s: d for s, d in (self.doubts | other.doubts).items() if s not in self.findings}
        told = {(f.code, f.site) for f in self.others}
        self.others += [f for f in other.others if (f.code, f.site) not in told]
        self.reasons.update(other.reasons)
        self.assumptions.update(other.assumptions)
        self.mixed = self.mixed or other.mixed

    def _doubts_told(self) -> list[str]:
        told = list(dict.fromkeys(self.doubts.values()))
        more = len(told) - MAX_DOUBTS
        return told if more <= 0 else [*told[:MAX_DOUBTS], f"{more} more pairs of accesses were not decided"]

    def verdict(self) -> tuple[Verdict, tuple[str, ...]]:
        """The verdict and, when undecided, why."""
        if any(f.certain for f in self.findings.values()):
            return Verdict.RACY, (*self.reasons, *self._doubts_told())
        if self.decided:
            return Verdict.RACE_FREE, ()
        reasons = [*self.reasons, *self._doubts_told()]
        reasons += [f.reason for f in self.findings.values() if f.reason]
        if self.mixed:
            reasons.append("a barrier that not all threads reach")
        return Verdict.UNDECIDED, tuple(dict.fromkeys(reasons))


_lock = Lock()  # Z3's global context and the term table are not thread-safe


def refine_kernel(
    kernel: ir.Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget | None = None
) -> SolverResult:
    """Decides the kernel for the given launches (best first) with every argument they leave open."""
    with _lock:
        return _refine(kernel, launches, gpu, budget or Budget())


def _refine(
    kernel: ir.Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
) -> SolverResult:
    t.begin_afresh()
    forget()
    deadline = work.begin(budget.kernel)
    stats = Stats()
    merged = _Attempt()
    for launch in launches[: budget.launches] or [LaunchConfig((256, 1, 1))]:
        merged.absorb(_settle_launch(kernel, launch, gpu, budget, deadline, stats))
    every = False
    if merged.decided and (not launches or launches[0].assumed):
        every = _holds_for_every_launch(kernel, gpu, budget, deadline, stats)
    stats.seconds = budget.kernel - (deadline - work.now())
    verdict, reasons = merged.verdict()
    findings = (*merged.findings.values(), *merged.others)
    return SolverResult(verdict, reasons, findings, stats, every, tuple(merged.assumptions), merged.mixed)


def _run_what_is_open(
    kernel: ir.Kernel, launch: LaunchConfig, gpu: GpuModel, attempt: _Attempt, deadline: float
) -> None:
    """Pairs that a real schedule shows to race, of those that are not decided, become certain."""
    unsure = [s for s, f in attempt.findings.items() if not f.certain]
    for sites, finding in races_by_running(kernel, launch, gpu, [*attempt.doubts, *unsure], deadline).items():
        attempt.doubts.pop(sites, None)
        attempt.findings[sites] = finding


def _settle_launch(
    kernel: ir.Kernel, launch: LaunchConfig, gpu: GpuModel, budget: Budget, deadline: float, stats: Stats
) -> _Attempt:
    """Closed-form loops first; what that leaves open is executed; then loops with barriers round by round."""
    parametric = _attempt(kernel, launch, gpu, budget, deadline, stats, 0)
    least = min(work.now() + _RUNNING * budget.kernel, deadline + _RUNNING * budget.kernel)
    _run_what_is_open(kernel, launch, gpu, parametric, max(deadline, least))
    certain = {s for s, f in parametric.findings.items() if f.certain}
    if not parametric.doubts and len(certain) == len(parametric.findings):
        return parametric
    unrolled = _attempt(kernel, launch, gpu, budget, deadline, stats, UNROLL)
    gave_up = set(unrolled.reasons) - set(parametric.reasons)
    better = len(unrolled.doubts) < len(parametric.doubts) or (
        not unrolled.doubts and len(unrolled.findings) <= len(parametric.findings)
    )
    if gave_up or not better:
        return parametric
    for sites in certain:
        again = unrolled.findings.get(sites)
        if again is None or not again.certain:
            unrolled.findings[sites] = parametric.findings[sites]
        unrolled.doubts.pop(sites, None)
    return unrolled


def _attempt(
    kernel: ir.Kernel, launch: LaunchConfig, gpu: GpuModel, budget: Budget, deadline: float,
    stats: Stats, unroll: int,
) -> _Attempt:  # fmt: skip
    attempt = _Attempt()
    where = setting(kernel, launch, gpu)
    try:
        summary = summarise(kernel, where.axes, where.arguments, unroll, deadline)
        attempt.reasons.update(dict.fromkeys(summary.reasons))
        own = unfinished_copies(summary, gpu.warp_size)
        problems = _problems(kernel, summary, where, gpu, stats, deadline, _ticketed(kernel, launch, gpu))
    except (TooLarge, TooManyPairs) as error:
        attempt.reasons[str(error)] = None
        return attempt
    except RecursionError:
        attempt.reasons["the kernel's expressions nest too deeply for the solver"] = None
        return attempt
    query = Query(kernel, where, summary, budget.query, deadline, stats)
    attempt.reasons.update(dict.fromkeys(_own_copies(own, query)))
    if _contradicted(query):
        attempt.reasons[f"its assertions do not hold when the block is {launch.block}: no thread runs"] = None
    if not unroll:
        until = min(deadline, work.now() + _GLANCE * budget.kernel)
        wanted = {_sites(p.pair): None for p, _ in problems if solve_report.data_dependence(p, query)}
        found = races_by_running(kernel, launch, gpu, list(wanted), until, glance=True)
        attempt.findings.update(found)  # the solver need not look for these
    attempt.assumptions.update(dict.fromkeys(_told(_sizes_that_matter(problems, summary))))
    open_ = _without_common_proofs(problems, query, attempt, launch)
    many = len(open_) > _MANY_PAIRS
    reached = [
        _wherever_reached(candidate, facts, query)
        if many or not is_linear(candidate.formula)
        else Outcome.UNKNOWN
        for candidate, facts in open_
    ]
    for (candidate, facts), outcome in zip(open_, reached, strict=True):
        if outcome is not Outcome.REFUTED:
            _decide(candidate, facts, query, attempt, launch, outcome is Outcome.MODEL)
    attempt.others += solve_report.divergences(query, barriers(summary.events))
    if any(f.code is Code.BARRIER_DIVERGENCE for f in attempt.others):
        attempt.mixed = not missed_by_leavers_only(query, summary.events)
    if not launch.assumed:
        attempt.others += out_of_bounds(query, summary.events, launch)
    return attempt


def _sizes_that_matter(problems: Sequence[tuple[Problem, Term]], summary: Summary) -> list[str]:
    """Parameters taken for sizes that have a part in what arithmetic alone leaves open."""
    mentioned = {x.args[0] for p, _ in problems for x in t.subterms(p.formula) if x.op is Op.SYMBOL}
    return sorted(text for text, names in summary.sizes.items() if names <= mentioned)


def _contradicted(query: Query) -> bool:
    """The launch violates what the kernel asserts: whatever is proved of its threads is proved of none."""
    demanded = t.and_(query.summary.asserted or t.TRUE, query.summary.assumptions or t.TRUE)
    if demanded is t.TRUE:
        return False
    return query.satisfiable(t.and_(query.where.bounds, demanded)) is False


def _holds_for_every_launch(
    kernel: ir.Kernel, gpu: GpuModel, budget: Budget, deadline: float, stats: Stats
) -> bool:
    """Race-free for every block and grid of the target (along the axes that the kernel mentions)."""
    where = setting(kernel, None, gpu)
    try:
        summary = summarise(kernel, where.axes, where.arguments, deadline=deadline)
        problems = _problems(kernel, summary, where, gpu, stats, deadline)
    except (TooLarge, TooManyPairs, RecursionError):
        return False
    query = Query(kernel, where, summary, budget.query, deadline, stats)
    if unfinished_copies(summary, gpu.warp_size):
        return False
    return not summary.reasons and all(_refutable(p, facts, query) for p, facts in problems)


def _digits_differ(p: Problem, facts: Term, query: Query) -> tuple[Term, ...] | None:
    """Threads with one address are one thread, by its digits; the parameters taken to be positive for it."""
    digits = digits_of(p, facts, query.where.axes, query.where.free)
    if digits is None or speaks_against_sizes(p, facts, digits.positive, 1, query):
        return None
    if not digits.refuted and (digits.equal is p.overlap or is_linear(p.overlap)):
        return None
    if digits.refuted or query.ask_case(p, facts, t.and_(p.guards, digits.equal)):
        return digits.positive
    return None


def _own_copies(found: Iterable[OwnCopy], query: Query) -> Iterator[str]:
    """Where a thread may touch what its own copy is moving, each place once."""
    relation = Relation()
    facts, shared = related(query.where, relation), shared_level(relation)
    told: set[str] = set()
    for copy in found:
        if copy.text in told:
            continue
        formula = t.and_(facts, copy_of(copy.formula, 1, shared, {}))
        if query.solve(closure(formula, query.summary, shared)).outcome is not Outcome.REFUTED:
            told.add(copy.text)
            yield copy.text


def _refutable(p: Problem, facts: Term, query: Query) -> bool:
    if _digits_differ(p, facts, query) is not None:
        return True
    refuting = False
    for pitch in query.rows_that_refute(p, facts, pitches_of(p, query.where.free, grid_known=False)):
        refuting = True
        rows = _as_stated(p, facts, pitch, query)
        assumed = rows.assumable and not rows.bounded and query.rows_broken(p, facts, rows) is False
        assumed = assumed and query.rows_owed_hold(p, facts, rows)
        if not pitch.sizes and (assumed or query.rows_hold(p, facts, rows)):
            return True
    return not refuting and query.ask(p, facts).outcome is Outcome.REFUTED


def _ticketed(kernel: ir.Kernel, launch: LaunchConfig, gpu: GpuModel) -> Ticketed:
    """Places that only the numbers drawn from a counter kept apart when the kernel was executed.

    The order that they give is a matter of the whole grid, which two generic threads do not show.
    """

    @cache
    def shown() -> frozenset[frozenset[SourceRange]]:
        trace = execute(kernel, launch, launch.arguments, gpu)
        races = {frozenset(race.key[1:]) for race in find_races(trace) if race.between_blocks}
        return frozenset(trace.ticketed - races)

    return lambda a, b: frozenset((a.range, b.range)) in shown()


def _problems(
    kernel: ir.Kernel, summary: Summary, where: Setting, gpu: GpuModel, stats: Stats, deadline: float,
    ticketed: Ticketed = lambda a, b: False,
) -> list[tuple[Problem, Term]]:  # fmt: skip
    """What arithmetic leaves open, most suspicious first, with the relation's constraints.

    Raises ``TooManyPairs``, also when listing them takes longer than ``deadline`` (of ``work.now``).
    """
    lock_step = kernel.directives.warp_synchronous or not gpu.independent_threads
    found: list[tuple[Problem, Term]] = []
    seen: set[tuple[Sites, Term]] = set()
    for relation in relations(summary, gpu.warp_size, lock_step):
        facts = related(where, relation)
        if facts is t.FALSE:
            continue
        for pair in pairs(summary, relation, gpu.warp_size, ticketed):
            stats.pairs += 1
            if work.now() > deadline:
                raise TooManyPairs("the kernel has too many pairs of accesses for the solver's time")
            candidate = problem(pair, where.axes, gpu.warp_size)
            if refuted(candidate, where.axes):
                stats.refuted += 1
                continue
            formula = t.and_(facts, candidate.formula)
            key = (_sites(pair), formula)
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


def _sites(pair: Pair) -> Sites:
    ranges = sorted((pair.first.site.range, pair.second.site.range))
    return ranges[0], ranges[1]


def _without_common_proofs(
    problems: Sequence[tuple[Problem, Term]], query: Query, attempt: _Attempt, launch: LaunchConfig
) -> list[tuple[Problem, Term]]:
    """The problems that are left when those that differ in conditions on data only were proved at once."""
    groups: dict[Term, list[tuple[Problem, Term]]] = {}
    for p, facts in problems:
        groups.setdefault(t.and_(facts, p.overlap, _without_data(p.guards, query)), []).append((p, facts))
    done: set[Problem] = set()
    for members in groups.values():
        p, facts = members[0]
        common = evolve(p, guards=_without_data(p.guards, query))
        if len(members) < 2 or any(_meetings(common, facts, query)):
            continue
        if _proved(common, facts, query, attempt, launch)[0]:
            done.update(member for member, _ in members)
    return [(p, facts) for p, facts in problems if p not in done]


def _without_data(guards: Term, query: Query) -> Term:
    """The conditions that no unknown predicate or value is part of."""
    summary = query.summary
    known = {*summary.facts, *summary.slots, *summary.places, *summary.limits}

    def is_data(part: Term) -> bool:
        return part.op is Op.TEST or (part.op is Op.APPLY and base_name(part.args[0]) not in known)

    return t.and_(*(c for c in t.conjuncts(guards) if not any(map(is_data, t.subterms(c)))))


def _proved(
    p: Problem, facts: Term, query: Query, attempt: _Attempt, launch: LaunchConfig
) -> tuple[bool | None, Pitch | None]:
    """Whether the pair cannot race; what that takes for granted is noted. And rows known to overlap.

    None: nobody knows whether rows overlap, which alone makes it race.
    """
    positive = _digits_differ(p, facts, query)
    if positive is not None:
        attempt.assumptions.update(dict.fromkeys(f"`{t.show(size)}` is positive" for size in positive))
        return True, None
    grid_known = launch.grid is not None and not launch.assumed
    pitches = pitches_of(p, query.where.free, grid_known=grid_known)
    overlapping: list[tuple[bool | None, Pitch]] = []
    candidates: list[Pitch] = []
    for candidate in query.rows_that_refute(p, facts, pitches):
        if not candidate.sizes and query.rows_hold(p, facts, candidate, lightly=True):
            return True, None
        candidates.append(candidate)
    for candidate in candidates:
        pitch = _as_stated(p, facts, candidate, query)
        assumed, broken = _rows_apart(p, facts, pitch, query)
        if assumed is not None and not speaks_against_sizes(p, facts, pitch.sizes, 0, query):
            attempt.assumptions.update(dict.fromkeys(assumed))
            return True, None
        overlapping.append((broken, pitch))
    broken, pitch = overlapping[0] if overlapping else (False, None)
    if pitch is not None and broken is None and not pitch.bounded:
        return None, None
    if pitch and (len(pitch.parameters) < len(pitch.names) or p.overlap.op is not Op.EQ):
        broken = False  # a known width, or one that elements need not divide: too little to accuse
    masks = mask_cases(p.formula, query.where.free)
    assumable = masks is not None and masks.text and not speaks_against_powers(p, masks.size, query)
    if masks is not None and assumable and all(query.ask_case(p, facts, case) for case in masks.cases):
        attempt.assumptions[masks.text] = None
        return True, None
    return query.ask(p, facts).outcome is Outcome.REFUTED, pitch if broken else None


def _rows_apart(
    p: Problem, facts: Term, pitch: Pitch, query: Query
) -> tuple[tuple[str, ...] | None, bool | None]:
    """What has to be taken for granted for rows not to overlap; None: that is too much.

    And whether the program itself makes them overlap.
    """
    if query.rows_hold(p, facts, pitch):
        return _not_negative(pitch.sizes), False
    broken = query.rows_broken(p, facts, pitch) if pitch.assumable else False
    guess = pitch.assumable and not pitch.bounded and broken is False
    if guess and query.rows_owed_hold(p, facts, pitch):
        return (pitch.text, *_not_negative(pitch.sizes)), False
    sizes = query.rows_hold_for_sizes(p, facts, pitch) if pitch.assumable or not pitch.names else ()
    if not sizes or speaks_against_sizes(p, facts, sizes, 0, query):
        return None, broken
    return _not_negative((*sizes, *pitch.sizes)), broken


def _as_stated(p: Problem, facts: Term, pitch: Pitch, query: Query) -> Pitch:
    """Where the source itself says how wide rows are, there is no guess either."""
    guess = pitch.assumable and not pitch.bounded
    if not guess or query.rows_hold(p, facts, pitch) or not speaks_of_rows(p, facts, pitch, query):
        return pitch
    return evolve(pitch, bounded=True)


def _not_negative(sizes: Iterable[Term]) -> tuple[str, ...]:
    return _told(size.args[0] for size in sizes)


def _told(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"`{name}` is not negative" for name in names)


def _decide(
    p: Problem, facts: Term, query: Query, attempt: _Attempt, launch: LaunchConfig, meets: bool = False
) -> None:
    """``meets``: the two accesses do meet wherever both are reached."""
    sites = _sites(p.pair)
    known = attempt.findings.get(sites)
    if known is not None and known.certain and not known.same_value:
        return
    finding = _race_for_every_pitch(p, facts, query, launch)
    if finding is not None:
        attempt.findings[sites] = finding
        return
    proved, broken = _proved(p, facts, query, attempt, launch)
    if proved:
        return
    if proved is None:
        attempt.doubts[sites] = _doubt(p, "the solver ran out of time")
        return
    answer = query.ask(p, facts)
    if answer.outcome is Outcome.UNKNOWN:
        if meets:
            attempt.findings.setdefault(sites, solve_report.unexcluded(p, facts, query, launch))
        else:
            attempt.doubts[sites] = _doubt(p, "the solver ran out of time")
        return
    finding = solve_report.race_finding(p, facts, answer, query, launch)
    if finding is None or finding.doubt is Open.REPLAY:
        finding = _in_early_rounds(p, facts, query, launch) or finding
    if finding is not None and broken is not None:
        finding = solve_report.with_broken_rows(finding, broken)
    if finding is None:
        attempt.doubts[sites] = _doubt(p, _not_replayed(query))
    elif known is None or finding.effective_severity <= known.effective_severity:
        attempt.findings[sites] = finding


def _wherever_reached(p: Problem, facts: Term, query: Query) -> Outcome:
    """The answer for a costly pair in shared memory, without the conditions that both threads share.

    When the threads of a block cannot meet even so, they never do. When they can, only such a condition
    may keep them apart. Products and quotients that both threads share may be anything in it, too.
    """
    reached = {*t.conjuncts(p.pair.first.guard), *t.conjuncts(p.pair.second.guard)}
    own = t.and_(*(c for c in t.conjuncts(p.guards) if _differs(c) or c not in reached))
    in_block = p.pair.first.array.space is Space.SHARED and p.pair.relation.same_block
    if not in_block or own is p.guards:
        return Outcome.UNKNOWN
    values: dict[Term, Term] = {}

    def leaf(part: Term) -> Term | None:
        if part.op not in _NUMBERS or _differs(part) or is_linear(part):
            return None
        return values.setdefault(part, t.symbol(f"value {len(values)}", Level.GRID, part.lo, part.hi))

    memo: dict[Term, Term] = {}
    guards, overlap = t.replace(own, leaf, memo), t.replace(p.overlap, leaf, memo)
    return query.ask(evolve(p, guards=guards, overlap=overlap), facts).outcome


_NUMBERS = frozenset(
    {Op.SUM, Op.DIV, Op.REM, Op.FLOOR_DIV, Op.FLOOR_MOD, *t.BIT_OPS, Op.ITE, Op.WRAP, Op.POWER}
)


def _differs(term: Term) -> bool:
    """The two threads have different values of it."""
    return any(map(_is_of_one_thread, t.subterms(term)))


def _is_of_one_thread(part: Term) -> bool:
    return part.op in (Op.SYMBOL, Op.APPLY, Op.TEST) and part.args[0] != base_name(part.args[0])


def _race_for_every_pitch(p: Problem, facts: Term, query: Query, launch: LaunchConfig) -> Diagnosis | None:
    """The certain race of two threads that meet however wide rows are: they meet in one row."""
    for within, answer in _meetings(p, facts, query):
        finding = solve_report.race_finding(within, facts, answer, query, launch)
        if finding is not None and finding.certain:
            return finding
    return None


def _in_early_rounds(p: Problem, facts: Term, query: Query, launch: LaunchConfig) -> Diagnosis | None:
    """The certain race of a model with positive sizes whose loops run a few rounds, which can be replayed."""
    counters = [
        part for part in t.subterms(p.formula)
        if part.op in (Op.SYMBOL, Op.APPLY) and _ROUND.fullmatch(part.args[0])
        and part.args[0] not in query.where.free
    ]  # fmt: skip
    limits = (t.le(part, t.const(_EARLY)) for part in counters)
    early = evolve(p, guards=t.and_(p.guards, _positive(p.formula, query), *limits))
    answer = query.ask(early, facts)
    if answer.outcome is not Outcome.MODEL:
        return None
    finding = solve_report.race_finding(early, facts, answer, query, launch)
    return finding if finding is not None and finding.certain else None


def _positive(formula: Term, query: Query) -> Term:
    """Its parameters are positive, as sizes are: nothing is divided by 0, nothing wraps below it."""
    return t.and_(*(t.le(t.ONE, part) for part in query.parameters(formula)))


def _meetings(p: Problem, facts: Term, query: Query) -> Iterator[tuple[Problem, Answer]]:
    """Models of the pair that are linear where the pair's addresses are not."""
    for meeting in () if is_linear(p.overlap) else meetings_in_a_row(p, query.where.free):
        within = evolve(p, overlap=meeting, guards=t.and_(p.guards, _positive(p.formula, query)))
        if meeting is not t.FALSE and is_linear(meeting):
            answer = query.ask(within, facts)
            if answer.outcome is Outcome.MODEL:
                yield within, answer


def _not_replayed(query: Query) -> str:
    """Replays accuse nobody across a barrier that is up to a library; proofs do not rest on it."""
    site = next((b.site for b in barriers(query.summary.events) if not b.assured), None)
    if site is None:
        return "the solver's candidate race could not be replayed"
    return f"whether `{site.text}` is a barrier is up to the library"


def _doubt(p: Problem, why: str) -> str:
    a, b = p.pair.first.site, p.pair.second.site
    lines = f"line {a.range.start.line}"
    if a.range != b.range:
        lines = f"lines {a.range.start.line} and {b.range.start.line}"
    return f"`{p.pair.first.array.name}` ({lines}): {why}"
