"""Loops that all threads of a block leave in one round: while one is in the next, nobody has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """__global__ void k(const float* in, float* out, int rounds, int n) {
  __shared__ float total, part[128];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    float mine = 0;
    for (int i = 0; i < n; i++) mine += in[i];
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, mine);
    __syncthreads();
    %s
  }
  out[blockIdx.x * 128 + threadIdx.x] = part[threadIdx.x];
}
void go(const float* in, float* out, int rounds, int n) { k<<<8, 128>>>(in, out, rounds, n); }
"""


def verdict(rest: str) -> Verdict:
    return check_text(Path("/k.cu"), KERNEL % rest).kernels[0].verdict


@pytest.mark.parametrize(
    "rest",
    [
        "if (total < 0.5f) break; __syncthreads(); part[threadIdx.x] = mine; __syncthreads();",
        "if (total > n) return; part[threadIdx.x] = mine; __syncthreads();",
    ],
)
def test_what_was_read_before_the_block_left_is_not_written_meanwhile(rest: str) -> None:
    assert verdict(rest) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "rest",
    [
        "if (total < 0.5f) break; part[threadIdx.x] = mine;",  # set back before all have read
        "if (part[threadIdx.x] < 0.5f) break; __syncthreads();",  # each for itself
        "if (total < 0.5f) break; if (threadIdx.x) __syncthreads();",
        "if (threadIdx.x == 5) total = mine; if (total < 0.5f) break; __syncthreads();",
        "__syncthreads(); if (total < 0.5f) break; if (n > 3) __syncthreads();",
    ],
)
def test_what_may_be_written_meanwhile_is_no_proof(rest: str) -> None:
    assert verdict(rest) is not Verdict.RACE_FREE
