"""A grid barrier that is waited for by volatile reads, which the emulator takes for plain ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
// cuda-lsp: launch block=64 grid=16
__global__ void k(int* a, int* b, unsigned* arrived) {
    int i = blockIdx.x * 64 + threadIdx.x;
    a[i] = i;
    FENCE
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile unsigned*)arrived != gridDim.x) {}
    }
    __syncthreads();
    b[i] = a[(i + 512) % 1024];
}
"""


@pytest.mark.parametrize(("fence", "free"), [("__threadfence();", True), ("", False)])
def test_the_fence_decides(fence: str, free: bool) -> None:
    report = check_text(Path("k.cu"), TEXT.replace("FENCE", fence), PATIENT)
    assert (report.kernels[0].verdict is Verdict.RACE_FREE) is free
