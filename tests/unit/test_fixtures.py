"""Every fixture, as written and with each barrier removed: exactly the expected findings, no others."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixture_cases import Race, cases

from cuda_lsp.config import Settings
from cuda_lsp.model import RACES, Code, FileReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

CASES = {case.name: case for case in cases()}


def _each(names: Iterable[str]) -> list[ParameterSet]:
    """In one process, where a case is analysed once for all tests."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name), id=name) for name in names]


@cache
def report_of(name: str) -> FileReport:
    case = CASES[name]
    settings = Settings(banks=case.banks, enumeration_budget=20_000, solver_budget=20_000)
    return check_text(case.path, case.text, settings)


def races(report: FileReport) -> frozenset[Race]:
    found: set[Race] = set()
    for finding in report.findings:
        if finding.kind:
            lines = [finding.site.range.start.line, finding.related[0].site.range.start.line]
            found.add(Race(finding.kind.value, (min(lines), max(lines))))
    return frozenset(found)


def conflicts(report: FileReport) -> tuple[tuple[int, int], ...]:
    worst: dict[int, int] = {}
    for finding in report.findings:
        if finding.bank and finding.code is Code.BANK_CONFLICT:
            line = finding.site.range.start.line
            worst[line] = max(worst.get(line, 0), finding.bank.ways)
    return tuple(sorted(worst.items()))


@pytest.mark.parametrize("name", _each(CASES))
def test_exactly_the_expected_races_and_conflicts_are_found(name: str) -> None:
    report, case = report_of(name), CASES[name]
    assert report.errors == ()
    assert races(report) == case.races
    assert conflicts(report) == case.conflicts
    unexpected = {f.code for f in report.findings} - RACES - {Code.BANK_CONFLICT, Code.UNCOALESCED_ACCESS}
    assert unexpected == set()
    racy = Verdict.RACY in {kernel.verdict for kernel in report.kernels}
    assert racy == bool(case.races)
    if not case.races:
        assert {kernel.verdict for kernel in report.kernels} == {Verdict.RACE_FREE}


@pytest.mark.parametrize("name", _each(case.name for case in CASES.values() if case.races))
def test_certain_races_name_two_threads_and_an_element(name: str) -> None:
    report = report_of(name)
    certain = [f for f in report.findings if f.kind and f.status in (Status.PROVED, Status.CONDITIONAL)]
    assert certain
    for finding in certain:
        assert finding.witness is not None
        first, second = finding.witness.threads
        assert first != second or finding.witness.blocks is not None
