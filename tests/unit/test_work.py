"""The solver's budget is work: a slow machine does not change what it finds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, Verdict
from cuda_lsp.readings import Reading
from cuda_lsp.static import work
from cuda_lsp.static.solver.solve import Budget, refine_kernel

HARD = """
__global__ void k(float* a, const int* order, int n, int width, int height) {
    __shared__ float s[1024];
    int i = threadIdx.x, j = (i * width + height) % n;
    s[j] = a[i];
    __syncthreads();
    a[blockIdx.x * n + (j * height) % width] = s[(i * height + width) % n];
}
"""


def answer(budget: Budget) -> tuple[Verdict, tuple[str, ...]]:
    translation = Translation(Path("/nowhere/hard.cu"), HARD)
    (source,) = translation.kernels()
    gpu = GpuModel("test", (9, 0))
    result = refine_kernel(translation.lower(source), (LaunchConfig((256, 1, 1)),), gpu, budget)
    return result.verdict, result.reasons


def test_a_busy_machine_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(kernel=0.2, query=0.1)
    quiet = answer(budget)
    now = work.now

    def slow() -> float:
        time.sleep(0.002)  # others have the processor
        return now()

    monkeypatch.setattr(work, "now", slow)
    assert answer(budget) == quiet


def test_work_is_counted() -> None:
    work.begin(60.0)
    before = work.now()
    answer(Budget())
    assert work.DONE.terms > 0
    assert work.DONE.queries > 0
    assert work.now() > before


def test_no_budget_is_no_question() -> None:
    verdict, reasons = answer(Budget(kernel=0.0, query=0.0))
    assert verdict is Verdict.UNDECIDED
    assert reasons


def test_the_processors_time_ends_what_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = work.begin(0.001)
    while time.process_time() < work.DONE.latest:
        pass
    assert work.now() > deadline
    monkeypatch.setattr(work.DONE, "latest", float("inf"))


def test_where_nobody_waits_others_may_have_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work.DONE, "patience", work.PATIENCE)
    kernel = tmp_path / "k.cu"
    kernel.write_text(HARD)
    analysed(Reading(kernel), Asked(solver=False), lambda report: None)
    assert work.DONE.patience >= 400  # times a question's budget, by the clock on the wall
