"""Small labelled kernels, correct and broken: the exact verdict, and every race by kind and line pair.

A kernel is labelled in the comment above it: ``//= racy | race-free | undecided | diverges``. Races stand
beside the later line as in ``fixture_cases``: ``//~ RAW @name; WAW @self``; where both lines are in functions
that the kernel calls, in the kernel with both names: ``//~ RAW @name @other``. ``undecided`` kernels hold a
construct or data that nobody can decide: they must say so, and show nothing as certain.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixture_cases import FIXTURES, Race

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, FileReport, KernelReport, Status
from cuda_lsp.static.analyze import check_text

FOLDER = FIXTURES / "labelled"
_LABEL = re.compile(
    r"//= ([\w-]+)[^\n]*\n(?:[^\n]*\n)*?[^\n]*__global__[^(]*?(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\("
)
_NAMED = re.compile(r"//\s*@(\w+)")
_EXPECT = re.compile(r"//~\s*([^/]*)")


@frozen
class Labelled:
    path: Path
    kernel: str
    label: str

    def __str__(self) -> str:
        return f"{self.path.stem}-{self.kernel}"


def labelled() -> list[Labelled]:
    return [
        Labelled(path, match[2], match[1])
        for path in sorted(FOLDER.glob("*.cu"))
        for match in _LABEL.finditer(path.read_text())
    ]


@cache  # its cases come between those of other files
def checked(path: Path) -> tuple[str, FileReport]:
    text = path.read_text()
    return text, check_text(path, text, Settings(enumeration_budget=20_000, solver_budget=20_000))


def expected_races(text: str, kernel: KernelReport) -> frozenset[Race]:
    lines = text.splitlines()
    names = {m[1]: number for number, line in enumerate(lines, 1) for m in _NAMED.finditer(line)}
    found: set[Race] = set()
    for number in range(kernel.range.start.line, kernel.range.end.line + 1):
        match = _EXPECT.search(lines[number - 1])
        for part in match[1].split(";") if match else ():
            kind, *ends = part.replace("@", "").split()
            a, b = sorted(number if name == "self" else names[name] for name in (*ends, "self")[:2])
            found.add(Race(kind, (a, b)))
    return frozenset(found)


def certain_races(kernel: KernelReport) -> frozenset[Race]:
    found: set[Race] = set()
    for f in kernel.findings:
        if f.kind and f.status in (Status.PROVED, Status.CONDITIONAL):
            ends = sorted((f.site.range.start.line, f.related[0].site.range.start.line))
            found.add(Race(f.kind.value, (ends[0], ends[1])))
    return frozenset(found)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.xdist_group(case.path.stem)) for case in labelled()],
    ids=str,
)
def test_the_verdict_and_every_race_are_as_labelled(case: Labelled) -> None:
    text, report = checked(case.path)
    kernels = [k for k in report.kernels if k.name.split("<")[0] == case.kernel]
    assert kernels, f"not analysed: {[e.message for e in report.errors]}"
    for kernel in kernels:
        said = [f"{f.status.value}: {f.message}" for f in kernel.findings]
        assert certain_races(kernel) == expected_races(text, kernel), (kernel.verdict, kernel.reasons, said)
        if case.label == "diverges":
            assert Code.BARRIER_DIVERGENCE in {f.code for f in kernel.findings}, said
        else:
            assert kernel.verdict.value == case.label, (kernel.reasons, said)
