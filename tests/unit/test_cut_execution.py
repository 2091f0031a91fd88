"""What typing leaves no time for is finished in the background, and is not called clean before."""

from __future__ import annotations

import gc
import queue
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static import budgets
from cuda_lsp.static.analyze import Analyzer, check_text
from cuda_lsp.static.execution.values import distinct
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.words import doubt
from cuda_lsp.static.tiers import enumerate_kernel

FREE = """
__global__ void k(int* a) {
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    a[threadIdx.x] = s[255 - threadIdx.x];
}
void launch(int* a) { k<<<1, 256>>>(a); }
"""
RACY = FREE.replace("    __syncthreads();\n", "")
BROKEN = FREE.replace("s[threadIdx.x] =", "s[threadIdx.x =")
FILE = Path("/nowhere/cut.cu")


@pytest.fixture
def hurried(monkeypatch):
    """An analyzer that has no time at all while somebody types."""
    monkeypatch.setattr(budgets, "TYPING_S", -1.0)
    monkeypatch.setattr(budgets, "OPENING_S", -1.0)
    monkeypatch.setattr(budgets, "LEAST_EXECUTION_S", -1.0)
    analyzer = Analyzer(Settings(solver=False), quick=True)
    yield analyzer
    analyzer.shutdown()


def finished(analyzer: Analyzer) -> FileReport:
    reports: queue.Queue[FileReport] = queue.Queue()
    analyzer.refine(FILE, reports.put)
    return reports.get(timeout=120)


@pytest.mark.parametrize(("text", "verdict"), [(FREE, Verdict.RACE_FREE), (RACY, Verdict.RACY)])
def test_a_cut_kernel_is_undecided_until_the_background_has_finished_it(hurried, text, verdict):
    (first,) = hurried.update(FILE, text).kernels
    assert (first.verdict, first.refined) == (Verdict.UNDECIDED, False)
    assert doubt(Open.BACKGROUND) in first.reasons
    (then,) = finished(hurried).kernels
    assert (then.verdict, then.refined) == (verdict, True)
    (plain,) = check_text(FILE, text, Settings(solver=False)).kernels
    assert then.findings == plain.findings


def test_an_edit_that_keeps_the_kernel_does_not_start_it_again(hurried):
    hurried.update(FILE, FREE, 1)
    reports: queue.Queue[FileReport] = queue.Queue()
    hurried.refine(FILE, reports.put)
    hurried.update(FILE, "\n" + FREE, 2)
    hurried.refine(FILE, reports.put)
    report = reports.get(timeout=120)
    assert report.version == 2
    assert report.kernels[0].verdict is Verdict.RACE_FREE
    time.sleep(0.3)
    assert reports.empty()


def test_nobody_waits_for_what_an_edit_removed(hurried):
    hurried.update(FILE, FREE, 1)
    reports: queue.Queue[FileReport] = queue.Queue()
    hurried.refine(FILE, reports.put)
    hurried.update(FILE, "int x;\n", 2)
    assert hurried.refine(FILE, reports.put) == 0
    time.sleep(0.3)
    assert reports.empty()


def test_broken_text_is_undecided_and_not_finished_in_the_background(hurried):
    (kernel,) = hurried.update(FILE, BROKEN).kernels
    assert kernel.verdict is Verdict.UNDECIDED
    assert hurried.refine(FILE, print) == 0


def test_what_is_cut_does_not_depend_on_the_clock():
    analyzer = Analyzer(Settings(solver=False))
    try:
        analyzer.update(FILE, FREE)
        kernel = analyzer.kernel(FILE, "k")
        assert kernel is not None
        answers = {enumerate_kernel(kernel, Settings(enumeration_budget=0)).open_reasons for _ in range(3)}
        ((reason,),) = answers
        assert "more than about 0 ms" in reason
    finally:
        analyzer.shutdown()


def test_an_executed_kernel_is_forgotten_with_its_text():
    analyzer = Analyzer(Settings(solver=False))
    try:
        analyzer.update(FILE, FREE)
        first = weakref.ref(analyzer.kernel(FILE, "k"))
        for number in range(80):
            analyzer.update(FILE, FREE.replace("255", str(100 + number)))
        gc.collect()
        assert first() is None
    finally:
        analyzer.shutdown()


def test_different_values_in_order():
    values = np.array([[4, 0], [4, 8]])
    assert distinct(values).tolist() == [0, 4, 8]
    assert distinct(values[:0]).tolist() == []
