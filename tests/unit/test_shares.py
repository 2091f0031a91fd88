"""What the solver may spend on the kernels of one file, and what is told of it on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import FileReport, LaunchConfig, Verdict
from cuda_lsp.static import budgets, kept_reports, work
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.shares import Shares
from cuda_lsp.static.solver.answer import Budget, SolverResult, Stats

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


HARD = """
__global__ void k{number}(int* a, const int* p, int n) {{
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) a[p[i] / {number}] = i;
}}
"""


def _asked(monkeypatch: pytest.MonkeyPatch, answers: Callable[[str, int], SolverResult]) -> FileReport:
    """What a file of kernels comes to, of which the solver gives these ``answers`` by name and budget."""

    def proof(
        kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
    ) -> SolverResult:
        return answers(kernel.name, round(1000 * budget.kernel))

    monkeypatch.setattr(kept_reports, "proof", proof)
    path, analyzer = Path("/nowhere/hard.cu"), Analyzer()
    try:
        analyzer.update(path, "".join(HARD.format(number=number) for number in range(2, 8)))
        return analyzer.settle(path)
    finally:
        analyzer.shutdown()


def test_nobody_is_looked_at_again_with_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    asked: dict[str, list[int]] = {}

    def open_(name: str, budget: int) -> SolverResult:
        asked.setdefault(name, []).append(budget)
        work_of = budget / 1000 if name != "k7" else 0.0
        return SolverResult(Verdict.UNDECIDED, ("time",), stats=Stats(seconds=work_of))

    _asked(monkeypatch, open_)
    assert len(asked) == 6
    assert all(sorted(set(budgets)) == budgets for budgets in asked.values())
    assert len(asked["k7"]) == 1


def test_what_a_second_look_does_not_show_again_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    solver = kept_reports.proof

    def proof(
        kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
    ) -> SolverResult:
        asked.append(round(1000 * budget.kernel))
        if asked[-1] > asked[0]:
            return SolverResult(Verdict.UNDECIDED, ("time",))
        return evolve(solver(kernel, launches, gpu, Budget()), stats=Stats(seconds=budget.kernel))

    monkeypatch.setattr(kept_reports, "proof", proof)
    monkeypatch.setattr(budgets, "FILE_SHARES", (0.5, 1.5))
    path, analyzer = Path("/nowhere/shifted.cu"), Analyzer()
    text = "__global__ void k(int* a, int n) { int i = 32 * blockIdx.x + threadIdx.x; a[i] = a[i + n]; }"
    try:
        analyzer.update(path, text + "void run(int* a, int n) { k<<<4, 32>>>(a, n); }")
        report = analyzer.settle(path)
    finally:
        analyzer.shutdown()
    assert len(asked) == 2
    assert [k.verdict for k in report.kernels] == [Verdict.RACY]


INSTANCES = """
template <int N> __global__ void k(int* a, const int* p, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) a[p[i] / N] = i;
}
template <int N> __global__ void other(int* a, const int* p, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) a[p[i] / N] = i;
}
void run(int* a, int* p, int n) {
    k<2><<<n, 32>>>(a, p, n); k<3><<<n, 32>>>(a, p, n); k<4><<<n, 32>>>(a, p, n);
    other<2><<<n, 32>>>(a, p, n);
}
"""


def _instances(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[str, float], Verdict | None],
    left_open: frozenset[int] = frozenset(),
) -> tuple[dict[str, list[float]], FileReport]:
    """What instances were given, in shares of a budget, and the report; None: open after all that it had."""
    given: dict[str, list[float]] = {}

    def proof(
        kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
    ) -> SolverResult:
        whole = budgets.KERNEL_S
        given.setdefault(kernel.name, []).append(budget.kernel / whole)
        verdict = answer(kernel.name, budget.kernel / whole)
        seconds = budget.kernel if verdict is None else 0.0
        return SolverResult(verdict or Verdict.UNDECIDED, ("time",), stats=Stats(seconds=seconds))

    monkeypatch.setattr(kept_reports, "proof", proof)
    path, analyzer = Path("/nowhere/instances.cu"), Analyzer(evolve(Settings(), solver_budget=2000))
    try:
        analyzer.update(path, INSTANCES)
        return given, analyzer.settle(path, None, left_open)
    finally:
        analyzer.shutdown()


def test_of_a_template_that_stays_open_one_instance_has_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given, report = _instances(monkeypatch, lambda name, share: None)
    assert [k.verdict for k in report.kernels] == [Verdict.UNDECIDED] * 4
    assert given["k<2>"][0] > 0.5 and given["other<2>"][0] > 0.5
    assert given["k<3>"] == given["k<4>"] == [budgets.HOPELESS_SHARE]


def test_an_instance_that_needs_little_is_decided_beside_one_that_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(name: str, share: float) -> Verdict | None:
        return None if name == "k<2>" else Verdict.RACE_FREE

    _, report = _instances(monkeypatch, answer)
    assert [k.verdict for k in report.kernels] == [Verdict.UNDECIDED, *[Verdict.RACE_FREE] * 3]


def test_the_others_have_their_time_when_a_second_look_decides_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budgets, "FILE_SHARES", (0.8, 4.0))

    def answer(name: str, share: float) -> Verdict | None:
        return Verdict.RACE_FREE if share > 0.5 else None

    given, report = _instances(monkeypatch, answer)
    assert [k.verdict for k in report.kernels] == [Verdict.RACE_FREE] * 4
    assert given["k<3>"][0] < given["k<2>"][0] < 0.5


def test_what_another_reading_leaves_open_has_little_time_and_may_be_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(name: str, share: float) -> Verdict | None:
        return Verdict.RACE_FREE if name == "k<3>" else None

    given, report = _instances(monkeypatch, answer, frozenset({2}))
    assert [k.verdict for k in report.kernels][:2] == [Verdict.UNDECIDED, Verdict.RACE_FREE]
    assert given["k<2>"] == given["k<3>"] == [budgets.HOPELESS_SHARE]
    assert given["other<2>"][0] > 0.5
