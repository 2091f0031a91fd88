"""What lanes make of one value that all of them offer: the same for all, whoever takes part."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__device__ int counts[8];
__global__ void k(const int* data, int* out, int which) {
    int item = blockIdx.x, lane = threadIdx.x & 31;
    __shared__ int h[64];
    %s
    h[threadIdx.x] = data[item * 64 + threadIdx.x];
    __syncthreads();
    out[item * 64 + threadIdx.x] = h[63 - threadIdx.x];
}
void run(const int* d, int* o, int n, int which) { k<<<n, 64>>>(d, o, which); }
"""

ONE = [
    "if (__all_sync(~0u, item >= counts[which])) return;",
    "if (__any_sync(~0u, item >= counts[which])) return;",
    "if (__all(item >= counts[which])) return;",
    "if (__shfl_sync(~0u, counts[which], 0) < item) return;",
    "if (__shfl_xor_sync(~0u, counts[which], lane & 3) < item) return;",
    "if (__reduce_min_sync(~0u, counts[which]) < item) return;",
    "if (__reduce_or_sync(~0u, counts[which]) & 4) return;",
    "int c = counts[which]; for (int i = 1; i < 9; i *= 2) c += __shfl_down_sync(~0u, c, i); if (c) return;",
]
SEVERAL = [
    "if (__all_sync(~0u, data[threadIdx.x] >= counts[which])) return;",  # the warps of a block may differ
    "if (__any_sync(~0u, data[threadIdx.x])) return;",
    "if (__shfl_sync(~0u, data[threadIdx.x], 0) < item) return;",
    "if (__reduce_min_sync(~0u, data[threadIdx.x]) < item) return;",
    "if (__reduce_add_sync(__activemask(), counts[which]) < item) return;",  # as often as there are lanes
    "if (__ballot_sync(__activemask(), counts[which]) == 3) return;",
    "if (__all_sync(~0u, counts[threadIdx.x >> 5])) return;",
    "if (__shfl_sync(~0u, counts[threadIdx.x >> 5], 0)) return;",
    "if (__all_sync(~0u, counts[threadIdx.x & 7])) return;",
]


def checked(body: str) -> KernelReport:
    return check_text(Path("k.cu"), KERNEL % body, Settings(solver_budget=4_000)).kernels[0]


@pytest.mark.parametrize("body", ONE)
def test_one_value_of_all_is_one_value(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert not any(f.code is Code.BARRIER_DIVERGENCE for f in kernel.findings)


@pytest.mark.parametrize("body", SEVERAL)
def test_values_that_differ_are_several(body: str) -> None:
    assert any(f.code is Code.BARRIER_DIVERGENCE for f in checked(body).findings)
