"""A report with what a run saw: races, divergence, accesses out of bounds, costs, notes.

A race that the run saw and the static side knew becomes ``confirmed``; one that the static side did not
know is added and says so; one that the static side suspects, whose two places were executed and watched
and which was not seen, becomes ``not observed``. What was proved stays proved. Definitions:
``docs/semantics.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from cuda_lsp.dynamic.job import CheckResult, Shape
from cuda_lsp.dynamic.observations.notes import notes
from cuda_lsp.dynamic.observations.others import add_conflict, add_divergence, add_fault
from cuda_lsp.dynamic.observations.races import confirm, judged, races_of
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import RACES, KernelReport, SourceRange, Status, Verdict


def merged(report: KernelReport, result: CheckResult, shapes: Mapping[str, Shape]) -> KernelReport:
    """``report`` with what ``result`` saw."""
    if not result.results:
        return report
    findings = list(report.findings)
    executed: list[set[SourceRange]] = []  # of each run: both ends must have run in one
    for trial in result.results:
        if trial.races.failure is None:
            executed.append(set(_ranges(result.sites, trial.races.executed)))
        for race in races_of(result, trial):
            confirm(findings, race, report.name, shapes, trial)
        for fault in trial.races.faults:
            add_fault(findings, fault, result, trial, report.name)
        for stuck in trial.races.stuck:
            add_divergence(findings, stuck, result, trial, report.name)
        for seen in trial.banks.banks if trial.banks is not None else ():
            add_conflict(findings, seen, result, trial, report.name)
    # A run under a condition may end early because its contents were made up: the others count all the same.
    complete = result.results[0].races.failure is None and not any(t.races.flags for t in result.results)
    findings = [judged(f, executed, result.device) if complete else f for f in findings]
    racy = any(f.code in RACES and f.status is Status.CONFIRMED for f in findings)
    racy = racy or any(t.races.flags for t in result.results)
    findings.sort(key=lambda f: (f.site.range, f.code.value))
    told = tuple(dict.fromkeys(note for note in notes(result) if note not in report.reasons))
    return evolve(
        report,
        verdict=Verdict.RACY if racy else report.verdict,
        findings=tuple(findings),
        reasons=(*report.reasons, *told),
        notes=(*report.notes, *told),
    )


def _ranges(sites: Iterable[PtxSite], wanted: frozenset[int]) -> Iterator[SourceRange]:
    for k, site in enumerate(sites):
        if k in wanted and site.site is not None:
            yield site.site.range
