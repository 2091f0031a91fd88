"""A kernel is not walked once more where that would say the same."""

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
