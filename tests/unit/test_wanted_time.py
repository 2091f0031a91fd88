"""When a kernel is not looked at once more: where that would say the same, or time is not what is missing."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver import solve
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

GPU = GpuModel("test", (9, 0))
LAUNCH = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
SCATTERED = """
__global__ void k(float* a, const int* at, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) a[at[i]] = i;
}
"""
ROUNDS = """
__global__ void k(float* a, const int* at) {
    __shared__ float s[64];
    for (int r = 0; r < 3; r++) {
        s[at[threadIdx.x]] = r;
        __syncthreads();
    }
}
"""
ROWS = """
__global__ void k(float* a, int n, int m) {
    for (int r = blockIdx.x; r < n; r += gridDim.x)
        for (int c = threadIdx.x; c < m; c += 64) a[r * m + c] = r;
}
"""


def _result(source: str, seconds: float = 10.0) -> SolverResult:
    return refine_kernel(lowered(source), [LAUNCH], GPU, Budget(kernel=seconds))


@pytest.mark.parametrize(("source", "passes"), [(SCATTERED, 1), (ROUNDS, 2)])
def test_rounds_are_walked_one_by_one_where_there_are_some(
    source: str, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    listed = solve.problems

    def counted(*words: object, **named: object) -> object:
        found.append(1)
        return listed(*words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(solve, "problems", counted)
    assert _result(source).verdict is not Verdict.RACE_FREE
    assert len(found) == passes


def test_contents_of_memory_are_not_a_matter_of_time() -> None:
    assert not _result(SCATTERED).wants_time


def test_what_the_budget_ended_is() -> None:
    needed = _result(ROWS)
    assert needed.verdict is Verdict.RACE_FREE
    for share in (0.01, 0.3, 0.6):
        result = _result(ROWS, share * needed.stats.seconds)
        assert result.verdict is Verdict.UNDECIDED and result.wants_time


def test_what_is_decided_wants_none() -> None:
    proved = _result(SCATTERED.replace("a[at[i]]", "a[i]"))
    raced = _result(SCATTERED.replace("a[at[i]]", "a[i / 2]"))
    assert proved.verdict is Verdict.RACE_FREE and not proved.wants_time
    assert raced.verdict is Verdict.RACY and not raced.wants_time


def test_a_race_that_may_be_beside_what_is_open_needs_no_time() -> None:
    both = ROWS.replace("int m)", "int m, int* b, const int* at)").replace("= r;", "= r, b[at[c]] = r;")
    assert not _result(both).wants_time
