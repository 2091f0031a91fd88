"""The solver's budget is work: a slow machine does not change what it finds."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import z3

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, Verdict
from cuda_lsp.readings import Reading
from cuda_lsp.static import work
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.solve import Budget, refine_kernel
from cuda_lsp.static.solver.watch import WATCH
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import Encoder

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


def test_a_term_that_nobody_holds_keeps_its_order() -> None:
    t.begin_afresh()
    order = t.symbol("n", t.Level.GRID).order
    gc.collect()
    assert t.symbol("n", t.Level.GRID).order == order


def test_a_question_costs_the_same_whatever_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[tuple[float, ...]] = []
    ask = Query._check

    def asked_twice(self: Query, formula: t.Term, encoder: Encoder, *more: Any) -> Any:
        began = work.DONE.units
        found = ask(self, formula, encoder, *more)
        between = work.DONE.units
        ask(self, formula, Encoder(encoder.width, encoder.linear, encoder.few), *more)
        costs.append((between - began, work.DONE.units - between))
        return found

    monkeypatch.setattr(Query, "_check", asked_twice)
    answer(Budget(kernel=20.0, query=0.05))
    assert costs and any(first for first, _ in costs)
    assert all(first == pytest.approx(second) for first, second in costs)


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


def test_a_question_ends_when_its_processor_time_is_over():
    """What Z3 counts leaves much out: this one counts next to nothing, and would take minutes."""
    context = z3.Context()
    x, y = z3.BitVecs("x y", 128, context)
    solver = z3.Solver(ctx=context)
    solver.add(x * y == 0xD3C21BCECCEDA1000000000000000091, z3.UGT(x, 1), z3.UGT(y, 1), x != y, x * x != y)
    begun = time.process_time()
    with WATCH.over(context, 0.3):
        result = solver.check()
    assert result == z3.unknown and time.process_time() - begun < 3.0
    plain = z3.Solver(ctx=context)
    plain.add(x == y + 1)
    with WATCH.over(context, 10.0):
        assert plain.check() == z3.sat


def test_a_fork_watches_its_own_questions():
    context = z3.Context()
    with WATCH.over(context, 10.0):
        pass
    child = os.fork()
    if child == 0:
        with WATCH.over(context, 10.0):
            alive = any(thread.name == "cuda-lsp-questions" for thread in threading.enumerate())
        os._exit(0 if alive else 1)
    assert os.waitpid(child, 0)[1] == 0
