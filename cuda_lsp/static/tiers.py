"""One kernel through both tiers.

First tier (``enumerate_kernel``): concrete executions. With the open scalars unknown, what is found
holds for every argument and, when nothing is left open, the launch is decided. Sampled values then
find what needs a condition. Second tier (``refined``): the solver's answer merged in. It proves what
was open, replaces an example by a readable condition, and drops what it refutes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from attrs import define, evolve, field, frozen

from cuda_lsp.config import Settings
from cuda_lsp.hardware import accepts
from cuda_lsp.ir.program import Kernel, Var
from cuda_lsp.model import (
    RACES,
    Code,
    Dim3,
    Finding,
    KernelReport,
    LaunchConfig,
    LaunchSource,
    RaceKind,
    SourceRange,
    Space,
    Status,
    Verdict,
)
from cuda_lsp.static import budgets
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.deadline import passed
from cuda_lsp.static.diagnostics.banks import bank_findings
from cuda_lsp.static.diagnostics.barriers import barrier_findings
from cuda_lsp.static.diagnostics.bounds import leaves_arrays, misuses_arrays
from cuda_lsp.static.diagnostics.catalogue import MISTAKES, Diagnostic, advice, is_wanted
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.diagnostics.incomplete import incomplete_findings, taken_as_meant
from cuda_lsp.static.diagnostics.incomplete import reasons as incomplete_reasons
from cuda_lsp.static.diagnostics.limits import limit_findings
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Access, Budget, Trace
from cuda_lsp.static.execution.values import Data
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Example, Needs, Open, Setting, Unconfirmed
from cuda_lsp.static.findings.diagnosis import Diagnosis, Key
from cuda_lsp.static.findings.steps import TELL_THE_LAUNCH
from cuda_lsp.static.launches.alike import not_looked_at
from cuda_lsp.static.launches.arguments import free_scalars, sample
from cuda_lsp.static.launches.candidates import launches_of
from cuda_lsp.static.launches.claims import MISUSES, claimed
from cuda_lsp.static.launches.coordinates import meant_for_blocks
from cuda_lsp.static.launches.lane_distances import between_lanes
from cuda_lsp.static.launches.second_opinion import ADVICE, accusations, entitled, fitted, second_opinion
from cuda_lsp.static.launches.unread import unread_blocks
from cuda_lsp.static.launches.unseen import unseen_writes
from cuda_lsp.static.solver.answer import SolverResult

_DECIDING = RACES | {Code.BARRIER_DIVERGENCE}
"""What a verdict hangs on."""
_PERFORMANCE = ADVICE - {Code.REDUNDANT_BARRIER}
_LAUNCH_OPEN = (Open.LAUNCH_UNTOLD, Open.LAUNCH_AND_TEMPLATE)
_UP_TO_SIZES = MISUSES | {Code.MISALIGNED_ACCESS}
"""Arrays are made for the sizes that the host has, pitches of vectors are multiples of them."""


@frozen(eq=False)
class FirstTier:
    """The report to publish, and what the second tier still has to decide.

    ``findings``: all of them, of codes that are switched off too. ``decided``: whether it races.
    ``sampled``: races that were seen under sample arguments only. ``cut``: there was no time for all of it.
    ``unseen``: code that only other blocks than the assumed run. ``alike``: races whose stores are of one
    value wherever they meet.
    """

    report: KernelReport
    findings: tuple[Diagnosis, ...]
    decided: bool
    open_reasons: tuple[str, ...] = ()
    sampled: frozenset[Key] = frozenset()
    cut: bool = False
    unseen: tuple[str, ...] = ()
    alike: frozenset[Key] = frozenset()


def enumerate_kernel(kernel: Kernel, settings: Settings, *, until: float = math.inf) -> FirstTier:
    """The first tier: no solver, no I/O, bounded by ``settings.enumeration_budget``.

    ``until`` (of ``time.thread_time``, which other processes do not use up): somebody who types waits. What
    is known by then is returned, as ``cut`` when that is not all; the rest is asked for without this limit.
    """
    runs = _Executions(kernel, settings, until)
    chosen = launches_of(kernel, settings)
    launches, looks = _looks(runs, chosen)
    fitting = [look for look in looks if not look.misuses and not look.excluded]
    if all(look.misuses for look in looks):
        # sizes that make such blocks are no sizes of this program: nothing is known
        launches, looks = _looks(runs, launches_of(evolve(kernel, launches=()), settings))
    elif 0 < len(fitting) < len(looks) == len(launches):
        looks, launches = fitting, tuple(look.launch for look in fitting)
    findings: dict[Key, Diagnosis] = {}
    for look in looks:
        _collect(findings, look.findings)
    accepted: list[LaunchConfig] = []
    for launch in kernel.launches:
        if accepts(settings.gpu, launch):
            accepted.append(launch)
        else:  # told, never executed
            _collect(findings, limit_findings(kernel, launch, settings.gpu))
    if not kernel.errors:
        _collect(findings, incomplete_findings(kernel, launches[0]))
    unseen = (*looks[-1].unseen, *_unread(runs, launches[0]), *not_looked_at(accepted, chosen))
    reasons = (*(reason for look in looks for reason in look.reasons), *unseen)
    late = runs.late
    if late:
        reasons = (words.doubt(Open.BROKEN if kernel.errors else Open.BACKGROUND),)
    reasons = tuple(dict.fromkeys(reasons))
    divergence = _divergence(findings.values())
    incomplete = (*incomplete_reasons(kernel), *divergence)
    decided = not reasons and not divergence
    verdict = verdict_of(findings.values(), race_free=decided and not incomplete)
    report = KernelReport(
        name=kernel.name,
        range=kernel.range,
        verdict=verdict,
        reasons=(*incomplete, *reasons) if verdict is Verdict.UNDECIDED else incomplete,
        launches=launches,
        findings=shown(findings.values(), kernel, launches, settings),
        refined=decided and not any(look.by_example for look in looks),
        key=kernel.digest,
        guessed=kernel.guessed,
        assumptions=taken_as_meant(kernel) if verdict is Verdict.RACE_FREE else (),
    )
    sampled = frozenset[Key]().union(*(look.sampled for look in looks))
    told, cut = tuple(findings.values()), late and not kernel.errors
    return FirstTier(report, told, decided, reasons, sampled, cut, unseen)


def _looks(
    runs: _Executions, launches: tuple[LaunchConfig, ...]
) -> tuple[tuple[LaunchConfig, ...], list[_Look]]:
    """What the launches show, as far as there is time, and the launches, the first as it was looked at."""
    looks: list[_Look] = []
    for launch in launches:
        if not looks or not runs.late:
            looks.append(_look(runs, launch))
    return (looks[0].launch, *launches[1:]), looks


@frozen(eq=False)
class _Look:
    """What executions of one launch show, or of a smaller one in its stead.

    ``reasons``: what they leave open. ``sampled``: races among the findings under sample arguments;
    ``by_example``: there are indices out of bounds among those. ``unseen`` as in ``FirstTier``.
    ``misuses``: sizes make the block, and its threads surely misuse shared arrays, or vectors where none is.
    ``excluded``: the kernel's assertions end this launch: nothing is found in it.
    """

    launch: LaunchConfig
    findings: tuple[Diagnosis, ...]
    reasons: tuple[str, ...]
    sampled: frozenset[Key]
    by_example: bool
    unseen: tuple[str, ...]
    misuses: bool
    excluded: bool = False


def _look(runs: _Executions, told: LaunchConfig) -> _Look:
    kernel = runs.kernel
    launch = fitted(kernel, told, lambda of: leaves_arrays(runs.of(of)) or (of is not told and runs.late))
    trace = runs.of(launch)
    if trace.excluded:
        told_limits = tuple(limit_findings(kernel, launch, runs.settings.gpu))
        why = f"the kernel's assertions end this launch: {trace.excluded}; {TELL_THE_LAUNCH}"
        return _Look(launch, told_limits, (why,), frozenset(), False, (), False, excluded=True)
    found = runs.findings(trace)
    misuses = launch.source is LaunchSource.SIZES and (misuses_arrays(trace) or any(map(_misaligns, found)))
    if launch.grid is None:
        found = tuple(_between_unknown_blocks(kernel, finding, launch) for finding in found)
    unseen: tuple[str, ...] = ()
    if launch.assumed:
        others = entitled(kernel, launch, lambda of: _implausible(runs.of(of)))
        found = second_opinion(kernel, launch, found, others, runs.accusations)
        unseen = _unseen(runs, launch)
    found = claimed(kernel, launch, runs.settings.gpu, found)
    doubts = [f for f in found if f.status is Status.POSSIBLE]
    open_reasons = [
        f.open_reason or words.reason(Open.ENUMERATION)
        for f in doubts
        if f.code in RACES or f.code is Code.BARRIER_DIVERGENCE
    ]
    examples: list[Diagnosis] = []
    if kernel.errors:
        doubts = []  # what broken code leaves open is noise while it is being typed
    elif free_scalars(kernel, launch):
        doubts = [f for f in doubts if f.code in _PERFORMANCE and f.doubt in _LAUNCH_OPEN]
        settled = {f.key for f in doubts}
        found = found if runs.late else _with_deciding_values(runs, launch, found)
        by_sample = [] if runs.late else _sampled(runs, launch)
        examples = [f for f in by_sample if f.key not in settled]
    return _Look(
        launch=launch,
        findings=(
            *(f for f in found if f.status is not Status.POSSIBLE),
            *doubts,
            *examples,
            *limit_findings(kernel, launch, runs.settings.gpu),
        ),
        reasons=(
            *trace.undecided,
            *(() if trace.whole else (words.reason(Open.OTHER_BLOCKS),)),
            *open_reasons,
        ),
        sampled=frozenset(f.key for f in examples if f.code in RACES),
        by_example=any(f.code is Code.SHARED_OUT_OF_BOUNDS for f in examples),
        unseen=unseen,
        misuses=misuses,
    )


def _implausible(trace: Trace) -> bool:
    """Whether it misuses its arrays, or the kernel's own assertions end it."""
    return bool(trace.excluded) or misuses_arrays(trace)


