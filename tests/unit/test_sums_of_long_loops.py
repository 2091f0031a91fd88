"""Stores of sums over loops that run no round for small sizes are not taken to be of one value."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import RaceKind
from cuda_lsp.static.analyze import check_text

STREAM = """
typedef unsigned long long number;
__device__ number mix(number x) { return (1103515245ull * x + 12345) % 2147483648ull; }
__global__ void stream(float* p, const size_t size, size_t pages, size_t page) {
  size_t n = size / sizeof(float);
  int rounds = n / (blockDim.x * gridDim.x);
  size_t per = page / sizeof(float), last = per - warpSize;
  int lane = threadIdx.x & 31;
  unsigned long long r = mix(threadIdx.x + blockIdx.x * blockDim.x);
  float sum = 0;
  for (int i = 0; i < rounds; i++) {
    r = mix(r);
    unsigned long long block = __shfl_sync(0xffffffff, r % pages, 0);
    unsigned long long index = __shfl_sync(0xffffffff, r % last, 0) + lane;
    sum += ADDED;
  }
  if (threadIdx.x == 0) p[0] = sum;
}
void go(float* p, size_t n, size_t m, size_t k, int b) { stream<<<b, 1024>>>(p, n, m, k); }
"""


@pytest.mark.parametrize(("added", "alike"), [("p[block * per + index]", False), ("1.0f", True)])
def test_sums_of_what_each_block_reads_differ(added: str, alike: bool) -> None:
    report = check_text(Path("k.cu"), STREAM.replace("ADDED", added))
    assert not report.errors
    told = [f for f in report.findings if f.kind is RaceKind.WAW]
    assert told and all(f.same_value is alike for f in told)
