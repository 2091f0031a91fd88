"""What one thread does wrong is shown with that thread only, and with the sizes that make it happen."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.report.terminal import finding_text
from cuda_lsp.server.hover import hover_text
from cuda_lsp.static.analyze import check_text

TEXT = """
__global__ void k(float* a, int n) { __shared__ float s[512]; a[threadIdx.x] = s[threadIdx.x + n]; }
void go(float* a, int n) { k<<<1, 256>>>(a, n); }
"""


@pytest.fixture(scope="module")
def report() -> FileReport:
    return check_text(Path("k.cu"), TEXT, PATIENT)


@pytest.fixture(scope="module")
def outside(report: FileReport) -> Finding:
    return next(f for f in report.findings if f.code is Code.SHARED_OUT_OF_BOUNDS)


def test_the_condition_is_on_the_side_of_sizes(outside: Finding) -> None:
    assert outside.condition == "`n` > `blockDim.x` (256)"


def test_the_terminal_shows_one_thread_and_the_size(outside: Finding) -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(finding_text(outside, lambda path: TEXT.splitlines()))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.count("same") == 1
    assert "n = " in shown


def test_the_hover_shows_one_thread(report: FileReport, outside: Finding) -> None:
    shown = hover_text(report, outside.site.range.start)
    assert shown is not None
    assert shown.count("same") == 1
    assert "It touches `s[512]`" in shown