def _misaligns(finding: Diagnosis) -> bool:
    return finding.code is Code.MISALIGNED_ACCESS and finding.status is Status.PROVED


@define
class _Executions:
    """A kernel's executions, and their findings, while there is time.

    ``until`` as in ``enumerate_kernel``; ``missed``: it came before all was done.
    """

    kernel: Kernel
    settings: Settings
    until: float
    missed: bool = False
    _comparing: float = budgets.COMPARING_S
    _known: dict[Dim3, Trace] = field(factory=dict[Dim3, Trace])

    @property
    def late(self) -> bool:
        self.missed = self.missed or passed(self.until)
        return self.missed

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.thread_time()

    def of(self, launch: LaunchConfig) -> Trace:
        """With the open scalars unknown. Assumed launches (they differ in their blocks) are executed once."""
        if not launch.assumed:
            return self.under(launch, launch.arguments)
        if launch.block not in self._known:
            self._known[launch.block] = self.under(launch, launch.arguments)
        return self._known[launch.block]

    def under(self, launch: LaunchConfig, arguments: Mapping[str, int]) -> Trace:
        """With these arguments."""
        share = self.until - (1 - budgets.EXECUTION_SHARE) * self.left if self.until < math.inf else math.inf
        budget = Budget(milliseconds=self.settings.enumeration_budget, until=share)
        trace = execute(self.kernel, launch, arguments, self.settings.gpu, budget)
        self.missed = self.missed or trace.late
        trace.until = self.until
        if self.kernel.errors:
            # What broken text leaves unknown is noise while it is being typed, and dear to compare.
            for path in trace.paths:
                path.accesses = [a for a in path.accesses if not isinstance(a.offset, Data)]
        return trace

    def findings(self, trace: Trace, among: Callable[[Access], bool] | None = None) -> tuple[Diagnosis, ...]:
        """All that an execution tells; of races, those between accesses that matter (``among``)."""
        accusing = self._accusing(trace, among)
        return (*accusing, *self.costs(trace))

    def costs(self, trace: Trace) -> list[Diagnosis]:
        """What an execution tells of the launch, accusing nobody."""
        return self._told(trace, advice(self.settings))

    def accusations(self, launch: LaunchConfig, wanted: Set[Key]) -> Set[Key]:
        """What a launch shows to be wrong for every argument, ``wanted`` or not; conflicts if some are."""
        trace = self.of(launch)
        conflicts = bank_findings(trace) if any(key[0] is Code.BANK_CONFLICT for key in wanted) else ()
        return accusations((*self._accusing(trace), *conflicts))

    def _accusing(self, trace: Trace, among: Callable[[Access], bool] | None = None) -> tuple[Diagnosis, ...]:
        glance = bool(self.kernel.errors) and self.until < math.inf
        share = max(self._comparing, budgets.COMPARING_AGAIN_S)
        comparing = Comparing(budgets.BROKEN_TEXT_S if glance else share, self.until)
        begun = comparing.seconds
        order = (*race_findings(trace, comparing, among), *barrier_findings(trace))
        self._comparing -= begun - comparing.seconds
        return (*order, *self._told(trace, MISTAKES))

    def _told(self, trace: Trace, diagnostics: Sequence[Diagnostic]) -> list[Diagnosis]:
        """What they say, one after the other while there is time."""
        found: list[Diagnosis] = []
        for diagnostic in diagnostics:
            # What broken text does to addresses is no news to its author.
            if not self.kernel.errors and not self.late:
                found += diagnostic(trace)
                self.missed = self.missed or trace.late
        return found


