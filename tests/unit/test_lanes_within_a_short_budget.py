"""Lanes that exchange through shared memory meet in their warp: so it is told, however short the budget."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, LaunchConfig, LaunchSource
from cuda_lsp.static.solver.answer import Budget
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

SHORT = Budget(kernel=4, query=0.02)
ROWS = """
__global__ void k(
    const unsigned* first, const unsigned* col, const float* v, const float* x, float* out, unsigned n)
{{
    __shared__ float part[256];
    const unsigned lane = threadIdx.x % 16;
    const unsigned each = blockDim.x * ((n - 1) / (gridDim.x * blockDim.x) + 1);
    const unsigned end = min(blockIdx.x * each + each, n);
    for (unsigned row = blockIdx.x * each + threadIdx.x / 16; row < end; row += blockDim.x / 16) {{
        float sum = 0;
        unsigned stop = first[row + 1];
        for (unsigned i = first[row] + lane; i < stop; i += 16) sum += v[i] * x[col[i]];
        part[threadIdx.x] = sum;
        part[threadIdx.x] += part[{partner}];
        if (lane == 0) out[row] = part[threadIdx.x];
    }}
}}
"""


def decided(partner: str) -> SolverResult:
    launch = LaunchConfig((256, 1, 1), (256, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(ROWS.format(partner=partner)), [launch], GpuModel("test", (9, 0)), SHORT)


@pytest.mark.parametrize("partner", ["threadIdx.x ^ 2", "threadIdx.x ^ 8", "threadIdx.x / 32 * 32 + lane"])
def test_partners_in_a_warp_are_a_race_of_lanes(partner: str) -> None:
    certain = [f for f in decided(partner).findings if f.certain]
    assert certain
    assert {f.code for f in certain} == {Code.WARP_RACE}


@pytest.mark.parametrize("partner", ["threadIdx.x ^ 32", "(threadIdx.x + 8) % 256", "255 - threadIdx.x"])
def test_partners_in_other_warps_are_a_race_of_the_block(partner: str) -> None:
    assert Code.SHARED_RACE in {f.code for f in decided(partner).findings if f.certain}
