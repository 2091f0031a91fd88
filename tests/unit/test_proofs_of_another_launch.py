"""What proved a pair at one launch is tried first at the next: it decides as before, with less to ask."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

ROWS = """
__global__ void k(float* a, const float* in, int w, int h) {
    int y = blockIdx.x / h, x = blockIdx.x % h;
    int row = (x + y * h) * gridDim.y + blockIdx.y;
    for (int i = threadIdx.x; i < w; i += blockDim.x) a[row * w + i] = in[i];
}
"""
SPAN = """
__global__ void k(float* a, int n) {
    if (threadIdx.x < n) a[blockIdx.x * 64 + threadIdx.x] = n;
}
"""


def decided(text: str, *blocks: int) -> SolverResult:
    launches = [LaunchConfig((block, 1, 1), source=LaunchSource.FILE) for block in blocks]
    return refine_kernel(lowered(text), launches, GpuModel("test", (9, 0)), Budget(2.0))


def test_the_next_launch_takes_less() -> None:
    one, several = decided(ROWS, 64), decided(ROWS, 64, 128, 192, 256)
    assert one.verdict is several.verdict is Verdict.RACE_FREE
    assert several.assumptions == one.assumptions
    assert several.stats.queries <= 4 * one.stats.queries
    assert several.stats.seconds < 4 * one.stats.seconds


@pytest.mark.parametrize("blocks", [(64, 32, 128), (32, 128), (64, 128, 32)])
def test_a_launch_that_races_does(blocks: tuple[int, ...]) -> None:
    assert decided(SPAN, *(block for block in blocks if block <= 64)).verdict is Verdict.RACE_FREE
    assert decided(SPAN, *blocks).verdict is Verdict.RACY