def _unseen(runs: _Executions, launch: LaunchConfig) -> tuple[str, ...]:
    """Writes that only other blocks than the assumed run, where those are not known to be free of races."""

    def ordered(other: LaunchConfig) -> Set[SourceRange]:
        trace = None if runs.late else runs.of(other)
        if trace is None or trace.undecided or not trace.whole:
            return frozenset()
        if race_findings(trace, Comparing(budgets.COMPARING_S)):
            return frozenset()
        return trace.written

    if runs.kernel.errors or runs.late:
        return ()
    return unseen_writes(runs.kernel, launch, runs.of(launch).written, ordered)


def _unread(runs: _Executions, launch: LaunchConfig) -> tuple[str, ...]:
    """Launches whose blocks nobody reads, where those that are known are not all there is."""

    def races(other: LaunchConfig) -> bool:
        trace = None if runs.late else runs.under(other, other.arguments)
        if trace is None or _implausible(trace):
            return False
        return not all(f.same_value for f in race_findings(trace, Comparing(budgets.COMPARING_S)))

    return () if runs.kernel.errors else unread_blocks(runs.kernel, launch, races)


def _between_unknown_blocks(kernel: Kernel, finding: Diagnosis, launch: LaunchConfig) -> Diagnosis:
    """A race between blocks needs a second block, which a grid of unknown size may not have."""
    if finding.status is not Status.PROVED or not finding.witness or finding.witness.blocks is None:
        return finding
    if finding.code is Code.SHARED_RACE:
        return finding  # of blocks of one cluster, which is whole in any grid
    if launch.assumed:
        return finding.doubted(Open.LAUNCH_UNTOLD)
    meant = meant_for_blocks(kernel, launch)
    return finding.needing(Needs.BLOCKS) if meant else finding.doubted(Open.BLOCKS_UNKNOWN)


