"""A report with what a run saw: races, divergence, accesses out of bounds, costs, notes.

A race that the run saw and the static side knew becomes ``confirmed``; one that the static side did not
know is added and says so; one that the static side suspects, whose two places were executed and watched
and which was not seen, becomes ``not observed``. What was proved stays proved. Definitions:
``docs/semantics.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.dynamic.job import CheckResult, Shape, places_of
from cuda_lsp.dynamic.observations.notes import notes
from cuda_lsp.dynamic.observations.others import add_conflict, add_divergence, add_fault
from cuda_lsp.dynamic.observations.places import never_analysed
from cuda_lsp.dynamic.observations.races import Ran, all_races, confirm, judged
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import RACES, Finding, KernelReport, SourceRange, Status, Verdict

_OPEN = (Status.CONDITIONAL, Status.POSSIBLE)


@frozen
class Seen:
    """A result to merge with a report. ``shapes``: of the kernel's arrays, by name.

    ``instance``: the name of the instance of a template that ran, where it is not the report's own: its races
    confirm what stands at the same lines, and what it does not show says nothing of the other. ``adds``:
    what the report lacks is added; else another report tells it. ``analysed``: by the static side, whose
    mistake it is to lack something.
    """

    result: CheckResult
    shapes: Mapping[str, Shape]
    instance: str = ""
    adds: bool = True
    analysed: bool = True


def merged(report: KernelReport, result: CheckResult, shapes: Mapping[str, Shape]) -> KernelReport:
    """``report`` with what ``result`` saw."""
    return with_all(report, [Seen(result, shapes)])


def with_all(report: KernelReport, seen: Sequence[Seen], told: Sequence[str] = ()) -> KernelReport:
    """``report`` with what several runs saw, and what else there is to tell of them."""
    seen = [one for one in seen if one.result.results]
    if not seen and not told:
        return report
    findings = list(report.findings)
    for one in seen:
        _add(findings, one, report)
    own = [one for one in seen if not one.instance]
    # A run under a condition may end early because its contents were made up: the others count all the same.
    if own and all(_complete(one.result) for one in own):
        runs = [ran for one in own for ran in _runs(one.result)]
        findings = [judged(f, runs, own[0].result.device) for f in findings]
    racy = any(f.code in RACES and f.status is Status.CONFIRMED for f in findings)
    racy = racy or any(trial.races.flags for one in seen for trial in one.result.results)
    findings.sort(key=lambda f: (f.site.range, f.code.value))
    said = dict.fromkeys((*told, *(note for one in seen if one.adds for note in _notes(one))))
    said |= dict.fromkeys(_unseen(findings, own[0].result) if own else ())
    new = tuple(note for note in said if note not in report.reasons)
    return evolve(
        report,
        verdict=Verdict.RACY if racy else report.verdict,
        findings=tuple(findings),
        reasons=(*report.reasons, *new),
        notes=(*report.notes, *new),
    )


def _add(findings: list[Finding], seen: Seen, report: KernelReport) -> None:
    """Confirm what a run saw, and add what is new."""
    result, known = seen.result, len(findings)
    name = seen.instance or report.name
    doubted = report.verdict is Verdict.UNDECIDED
    for race, trial in all_races(result, seen.instance):
        confirm(findings, race, name, seen.shapes, trial, doubted=doubted)
    for trial in result.results:
        for fault in trial.races.faults:
            add_fault(findings, fault, result, trial, name)
        for stuck in trial.races.stuck:
            add_divergence(findings, stuck, result, trial, name)
        for banks in trial.banks.banks if trial.banks is not None else ():
            add_conflict(findings, banks, result, trial, name)
    if not seen.adds:
        del findings[known:]
    if not seen.analysed:
        findings[known:] = [never_analysed(finding) for finding in findings[known:]]


def _unseen(findings: Iterable[Finding], result: CheckResult) -> Iterator[str]:
    """Races that were not seen and stay what they are, and why: the proved ones, and those not sought."""
    told: dict[tuple[int, bool], str] = {}
    for finding in findings:
        proved = finding.status is Status.PROVED and not finding.same_value
        why = _not_sought(finding, result)
        if finding.code in RACES and (proved or (why and finding.status in _OPEN)):
            told[finding.site.range.start.line, proved] = why or "a run shows one order of many"
    for (line, proved), why in sorted(told.items()):
        what = "proved" if proved else "suspected"
        yield f"the race {what} on line {line} was not seen on {result.device}: {why}"


def _not_sought(finding: Finding, result: CheckResult) -> str:
    """Why no run could have shown a race; "": one could."""
    pair = places_of(finding)
    meant = [run for run in result.results if run.trial.shows is not None and pair in run.trial.shows]
    if any(run.races.failure is None for run in meant):
        return ""
    if meant:
        return "the run that was to show it did not come to its end"
    if pair in result.untried:
        return result.untried[pair]
    sought = any(run.trial.shows is None for run in result.results) or not result.left
    return "" if sought else "there was no time for the run that was to show it"


def _complete(result: CheckResult) -> bool:
    return result.results[0].races.failure is None and not any(t.races.flags for t in result.results)


def _runs(result: CheckResult) -> Iterator[Ran]:
    """Those that came to their end."""
    for run in result.results:
        if run.races.failure is None:
            yield Ran(frozenset(_ranges(result.sites, run.races.executed)), run.trial)


def _notes(seen: Seen) -> Iterator[str]:
    of = f"{seen.instance}: " if seen.instance else ""
    return (f"{of}{note}" for note in notes(seen.result))


def _ranges(sites: Iterable[PtxSite], wanted: frozenset[int]) -> Iterator[SourceRange]:
    for k, site in enumerate(sites):
        if k in wanted and site.site is not None:
            yield site.site.range
