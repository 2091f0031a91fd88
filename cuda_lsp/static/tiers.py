"""One kernel through both tiers.

First tier (``enumerate_kernel``): concrete executions. With the open scalars unknown, what is found
holds for every argument and, when nothing is left open, the launch is decided. Sampled values then
find what needs a condition. Second tier (``refined``): the solver's answer merged in. It proves what
was open, replaces an example by a readable condition, and drops what it refutes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from functools import partial

from attrs import define, evolve, frozen

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import CODES, Code, Finding, KernelReport, LaunchConfig, Status, Verdict
from cuda_lsp.static.assumed import alternatives, free_scalars, launches_of, sample, unlike
from cuda_lsp.static.diagnostics.banks import bank_findings
from cuda_lsp.static.diagnostics.barriers import barrier_findings, redundant_barriers
from cuda_lsp.static.diagnostics.bounds import bounds_findings, uninitialised_findings
from cuda_lsp.static.diagnostics.coalescing import coalescing_findings
from cuda_lsp.static.diagnostics.incomplete import incomplete_findings
from cuda_lsp.static.diagnostics.incomplete import reasons as incomplete_reasons
from cuda_lsp.static.diagnostics.limits import limit_findings
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Budget, Trace
from cuda_lsp.static.execution.values import Data
from cuda_lsp.static.findings.conditions import Example, Needs, Open, Unconfirmed
from cuda_lsp.static.findings.diagnosis import RACES, Diagnosis, Key
from cuda_lsp.static.findings.words import doubt
from cuda_lsp.static.fitting import fitted, misuses_arrays
from cuda_lsp.static.solver.solve import SolverResult
from cuda_lsp.static.unseen import still_unseen, unseen_writes

_PERFORMANCE = frozenset({Code.BANK_CONFLICT, Code.UNCOALESCED_ACCESS})
_MISUSE = frozenset({Code.SHARED_OUT_OF_BOUNDS, Code.SHARED_UNINITIALISED})
_EXECUTION = 0.7  # of the time until somebody waits; the rest is for comparing accesses
_GLANCE = 8.0  # milliseconds that comparing accesses of text that does not compile is worth to who types it
_COMPARING = 2000.0  # milliseconds for comparing the accesses of one execution


@frozen(eq=False)
class FirstTier:
    """The report to publish, and what the second tier still has to decide.

    ``findings``: all of them, of codes that are switched off too. ``decided``: whether it races.
    ``sampled``: races that were seen under sample arguments only. ``cut``: there was no time for all of it.
    ``unseen``: code that only other blocks than the assumed run.
    """

    report: KernelReport
    findings: tuple[Diagnosis, ...]
    decided: bool
    open_reasons: tuple[str, ...] = ()
    sampled: frozenset[Key] = frozenset()
    cut: bool = False
    unseen: tuple[str, ...] = ()


def enumerate_kernel(kernel: Kernel, settings: Settings, *, until: float = math.inf) -> FirstTier:
    """The first tier: no solver, no I/O, bounded by ``settings.enumeration_budget``.

    ``until`` (of ``time.thread_time``, which other processes do not use up): somebody who types waits. What
    is known by then is returned, as ``cut`` when that is not all; the rest is asked for without this limit.
    """
    clock = _Clock(until)
    launches = launches_of(kernel, settings)
    findings: dict[Key, Diagnosis] = {}
    open_reasons: dict[str, None] = {}
    possible = False
    sampled: set[Key] = set()
    by_example = False
    unseen: tuple[str, ...] = ()
    for launch in launches:
        if clock.late() and launch is not launches[0]:
            break
        unknown = _run(kernel, launch, launch.arguments, settings, clock)
        if launch.assumed:
            launch, unknown = fitted(kernel, launch, unknown, partial(_open_run, kernel, settings, clock))
            launches = (launch,)
        found = _findings(unknown, settings, clock)
        open_reasons.update(dict.fromkeys(unknown.undecided))
        if not unknown.whole:
            open_reasons[doubt(Open.OTHER_BLOCKS)] = None
        if launch.grid is None:
            found = tuple(_between_unknown_blocks(finding, launch) for finding in found)
        if launch.assumed:
            found = _not_its_fault(kernel, launch, found, settings, clock)
            unseen = _unseen(kernel, unknown, settings, clock)
        doubts = [f for f in found if f.status is Status.POSSIBLE]
        left = [f for f in doubts if f.code in RACES or f.code is Code.BARRIER_DIVERGENCE]
        _collect(findings, (f for f in found if f.status is not Status.POSSIBLE))
        if kernel.errors:
            pass  # what broken code leaves open is noise while it is being typed
        elif free_scalars(kernel, launch):
            examples = [] if clock.late() else _sampled(kernel, launch, settings, clock)
            sampled |= {f.key for f in examples if f.code in RACES}
            by_example |= any(f.code is Code.SHARED_OUT_OF_BOUNDS for f in examples)
            _collect(findings, examples)
        else:
            _collect(findings, doubts)
        if left:
            possible = True
            open_reasons.update(dict.fromkeys(f.reason or doubt(Open.ENUMERATION) for f in left))
        _collect(findings, limit_findings(kernel, launch, settings.gpu))
    open_reasons.update(dict.fromkeys(unseen))
    late = clock.late()
    if late:
        open_reasons = {doubt(Open.BROKEN if kernel.errors else Open.BACKGROUND): None}
    if not kernel.errors:
        _collect(findings, incomplete_findings(kernel, launches[0]))
    incomplete = (*incomplete_reasons(kernel), *_divergence(findings.values()))
    reasons = (*incomplete, *open_reasons)
    decided = not possible and not open_reasons and not _divergence(findings.values())
    verdict = _verdict(findings.values(), race_free=decided and not incomplete)
    report = KernelReport(
        name=kernel.name,
        range=kernel.range,
        verdict=verdict,
        reasons=reasons if verdict is Verdict.UNDECIDED else incomplete,
        launches=launches,
        findings=shown(findings.values(), settings),
        refined=decided and not by_example,
        key=kernel.digest,
    )
    cut = late and not kernel.errors
    all_ = tuple(findings.values())
    return FirstTier(report, all_, decided, tuple(open_reasons), frozenset(sampled), cut, unseen)


@define
class _Clock:
    """``until`` when somebody waits, and whether that has come (``missed``) before all was done."""

    until: float
    missed: bool = False

    def late(self) -> bool:
        self.missed = self.missed or self.left < 0
        return self.missed

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.thread_time()


def _run(
    kernel: Kernel, launch: LaunchConfig, arguments: Mapping[str, int], settings: Settings, clock: _Clock
) -> Trace:
    share = clock.until - (1 - _EXECUTION) * clock.left if clock.until < math.inf else math.inf
    budget = Budget(milliseconds=settings.enumeration_budget, until=share)
    trace = execute(kernel, launch, arguments, settings.gpu, budget)
    clock.missed = clock.missed or trace.late
    if kernel.errors:
        # What broken text leaves unknown is noise while it is being typed, and dear to compare.
        for path in trace.paths:
            path.accesses = [a for a in path.accesses if not isinstance(a.offset, Data)]
    return trace


def _open_run(kernel: Kernel, settings: Settings, clock: _Clock, launch: LaunchConfig) -> Trace:
    return _run(kernel, launch, launch.arguments, settings, clock)


def _findings(trace: Trace, settings: Settings, clock: _Clock) -> tuple[Diagnosis, ...]:
    glance = bool(trace.kernel.errors) and clock.until < math.inf
    limit = min(_GLANCE if glance else _COMPARING, 1000 * clock.left)
    order = (*race_findings(trace, limit), *barrier_findings(trace))
    if trace.kernel.errors or clock.late():  # what broken text does to addresses is no news to its author
        return order
    optional = redundant_barriers(trace) if _wanted(Code.REDUNDANT_BARRIER, settings) else ()
    return (
        *order,
        *bank_findings(trace, max(1, settings.min_bank_ways - 1)),
        *bounds_findings(trace),
        *uninitialised_findings(trace),
        *coalescing_findings(trace),
        *optional,
    )


def _between_unknown_blocks(finding: Diagnosis, launch: LaunchConfig) -> Diagnosis:
    """A race between blocks needs a second block, which a grid of unknown size may not have."""
    if finding.status is not Status.PROVED or not finding.witness or finding.witness.blocks is None:
        return finding
    return finding.doubted(Open.LAUNCH_UNTOLD) if launch.assumed else finding.needing(Needs.BLOCKS)


def _not_its_fault(
    kernel: Kernel, launch: LaunchConfig, found: Iterable[Diagnosis], settings: Settings, clock: _Clock
) -> tuple[Diagnosis, ...]:
    """Under a launch that we assumed, only what other plausible launches show too is certain."""
    findings = tuple(found)
    certain = {f.key for f in findings if f.status is Status.PROVED and f.code not in _PERFORMANCE}
    if unlike(kernel, launch):
        certain.clear()
    fits = not any(f.status is Status.PROVED and f.code in _MISUSE for f in findings)
    for other in alternatives(kernel, launch):
        if not certain:
            break
        trace = _run(kernel, other, other.arguments, settings, clock)
        if fits and misuses_arrays(trace):
            continue
        there = _findings(trace, settings, clock)
        certain &= {f.key for f in there if f.status is Status.PROVED}
    return tuple(
        f
        if f.status is not Status.PROVED or f.code in _PERFORMANCE or f.key in certain
        else f.doubted(Open.LAUNCH_UNTOLD)
        for f in findings
    )


def _unseen(kernel: Kernel, trace: Trace, settings: Settings, clock: _Clock) -> tuple[str, ...]:
    """Writes that only other blocks than the assumed run, where those are not known to be free of races."""
    others = () if kernel.errors or clock.late() else alternatives(kernel, trace.launch)
    unseen = unseen_writes(kernel, trace) if others else None
    if not unseen:
        return ()
    ordered: list[Trace] = []
    for other in others:
        if clock.late():
            break
        again = _run(kernel, other, other.arguments, settings, clock)
        if not again.undecided and again.whole and not race_findings(again, _COMPARING):
            ordered.append(again)
    return tuple(dict.fromkeys(still_unseen(unseen, ordered).values()))


def _sampled(kernel: Kernel, launch: LaunchConfig, settings: Settings, clock: _Clock) -> list[Diagnosis]:
    """Findings that need the open scalars to have certain values; the example is the condition."""
    arguments = sample(kernel, launch)
    if arguments is None:
        return []
    trace = _run(kernel, launch, arguments, settings, clock)
    if trace.excluded:
        return []
    found = _findings(trace, settings, clock)
    if launch.assumed:
        # Neither launch nor arguments are known: too little to accuse anybody. The solver has the word.
        found = tuple(f for f in found if f.code in _PERFORMANCE)
    # Global addresses hang on pitches that fit together, which sampled ones need not: the solver's too.
    found = tuple(f for f in found if f.code is not Code.GLOBAL_RACE)
    example = Example(tuple((n, arguments[n]) for n in free_scalars(kernel, launch)), sampled=True)
    return [_under(finding, example) for finding in found]


def _under(finding: Diagnosis, example: Example) -> Diagnosis:
    hangs = finding.status is Status.PROVED and finding.code not in _PERFORMANCE
    return finding.needing(example) if hangs else finding


def _collect(findings: dict[Key, Diagnosis], more: Iterable[Diagnosis]) -> None:
    """The surest finding of each place stays."""
    for finding in more:
        key = finding.key
        known = findings.get(key)
        if known is None or finding.effective_severity < known.effective_severity:
            findings[key] = finding


def _verdict(findings: Iterable[Diagnosis], *, race_free: bool) -> Verdict:
    doubtful = [f for f in findings if f.code in RACES or f.code is Code.BARRIER_DIVERGENCE]
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
    by_solver = {f.key: f for f in answer.findings}
    for finding in first.findings:
        key = finding.key
        better = by_solver.pop(key, None)
        sampled = key in first.sampled and finding.status is Status.CONDITIONAL
        doubtful = finding.code in RACES and finding.status is Status.POSSIBLE
        if finding.status is not Status.PROVED and better and better.certain:
            findings[key] = better
        elif sampled and not proved_free:
            findings[key] = _unconfirmed(finding)
        elif not (proved_free and (sampled or doubtful)):
            findings[key] = finding
    if not first.decided:
        _collect(findings, by_solver.values())
    divergence = _divergence(findings.values()) if answer.mixed else ()
    unseen = () if answer.every_launch else first.unseen
    incomplete = (*incomplete_reasons(kernel), *divergence, *unseen)
    judged = [f for f in findings.values() if answer.mixed or f.code is not Code.BARRIER_DIVERGENCE]
    verdict = _verdict(judged, race_free=proved_free and not incomplete)
    open_reasons = () if proved_free else (answer.reasons or first.open_reasons)
    return evolve(
        report,
        verdict=verdict,
        reasons=tuple(dict.fromkeys((*incomplete, *open_reasons)))
        if verdict is not Verdict.RACE_FREE
        else (),
        findings=shown(findings.values(), settings),
        refined=True,
        assumptions=answer.assumptions if verdict is Verdict.RACE_FREE and not first.decided else (),
    )


def _unconfirmed(finding: Diagnosis) -> Diagnosis:
    """A race under sampled arguments that the solver, with all arguments open, could not confirm.

    Pitches and extents that fit together are the rule; sampled ones need not.
    """
    return evolve(finding.doubted(Unconfirmed(finding.conditions)), conditions=())


def _wanted(code: Code, settings: Settings) -> bool:
    return settings.severity[code] is not None if code in settings.severity else CODES[code].enabled


def shown(diagnoses: Iterable[Diagnosis], settings: Settings) -> tuple[Finding, ...]:
    """Those whose code is switched on in words, with the configured severity, in order of the text."""
    wanted = (d for d in diagnoses if _wanted(d.code, settings))
    found = [d.finding(settings.severity.get(d.code)) for d in wanted]
    return tuple(sorted(found, key=lambda f: (f.site.range, f.code.value)))


def moved(report: KernelReport, lines: int) -> KernelReport:
    """The report of a kernel whose text moved down by ``lines``."""
    if not lines:
        return report
    return evolve(
        report,
        range=report.range.shifted(lines),
        findings=tuple(_moved(finding, lines) for finding in report.findings),
    )


def _moved(finding: Finding, lines: int) -> Finding:
    related = tuple(
        evolve(r, site=evolve(r.site, range=r.site.range.shifted(lines))) for r in finding.related
    )
    return evolve(
        finding, site=evolve(finding.site, range=finding.site.range.shifted(lines)), related=related
    )