def _sampled(runs: _Executions, launch: LaunchConfig) -> list[Diagnosis]:
    """Findings that need the open scalars to have certain values, the example as condition."""
    arguments = sample(runs.kernel, launch)
    trace = runs.under(launch, arguments) if arguments is not None else None
    if arguments is None or trace is None or trace.excluded:
        return []
    if launch.assumed:
        # Neither launch nor arguments are known: too little to accuse anybody. The solver's too.
        found = [f for f in runs.costs(trace) if f.code in _PERFORMANCE]
    else:
        # Global addresses hang on pitches that fit together, which sampled ones need not: the solver's word.
        found = list(runs.findings(trace, lambda access: access.array.space is not Space.GLOBAL))
    example = Example(tuple((n, arguments[n]) for n in free_scalars(runs.kernel, launch)), sampled=True)
    return [_under(finding, example, runs.kernel) for finding in found]


def _with_deciding_values(
    runs: _Executions, launch: LaunchConfig, found: tuple[Diagnosis, ...]
) -> tuple[Diagnosis, ...]:
    """The findings; stores that are of one value under some arguments need others: ``out[0] = in[i / n]``."""
    free = free_scalars(runs.kernel, launch)
    asked = {
        f.key for f in found if f.kind is RaceKind.WAW and f.status is Status.PROVED and not f.same_value
    }
    if not asked:
        return found
    alike: set[Key] = set()
    differing: dict[Key, Example] = {}
    ordinary = sample(runs.kernel, launch) or {}
    for values in (ordinary, *({**dict.fromkeys(free, n), **launch.arguments} for n in (1, 0))):
        trace = runs.under(launch, values)
        races = (
            () if trace.excluded or runs.late else race_findings(trace, Comparing(budgets.COMPARING_AGAIN_S))
        )
        for race in races:
            if race.key not in asked or race.status is not Status.PROVED:
                continue
            if race.same_value:
                alike.add(race.key)
            else:
                differing.setdefault(race.key, Example(tuple((name, values[name]) for name in free)))
    return tuple(f.needing(differing[f.key]) if f.key in alike & differing.keys() else f for f in found)


