"""The second tier: proves a kernel race-free for all arguments (and launches), or finds a witness.

One kernel, one launch after another: summarise symbolically, list the pairs that no barrier orders and that
arithmetic does not refute (``problems``), and try one tactic after another on each (``tactics``), most
suspicious first, within a budget. Between them the kernel is run on real schedules. What stays unanswered is
a reason, never silence. Runs in the calling process; ``workers`` runs it where it can be killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from attrs import evolve, field, frozen

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.model import Code, LaunchConfig, Status
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.divergence import divergences_by_running
from cuda_lsp.static.exact.report import races_by_running
from cuda_lsp.static.execution.representatives import NOT_IN_CLUSTERS, in_clusters
from cuda_lsp.static.findings.conditions import Conditions, Example, Open
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.steps import TELL_THE_LAUNCH
from cuda_lsp.static.findings.words import reason
from cuda_lsp.static.launches.alike import left_out
from cuda_lsp.static.solver import parted
from cuda_lsp.static.solver import report as solve_report
from cuda_lsp.static.solver.answer import Budget, SolverResult, Stats
from cuda_lsp.static.solver.attempt import Attempt
from cuda_lsp.static.solver.below_zero import needs_sizes_below_zero
from cuda_lsp.static.solver.bounds import out_of_bounds
from cuda_lsp.static.solver.condition import worded
from cuda_lsp.static.solver.copies import endless_copies, own_copies
from cuda_lsp.static.solver.exits import missed_by_leavers_only, passed_barriers
from cuda_lsp.static.solver.heap import keep_memory
from cuda_lsp.static.solver.owned_rows import within_their_rows
from cuda_lsp.static.solver.plainer import plainer
from cuda_lsp.static.solver.problems import Candidate, problems, ticketed
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.tactics import FIRST_PROOFS, FOR_EVERY_LAUNCH, ROUNDS
from cuda_lsp.static.solver.tactics.common import put_into_groups
from cuda_lsp.static.solver.tactics.pair import (
    Answer,
    GaveUp,
    OpenPair,
    Proved,
    Tactic,
    first_answer,
)
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Summary
from cuda_lsp.static.symbolic.intervals import Sites, TooManyPairs, unfinished_copies
from cuda_lsp.static.symbolic.launch import Setting, setting
from cuda_lsp.static.symbolic.scene import TooLarge
from cuda_lsp.static.symbolic.summarise import summarise
from cuda_lsp.static.symbolic.terms import Op
from cuda_lsp.static.symbolic.values import forget

_NESTED = "the kernel's expressions nest too deeply for the solver"


def _too_much(why: str) -> str:
    """A reason of a verdict: what the solver cannot take, a run can."""
    return f"{why}; {ir.NextStep.RUN.value}"


_lock = Lock()  # Z3's global context and the term table are not thread-safe


def refine_kernel(
    kernel: ir.Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget | None = None
) -> SolverResult:
    """Decides the kernel for the given launches (best first) with every argument they leave open."""
    with _lock:
        keep_memory()
        t.begin_afresh()
        forget()
        limits = budget or Budget()
        return _Refinement(kernel, gpu, limits, work.begin(limits.kernel)).of(launches)


_Ways = dict[Sites, dict[Tactic, None]]
"""What proved pairs at their places, at one launch: at the next the same is tried first."""


@frozen(eq=False)
class _Refinement:
    """One kernel within one budget, which is over at ``deadline`` (of ``work.now``)."""

    kernel: ir.Kernel
    gpu: GpuModel
    budget: Budget
    deadline: float
    stats: Stats = field(factory=Stats)
    ways: _Ways = field(factory=dict[Sites, dict[Tactic, None]])

    def of(self, launches: Sequence[LaunchConfig]) -> SolverResult:
        merged, until = Attempt(barriers=True), self.deadline
        wanted = launches[: self.budget.launches] or [LaunchConfig((256, 1, 1))]
        for number, launch in enumerate(wanted):
            if number and merged.decided:
                until = self._extended(until)
            elif work.now() > until:
                if not (merged.open or merged.reasons):  # which say more than that
                    merged.reasons[reason(Open.TIME)] = None
                merged.barriers = False
                break  # nothing more to prove
            merged.absorb(evolve(self, kernel=under(self.kernel, launch), deadline=until)._settled(launch))
        every = False
        if merged.decided and (not launches or launches[0].assumed):
            every = self._holds_for_every_launch()
        elif merged.decided:
            others, by_sizes = left_out(self.kernel.launches, wanted), self.kernel.by_sizes
            every = bool(others or by_sizes) and self._holds_at(others, merged)
            every = every and self._holds_at(by_sizes, Attempt(barriers=True))
        self.stats.seconds = self.budget.kernel - (self.deadline - work.now())
        verdict, reasons = merged.verdict()
        findings = (*merged.findings.values(), *merged.others)
        return SolverResult(
            verdict,
            reasons,
            findings,
            self.stats,
            every,
            tuple(merged.assumptions),
            frozenset(merged.not_settled),
            merged.mixed,
            merged.barriers,
        )

    @property
    def _for_a_launch(self) -> float:
        return budgets.LAUNCH_SHARE * self.budget.kernel

    def _extended(self, until: float) -> float:
        """A deadline that leaves a launch its share, which those before it, that are decided, did not."""
        now = work.now()
        return until if until - now >= self._for_a_launch else work.begin(self._for_a_launch)

    # -- one launch

    def _settled(self, launch: LaunchConfig) -> Attempt:
        """Loops in closed form; what that leaves open is executed; then loops of barriers round by round."""
        where = setting(self.kernel, launch, self.gpu)
        attempt = self._attempt(launch, where, self._summary(where, 0), glance=True)
        self._run_what_is_open(launch, attempt)
        self._run_to_barriers(launch, attempt)
        if attempt.open:
            by_rounds = self._summary(where, budgets.UNROLLED_ROUNDS)
            if isinstance(by_rounds, Summary) and by_rounds.unrolled:  # else it says nothing new
                attempt = attempt.better_of(self._attempt(launch, where, by_rounds, glance=False))
        attempt.findings = {
            sites: within_their_rows(self.kernel, launch, found) for sites, found in attempt.findings.items()
        }
        return attempt

    def _run_what_is_open(self, launch: LaunchConfig, attempt: Attempt) -> None:
        """Pairs that a real schedule shows to race, of those that are not decided, become certain."""
        share = budgets.RUNNING_SHARE * self.budget.kernel
        until = max(self.deadline, min(work.now() + share, self.deadline + share))
        for sites, finding in self._races_by_running(launch, attempt.open, until).items():
            attempt.doubts.pop(sites, None)
            attempt.findings[sites] = finding

    def _run_to_barriers(self, launch: LaunchConfig, attempt: Attempt) -> None:
        """Barriers that threads may miss become certain where a real schedule shows it."""
        missed = [f for f in attempt.others if f.code is Code.BARRIER_DIVERGENCE]
        certain = {f.site.range for f in missed if f.status is not Status.POSSIBLE}
        told = {f.site.range for f in missed}
        until = max(self.deadline, work.now() + budgets.RUNNING_SHARE * self.budget.kernel)
        doubtful = (attempt.not_settled | told) - certain
        shown = divergences_by_running(self.kernel, launch, self.gpu, doubtful, until)
        attempt.others = [shown.get(f.site.range, f) for f in attempt.others]
        attempt.others += [found for place, found in shown.items() if place not in told]

    def _glance(
        self, launch: LaunchConfig, candidates: Sequence[Candidate], query: Query
    ) -> dict[Sites, Diagnosis]:
        """Races that hang on data, if a few executions show them: the solver need not look for these."""
        until = min(self.deadline, work.now() + budgets.GLANCE_SHARE * self.budget.kernel)
        wanted = [p.pair.sites for p, _ in candidates if solve_report.data_dependence(p, query)]
        return self._races_by_running(launch, list(dict.fromkeys(wanted)), until, glance=True)

    def _races_by_running(
        self, launch: LaunchConfig, wanted: list[Sites], until: float, glance: bool = False
    ) -> dict[Sites, Diagnosis]:
        return races_by_running(self.kernel, launch, self.gpu, wanted, until, glance=glance)

    def _summary(self, where: Setting, unroll: int) -> Summary | str:
        """The kernel in this setting, or why there is no summary of it. ``unroll`` as in ``summarise``."""
        try:
            return summarise(self.kernel, where.axes, where.arguments, unroll, self.deadline)
        except TooLarge as error:
            return str(error)
        except RecursionError:
            return _NESTED

    def _attempt(
        self, launch: LaunchConfig, where: Setting, summary: Summary | str, *, glance: bool
    ) -> Attempt:
        attempt = Attempt()
        if not in_clusters(launch, self.kernel.cluster):
            attempt.reasons[NOT_IN_CLUSTERS] = None
            return attempt
        if isinstance(summary, str):
            attempt.reasons[_too_much(summary)] = None
            return attempt
        attempt.reasons.update(dict.fromkeys(summary.reasons))
        try:
            summary = _with_sizes(summary, where)
            own = unfinished_copies(summary, self.gpu.warp_size)
            apart = ticketed(self.kernel, launch, self.gpu)
            candidates = problems(self.kernel, summary, where, self.gpu, self.stats, self.deadline, apart)
        except TooManyPairs as error:
            attempt.reasons[_too_much(str(error))] = None
            return attempt
        except RecursionError:
            attempt.reasons[_too_much(_NESTED)] = None
            return attempt
        query = Query(self.kernel, where, summary, self.budget.query, self.deadline, self.stats)
        attempt.reasons.update(dict.fromkeys(own_copies(own, query)))
        endless, natural = endless_copies(query)
        attempt.reasons.update(dict.fromkeys(endless))
        attempt.assumptions.update(dict.fromkeys(natural))
        if _contradicted(query):
            text = f"its assertions do not hold when the block is {launch.block}: no thread runs;"
            text += f" {TELL_THE_LAUNCH}"
            attempt.reasons[text] = None
            return attempt
        if glance:
            attempt.findings.update(self._glance(launch, candidates, query))
        sizes = not_negative(_sizes_that_matter(candidates, summary, self.stats.mentioned))
        attempt.assumptions.update(dict.fromkeys(sizes))
        _decide([OpenPair(p, facts, query, launch) for p, facts in candidates], attempt, self.ways)
        _word_conditions(attempt, query)
        attempt.others += parted.divergences(query, passed_barriers(summary.events), attempt.not_settled)
        attempt.barriers = True
        if any(f.code is Code.BARRIER_DIVERGENCE for f in attempt.others):
            attempt.mixed = not missed_by_leavers_only(query, summary.events, attempt.not_settled)
        if not launch.assumed:
            attempt.others += out_of_bounds(query, summary.events, launch)
        return attempt

    # -- every launch

    def _holds_at(self, launches: Iterable[LaunchConfig], merged: Attempt) -> bool:
        """Race-free at these launches, too, as far as one more share of the time reaches."""
        until = self._extended(self.deadline)
        for launch in launches:
            if work.now() > until:
                return False
            found = evolve(self, kernel=under(self.kernel, launch), deadline=until)._settled(launch)
            merged.absorb(found)
            if not found.decided:
                return False
        return True

    def _holds_for_every_launch(self) -> bool:
        """Race-free for every block and grid of the target (along the axes that the kernel mentions)."""
        where = setting(self.kernel, None, self.gpu)
        try:
            summary = summarise(self.kernel, where.axes, where.arguments, deadline=self.deadline)
            candidates = problems(self.kernel, summary, where, self.gpu, self.stats, self.deadline)
        except (TooLarge, TooManyPairs, RecursionError):
            return False
        query = Query(self.kernel, where, summary, self.budget.query, self.deadline, self.stats)
        if summary.reasons or unfinished_copies(summary, self.gpu.warp_size):
            return False
        if any(endless_copies(query)):
            return False
        pairs = (OpenPair(p, facts, query, None) for p, facts in candidates)
        return all(isinstance(first_answer(FOR_EVERY_LAUNCH, pair), Proved) for pair in pairs)


def under(kernel: ir.Kernel, launch: LaunchConfig) -> ir.Kernel:
    """The kernel as this launch runs it; what holds at one only, where each of them is looked at."""
    if kernel.computed is not None:
        kernel = evolve(kernel, computed=under(kernel.computed, launch))
    said = kernel.said_of(launch) if len(kernel.launches) <= budgets.MOST_LAUNCHES else ()
    if not said:
        return kernel
    directives = kernel.directives
    return evolve(kernel, directives=evolve(directives, assumptions=(*directives.assumptions, *said)))


def _decide(pairs: list[OpenPair], attempt: Attempt, ways: _Ways) -> None:
    """What proved their like at another launch, then each round of tactics on all that are still open."""
    put_into_groups(pairs)
    pairs = [pair for pair in pairs if not _proved_as_before(pair, attempt, ways)]
    for number, tactics in enumerate(ROUNDS):
        still_open: list[OpenPair] = []
        for i, pair in enumerate(pairs):
            pair.among, pair.known = len(pairs), attempt.findings.get(pair.sites)
            pair.waiting = len(pairs) - i
            late = work.now() > pair.query.deadline
            answer = _out_of_time(pair, number) if late else _answer(pair, tactics, ways)
            if answer is None:
                still_open.append(pair)
            else:
                attempt.take(pair, answer)
        pairs = still_open


def _answer(pair: OpenPair, tactics: tuple[Tactic, ...], ways: _Ways) -> Answer | None:
    """As ``first_answer``; what proves the pair is noted."""
    for tactic in tactics:
        answer = tactic(pair)
        if isinstance(answer, Proved):
            ways.setdefault(pair.sites, {})[tactic] = None
        if answer is not None:
            return answer
    return None


def _proved_as_before(pair: OpenPair, attempt: Attempt, ways: _Ways) -> bool:
    for tactic in tuple(ways.get(pair.sites, ())):
        if work.now() > pair.query.deadline:
            return False
        if isinstance(answer := tactic(pair), Proved):
            attempt.take(pair, answer)
            return True
    return False


def _out_of_time(pair: OpenPair, number: int) -> GaveUp:
    """Why the pair is open: of places that data say, where the proofs were tried that need none, the data."""
    data = solve_report.data_in_addresses(pair.p, pair.query) if number > FIRST_PROOFS else None
    return GaveUp(data or Open.TIME)


def _word_conditions(attempt: Attempt, query: Query) -> None:
    """What races need is told as a condition where that is enough, else by example."""
    for sites, finding in attempt.findings.items():
        if finding.certain and finding.conditions and sites in query.shown:
            p, facts, arguments = query.shown[sites]
            finding = plainer(finding, p, facts, query)
            arguments = finding.witness.arguments if finding.witness is not None else arguments
            conditions = worded(finding.conditions, p, facts, arguments, query)
            told = evolve(finding, conditions=conditions)
            if _is_made_up(conditions) or needs_sizes_below_zero(conditions, arguments, p, facts, query):
                told = told.doubted(Open.ARGUMENTS)
            attempt.findings[sites] = told


def _is_made_up(conditions: Conditions) -> bool:
    """So many arguments have to be just what they are that the host, which knows how they belong together,
    hardly passes the like."""
    return any(isinstance(c, Example) and len(c.values) > budgets.MOST_ARGUMENTS for c in conditions)


def _with_sizes(summary: Summary, where: Setting) -> Summary:
    """What is taken for a size anywhere is one everywhere, also where nothing compares it."""
    taken = frozenset[str]().union(*(names for names in summary.sizes.values() if len(names) == 1))
    sizes = [where.arguments[where.free[name]] for name in sorted(taken & where.free.keys())]
    natural = [t.le(t.ZERO, x) for x in sizes if isinstance(x, t.Term)]
    return (
        evolve(summary, assumptions=t.and_(summary.assumptions or t.TRUE, *natural)) if natural else summary
    )


def _sizes_that_matter(candidates: Sequence[Candidate], summary: Summary, known: set[str]) -> list[str]:
    """Parameters taken for sizes that have a part in what arithmetic alone leaves open; ``known`` of some."""
    mentioned = known | {x.args[0] for p, _ in candidates for x in t.subterms(p.formula) if x.op is Op.SYMBOL}
    return sorted(text for text, names in summary.sizes.items() if names <= mentioned)


def _contradicted(query: Query) -> bool:
    """The launch violates what the kernel asserts: whatever is proved of its threads is proved of none."""
    demanded = t.and_(query.summary.asserted or t.TRUE, query.summary.assumptions or t.TRUE)
    if demanded is t.TRUE:
        return False
    return query.refutes(t.and_(query.where.bounds, demanded))
