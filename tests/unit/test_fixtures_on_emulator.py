"""Every fixture, as written and without each barrier, on the emulator: racy ones confirmed, no others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixture_cases import Case, cases
from test_labelled import Labelled, checked, labelled
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, job_for
from cuda_lsp.dynamic.check import Engines, check
from cuda_lsp.dynamic.compilation.compile import compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.observations.merge import merged
from cuda_lsp.dynamic.runs import Level
from cuda_lsp.model import Code, FileReport, KernelReport, Status
from cuda_lsp.static.analyze import Analyzer

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]
ENGINES = Engines()
CASES = [c for c in cases() if c.banks == 32]
OPTIONS = CheckOptions(EngineKind.EMULATOR, watch_all=True, all_blocks=False)


PATIENCE, SHORT = 60.0, 1.5
"""Seconds for a run that must end, on a busy machine too; for one that need not."""


def run_all(path: Path, text: str, may_hang: frozenset[str] = frozenset()) -> FileReport:
    """Every kernel run. ``may_hang``: broken ones that need not end."""
    analyzer = Analyzer(Settings())
    try:
        report = analyzer.update(path, text)
        kernels: list[KernelReport] = []
        for kernel in report.kernels:
            program = analyzer.kernel(path, kernel.name)
            assert program is not None
            broken = kernel.name.split("<")[0] in may_hang
            job = job_for(path, text, program, kernel, Settings(), OPTIONS)
            for level in Level:  # compiling counts, and is not what is tested here
                compile_module(job.path, job.text, job.options, level, find_toolkit(), job.cache)
            job = evolve(job, deadline=SHORT if broken else PATIENCE)
            result = check(job, ENGINES, lambda stage: None)
            assert result.problem is None, (result.problem, result.errors)
            failures = [trial.races.failure for trial in result.results if trial.races.failure]
            assert broken or not failures, (kernel.name, failures)
            kernels.append(merged(kernel, result, job.shapes))
        return evolve(report, kernels=tuple(kernels))
    finally:
        analyzer.shutdown()


def seen(kernel: KernelReport) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for f in kernel.findings:
        if f.kind and f.status is Status.CONFIRMED:
            a, b = sorted((f.site.range.start.line, f.related[0].site.range.start.line))
            found.add((a, b))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_races_of_a_fixture_are_seen_and_no_others(case: Case) -> None:
    report = run_all(case.path, case.text)
    races = set().union(*(seen(kernel) for kernel in report.kernels))
    assert races == {race.lines for race in case.races}


ENDLESS = {"roots_to_other_array"}
"""Kernels that random contents keep in a loop for ever: they follow parents to a root."""

NOT_EMULATED = {"matrices", "wraps"}
"""Instructions of tensor cores, which the emulator names as missing; grids of millions of blocks."""

EMULATED = sorted({c.path for c in labelled() if c.path.stem not in NOT_EMULATED})


@pytest.mark.parametrize("path", EMULATED, ids=lambda path: path.stem)
def test_labelled_kernels_behave_as_labelled(path: Path) -> None:
    text, _ = checked(path)
    labels: dict[str, Labelled] = {c.kernel: c for c in labelled() if c.path == path}
    broken = {name for name, c in labels.items() if c.label in ("racy", "diverges")}
    report = run_all(path, text, frozenset(broken | ENDLESS))
    wrong: list[str] = []
    for kernel in report.kernels:
        label = labels.get(kernel.name.split("<")[0])
        if label is None:
            continue
        found = seen(kernel)
        diverges = Code.BARRIER_DIVERGENCE in {f.code for f in kernel.findings}
        # An example run need not meet the data or the blocks that a race needs; it must not invent one.
        if label.label == "race-free" and found:
            wrong.append(f"{label}: false {sorted(found)}")
        if label.label == "diverges" and not diverges:
            wrong.append(f"{label}: no divergence seen")
    assert not wrong
