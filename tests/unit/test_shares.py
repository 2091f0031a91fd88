"""What the solver may spend on the kernels of one file, and what is told of it on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static import budgets, work
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.shares import Shares

BUDGET = 1000


class Clock:
    """Of the work that is done, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 5.0
        monkeypatch.setattr(work, "done", lambda: self.now)

    def spend(self, kernels: int, again: bool = False) -> list[int]:
        """The shares of kernels each of which takes all that it is given."""
        shares, given = Shares(BUDGET, kernels, again), list[int]()
        for _ in range(kernels):
            following = shares.following()
            if following is not None:
                given.append(following)
                self.now += following / 1000
        return given


def test_few_kernels_have_all_of_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Clock(monkeypatch).spend(3) == [BUDGET] * 3


def test_what_one_leaves_over_is_there_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    shares = Shares(BUDGET, 6, again=False)
    first = shares.following()
    for _ in range(3):  # which take next to nothing
        shares.following()
    later = shares.following()
    assert first is not None and later is not None and later > first
    assert clock.now == 5.0


def test_a_hundred_hard_kernels_have_a_few_shares_together(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Clock(monkeypatch).spend(100)
    assert len(given) == 100 and min(given) > 0
    assert sum(given) < 10 * BUDGET


def test_a_second_look_is_for_those_that_get_more_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert clock.spend(3, again=True) == [500, 500, 500]
    many = clock.spend(40, again=True)
    assert min(many) >= 300 and sum(many) <= 1.5 * BUDGET


TWO = """
__global__ void one(int* a, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) a[i] = i; }
__global__ void two(int* a, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) a[i + 1] = i; }
void run(int* a, int n) { one<<<n, 32>>>(a, n); two<<<n, 32>>>(a, n); }
"""


def test_what_is_decided_is_told_while_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "TOLD_S", 0.0)
    path, told = Path("/nowhere/two.cu"), list[FileReport]()
    analyzer = Analyzer()
    try:
        analyzer.update(path, TWO)
        last = analyzer.settle(path, told.append)
    finally:
        analyzer.shutdown()
    assert [k.verdict for k in last.kernels] == [Verdict.RACE_FREE] * 2
    assert [k.verdict for k in told[0].kernels] == [Verdict.RACE_FREE, Verdict.UNDECIDED]


ALIKE = """
template <class T> __global__ void k(T* a, int n) {{
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) a[i{step}] = i;
}}
void run(float* a, int* b, double* c, int n) {{
    k<<<n, 32>>>(a, n); k<<<n, 32>>>(b, n); k<<<n, 32>>>(c, n);
}}
"""


@pytest.mark.parametrize(("step", "verdict"), [("", Verdict.RACE_FREE), (" / 2", Verdict.RACY)])
def test_instances_that_are_alike_have_one_share(
    monkeypatch: pytest.MonkeyPatch, step: str, verdict: Verdict
) -> None:
    asked: list[int] = []
    begun = Shares.__init__

    def noted(self: Shares, budget: int, kernels: int, again: bool) -> None:
        asked.append(kernels)
        begun(self, budget, kernels, again)

    monkeypatch.setattr(Shares, "__init__", noted)
    path, analyzer = Path("/nowhere/alike.cu"), Analyzer()
    try:
        analyzer.update(path, ALIKE.format(step=step))
        report = analyzer.settle(path)
    finally:
        analyzer.shutdown()
    assert [k.verdict for k in report.kernels] == [verdict] * 3
    assert asked[0] < 3