def _under(finding: Diagnosis, example: Example, kernel: Kernel) -> Diagnosis:
    if finding.code in _PERFORMANCE and finding.status is Status.PROVED:
        named, divisors = between_lanes(kernel, finding.site, finding.launch and finding.launch.block)
        values = tuple((name, value) for name, value in example.values if name in named)
        if any(value == finding.apart for _, value in values):
            values = tuple(each for each in values if each[1] == finding.apart or each[0] in divisors)
        values = tuple(
            sorted(values, key=lambda each: each[0] not in divisors)
        )  # told if there is room for one
        return finding.needing(Example(values, sampled=True)) if values else finding
    example = _deciding(example, finding, kernel)
    if finding.code in _UP_TO_SIZES:
        return evolve(finding.doubted(Open.ARGUMENTS), conditions=(example,))
    return finding.needing(example) if finding.status is Status.PROVED else finding


def _deciding(example: Example, finding: Diagnosis, kernel: Kernel) -> Example:
    """The example without the arguments that nothing at the finding's places comes from."""
    flow = data_flow(kernel)
    sites = (finding.site, *(related.site for related in finding.related))
    accesses = [access for site in sites for access in flow.at(site.range)]
    sources = flow.through_memory(frozenset(x for a in accesses for x in (*a.address, *a.guard)))
    names = {x.name for x in sources if isinstance(x, Var)}
    values = tuple(each for each in example.values if each[0] in names)
    return evolve(example, values=values) if values else example


def _collect(findings: dict[Key, Diagnosis], more: Iterable[Diagnosis]) -> None:
    """The surest finding of each place stays."""
    for finding in more:
        key = finding.key
        known = findings.get(key)
        if known is None or finding.effective_severity < known.effective_severity:
            findings[key] = finding


def verdict_of(findings: Iterable[Diagnosis], *, race_free: bool) -> Verdict:
    """What findings make of a kernel of which all else is known to be ``race_free``, or not."""
    doubtful = [f for f in findings if f.code in _DECIDING]
    if any(f.certain and f.code in RACES for f in doubtful):
        return Verdict.RACY
    # What follows a barrier that threads miss has no defined order.
    return Verdict.RACE_FREE if race_free and not doubtful else Verdict.UNDECIDED


def _divergence(findings: Iterable[Diagnosis]) -> tuple[str, ...]:
    diverges = any(f.code is Code.BARRIER_DIVERGENCE for f in findings)
    return ("not all threads reach a barrier",) if diverges else ()


