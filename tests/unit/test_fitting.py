"""Assumed launches that a kernel's shared arrays are not made for."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, LaunchConfig, Verdict
from cuda_lsp.static.analyze import Analyzer

SOURCE = """
__global__ void two_halves(int* d) {
    __shared__ int s[512];
    int t = threadIdx.x, from = 0;
    s[t] = d[blockIdx.x * 256 + t];
    for (int o = 1; o < 256; o *= 2, from = 256 - from) {
        __syncthreads();
        s[256 - from + t] = t >= o ? s[from + t] + s[from + t - o] : s[from + t];
    }
    __syncthreads();
    d[blockIdx.x * 256 + t] = s[from + t];
}
__global__ void rows(float* out) {
    __shared__ float tile[32][32];
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = j;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = tile[0][threadIdx.x];
}
__global__ void neighbour(int* out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = t;
    if (s[t ^ 1] > 3) s[t] = 0;
    out[blockIdx.x * 256 + t] = s[t];
}
"""


def reports() -> dict[str, tuple[KernelReport, LaunchConfig]]:
    analyzer = Analyzer(Settings())
    analyzer.update(Path("k.cu"), SOURCE)
    found = {k.name: (k, k.launches[0]) for k in analyzer.settle(Path("k.cu")).kernels}
    analyzer.shutdown()
    return found


def test_a_block_whose_threads_leave_shared_arrays_is_not_assumed() -> None:
    found = reports()
    assert found["two_halves"][1].block == (256, 1, 1)
    assert found["rows"][1].block == (32, 8, 1)
    assert found["two_halves"][0].verdict is Verdict.RACE_FREE


def test_a_block_too_large_for_the_arrays_has_no_say_in_a_race() -> None:
    assert reports()["neighbour"][0].verdict is Verdict.RACY
