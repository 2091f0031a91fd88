"""A trap or a failed assertion is told where it stands, on both engines; what was seen before is kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import emulated_engine
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, endings_of, failure_of, kernel_jobs
from cuda_lsp.dynamic.check import check
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.job import CheckResult, EngineKind
from cuda_lsp.dynamic.observations.merge import merged
from cuda_lsp.dynamic.runs import Engine
from cuda_lsp.model import FileReport, KernelReport, Status
from cuda_lsp.static.analyze import Analyzer

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]

KERNELS = """#include <cassert>
__global__ void checked(int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    __syncthreads();
    if (i % 32 == 5) __trap();
    a[i] += n;
}
__device__ void guard(int i) { if (i > 69) __trap(); }
__global__ void called(int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    guard(i);
    a[i] = n;
}
__global__ void asserted(int* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i; if (n >= 0) assert(a[i] != 70 && "no seventy");
    a[i] = 1;
}
__global__ void racy(int* a, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = n;
    a[threadIdx.x] = s[63 - threadIdx.x];
    if (threadIdx.x == 9) __trap();
}
__global__ void quiet(int* a, int n) {
    if (n < 0) __trap();
    a[blockIdx.x * blockDim.x + threadIdx.x] = n;
}
void go(int* a) {
    checked<<<2, 64>>>(a, 1);
    called<<<2, 64>>>(a, 1);
    asserted<<<2, 64>>>(a, 1);
    racy<<<1, 64>>>(a, 1);
    quiet<<<2, 64>>>(a, 1);
}
"""
LINES = {"checked": 6, "called": 9, "asserted": 17, "racy": 24}


@frozen
class One:
    """The one engine that there is."""

    engine: Engine

    def choose(self, kind: EngineKind, nvcc: Path | None = None) -> tuple[Engine, tuple[str, ...]]:
        return self.engine, ()


def ran(name: str, card: bool, watch: bool, tmp_path: Path) -> tuple[CheckResult, KernelReport]:
    path, analyzer = tmp_path / "k.cu", Analyzer(Settings())
    report: FileReport = analyzer.update(path, KERNELS)
    (job,) = kernel_jobs(CheckOptions(watch_all=watch), (name,), analyzer, KERNELS, report)
    analyzer.shutdown()
    engine = emulated_engine(find_toolkit()) if card else EmulatorEngine()
    return check(job, One(engine), lambda stage: None), next(k for k in report.kernels if k.name == name)


@pytest.mark.parametrize("card", [False, True], ids=("emulator", "card"))
@pytest.mark.parametrize("watch", [True, False], ids=("watched", "as proved"))
@pytest.mark.parametrize("name", LINES)
def test_the_line_that_ended_the_launch_is_told(name: str, watch: bool, card: bool, tmp_path: Path) -> None:
    result, report = ran(name, card, watch, tmp_path)
    (told,) = endings_of(result, report)
    assert told.range is not None and told.range.start.line == LINES[name]
    expected = "an assertion failed" if name == "asserted" else "the kernel executed trap"
    assert expected in told.message
    assert (f"line {LINES[name]}" in (failure_of(result) or "")) and expected in (failure_of(result) or "")


def test_who_came_there_is_told(tmp_path: Path) -> None:
    result, report = ran("checked", True, True, tmp_path)
    (told,) = endings_of(result, report)
    assert "2 threads of block 0 are at `__trap()`" in told.message


@pytest.mark.parametrize("card", [False, True], ids=("emulator", "card"))
def test_races_before_the_trap_are_kept(card: bool, tmp_path: Path) -> None:
    result, report = ran("racy", card, True, tmp_path)
    seen = merged(report, result, {})
    assert any(f.kind and f.status is Status.CONFIRMED for f in seen.findings)


@pytest.mark.parametrize("card", [False, True], ids=("emulator", "card"))
def test_a_trap_that_nobody_comes_to_ends_nothing(card: bool, tmp_path: Path) -> None:
    result, report = ran("quiet", card, True, tmp_path)
    assert failure_of(result) is None and not endings_of(result, report)