def refined(first: FirstTier, kernel: Kernel, answer: SolverResult, settings: Settings) -> KernelReport:
    """The report with the solver's answer merged in."""
    report = first.report
    proved_free = answer.verdict is Verdict.RACE_FREE or first.decided
    findings: dict[Key, Diagnosis] = {}
    by_solver = {f.key: of_one_value(f, first.alike) for f in answer.findings}
    for finding in first.findings:
        key = finding.key
        better = by_solver.pop(key, None)
        conditional = finding.status is Status.CONDITIONAL and not finding.for_every_argument
        sampled = key in first.sampled and conditional
        doubtful = finding.code in RACES and finding.status is Status.POSSIBLE
        readable = finding.status is Status.POSSIBLE and finding.code in MISUSES
        if better and not finding.for_every_argument and (better.certain or readable):
            findings[key] = better
        elif sampled and not proved_free:
            findings[key] = _unconfirmed(finding)
        elif not (proved_free and (sampled or doubtful)) and not _reached(finding, answer, kernel):
            findings[key] = finding
    if not first.decided:
        _collect(findings, by_solver.values())
    divergence = _divergence(findings.values()) if answer.mixed else ()
    unseen = () if answer.every_launch else first.unseen
    incomplete = (*incomplete_reasons(kernel), *divergence, *unseen)
    judged = [f for f in findings.values() if answer.mixed or f.code is not Code.BARRIER_DIVERGENCE]
    verdict = verdict_of(judged, race_free=proved_free and not incomplete)
    left = () if verdict is Verdict.RACY else first.open_reasons  # what the solver has looked at
    open_reasons = () if proved_free else answer.reasons or left
    return evolve(
        report,
        verdict=verdict,
        reasons=tuple(dict.fromkeys((*incomplete, *open_reasons)))
        if verdict is not Verdict.RACE_FREE
        else (),
        findings=shown(findings.values(), kernel, report.launches, settings),
        refined=True,
        assumptions=(*taken_as_meant(kernel), *(() if first.decided else answer.assumptions))
        if verdict is Verdict.RACE_FREE
        else (),
    )


def _reached(finding: Diagnosis, answer: SolverResult, kernel: Kernel) -> bool:
    """The solver proved that all threads reach a barrier of which the first tier was not sure."""
    doubtful = finding.code is Code.BARRIER_DIVERGENCE and finding.status is Status.POSSIBLE
    looked_at = answer.verdict is Verdict.RACE_FREE or (answer.barriers and not incomplete_reasons(kernel))
    return doubtful and looked_at and finding.site.range not in answer.not_settled


def _unconfirmed(finding: Diagnosis) -> Diagnosis:
    """A race under sampled arguments that the solver, with all arguments open, could not confirm.

    Pitches and extents that fit together are the rule; sampled ones need not.
    """
    return evolve(finding.doubted(Unconfirmed(finding.conditions)), conditions=())


def of_one_value(finding: Diagnosis, alike: Set[Key]) -> Diagnosis:
    """The finding; one of ``alike`` is of stores of one value."""
    if finding.kind is not RaceKind.WAW or finding.same_value or finding.key not in alike:
        return finding
    return evolve(finding, same_value=True)


def _hangs_on_guess(found: Diagnosis) -> bool:
    """What a type is may matter: to costs, and where the condition is that it is the one."""
    return found.code in ADVICE or Needs.TEMPLATE in found.conditions


def shown(
    diagnoses: Iterable[Diagnosis], kernel: Kernel, launches: Sequence[LaunchConfig], settings: Settings
) -> tuple[Finding, ...]:
    """Those whose code is switched on in words, with the configured severity, in order of the text."""
    arguments = kernel.name.partition("<")[2].rpartition(">")[0]
    guessed = arguments if kernel.guessed or kernel.guessed_numbers else ""
    numbers = any(part.strip().isdigit() for part in guessed.split(","))
    several = len({launch.block for launch in launches}) > 1
    wanted = (
        evolve(d, under=Setting(several=several, guessed=guessed if numbers or _hangs_on_guess(d) else ""))
        for d in diagnoses
        if is_wanted(d.code, settings)
    )
    found = [d.finding(settings.severity.get(d.code)) for d in wanted]
    return tuple(sorted(found, key=lambda f: (f.site.range, f.code.value)))
