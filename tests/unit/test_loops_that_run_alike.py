"""Loops that run alike are one question: their counters' names are nothing to it, all else is."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, int heads, int size, int length, const int* lengths) {{
    int batch = blockIdx.x / heads, head = blockIdx.x % heads, x = threadIdx.x, pitch = heads * size;
    if (x >= size) return;
    float* row = a + batch * length * pitch + head * size + x;
    for (int i = 0; i < lengths[batch]; i++) row[i * pitch] += 1;
    __syncthreads();
    for (int i = 0; i < lengths[batch]; i++) row[i * pitch] *= 2;
    __syncthreads();
    for (int i = 0; i < lengths[batch]; i++) {last}
}}
"""


def decided(last: str, budget: float) -> SolverResult:
    kernel = lowered(KERNEL.format(last=last))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=budget))


def test_loops_that_run_alike_cost_little_more_than_one() -> None:
    result = decided("row[i * pitch] -= 3;", 0.3)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert any("`length`" in granted for granted in result.assumptions)


@pytest.mark.parametrize(
    "last",
    [
        "row[i * pitch + 1] -= 3;",  # the next thread's column
        "row[i * size] -= 3;",  # another head's
        "row[i * pitch - x] -= 3;",  # one element for all
        "if (batch > 0) row[(i - length) * pitch] -= 3;",  # the batch before
        "a[i] = x;",
    ],
)
def test_a_loop_that_runs_otherwise_is_a_question_of_its_own(last: str) -> None:
    assert decided(last, 2.0).verdict is not Verdict.RACE_FREE
