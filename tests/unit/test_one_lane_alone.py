"""One lane of each warp stores what its warp added up, in loops: two lanes of a warp never both do."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

HEAD = """
__global__ void k(float* o, const float* in, int P, int Q, int H, int C, int s, int p, int q) {
    int n = blockIdx.x, h = blockIdx.y * blockDim.y + threadIdx.y, lane = threadIdx.x % 32;
    if (h >= H) return;
    for (int i = 0; i < P; ++i) for (int j = 0; j < Q; ++j) {
        float sum = 0;
        for (int c = threadIdx.x; c < C; c += 32) sum += in[c];
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
"""
PLACE = "o[n * s + i * p + j * q + h]"


def decided(body: str, block: tuple[int, int, int], seconds: float = 2.0) -> SolverResult:
    launch = LaunchConfig(block, source=LaunchSource.FILE)
    return refine_kernel(
        lowered(HEAD + body + " } }"), [launch], GpuModel("test", (9, 0)), Budget(kernel=seconds, query=0.1)
    )


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (f"if (threadIdx.x == 0) {PLACE} = sum;", (32, 4, 1)),
        (f"if (threadIdx.x == 31) {PLACE} = sum;", (32, 8, 1)),
        (f"if (lane == 0) {PLACE} = sum;", (32, 4, 1)),
        (f"if (threadIdx.x < 1) {PLACE} += sum;", (64, 4, 1)),
        (f"if (threadIdx.x == 0) {{ float v = {PLACE}; {PLACE} = v + sum; }}", (32, 4, 1)),
    ],
)
def test_what_one_lane_of_a_warp_stores_is_its_own(body: str, block: tuple[int, int, int]) -> None:
    result = decided(body, block)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (f"{PLACE} = sum;", (32, 4, 1)),
        (f"if (threadIdx.x < 2) {PLACE} = sum;", (32, 4, 1)),
        (f"if (lane == 0) {PLACE} = sum;", (64, 4, 1)),  # two warps have one row
        (f"if (threadIdx.x == 0) {PLACE.replace('+ h', '+ h / 2')} = sum;", (16, 4, 1)),  # two rows a warp
        (f"if (threadIdx.y == 0) {PLACE} = sum;", (32, 4, 1)),
        (f"if (threadIdx.x == 0 || sum > 1.f) {PLACE} = sum;", (32, 4, 1)),
        (f"if (threadIdx.x == 0) {PLACE.replace('+ h', '')} = sum;", (32, 4, 1)),  # of all warps
    ],
)
def test_what_several_lanes_or_warps_store_is_not_proved(body: str, block: tuple[int, int, int]) -> None:
    assert decided(body, block, seconds=0.5).verdict is not Verdict.RACE_FREE
