"""Kernels whose sizes stand in memory: ``const int n = *num;``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(int* out, const int* in, const size_t* num, const unsigned char* bits) {
    __shared__ int s[256];
    const int n = *num, b = *bits, t = threadIdx.x;
    int last = 0;
    for (int g = blockIdx.x; g < (n + 255) / 256; g += gridDim.x) last = max(last, min(n - 256 * g, 256));
    s[t] = in[blockIdx.x * 256 + t] >> b;
    BARRIER
    for (int d = 128; d > 0; d /= 2) {
        if (t < d && t + d < last) s[t] = min(s[t], s[t + d]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
void run(int* out, const int* in, const size_t* n, const unsigned char* b) { k<<<7, 256>>>(out, in, n, b); }
"""


def kernel(text: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), text, Settings(solver_budget=4_000)).kernels
    return report


def test_a_barrier_that_matters_for_ordinary_sizes_is_missed() -> None:
    found = kernel(KERNEL.replace("BARRIER", ""))
    assert found.verdict is Verdict.RACY
    race = next(f for f in found.findings if f.code.value == "shared-race")
    assert race.status is Status.CONDITIONAL
    assert "`num[0]`" in race.message


def test_with_it_nothing_is_accused() -> None:
    found = kernel(KERNEL.replace("BARRIER", "__syncthreads();"))
    assert not [f for f in found.findings if f.status in (Status.CONDITIONAL, Status.PROVED)]


@pytest.mark.parametrize(
    ("access", "racy"),
    [
        ("s[t] = *num; __syncthreads(); if (t < *num) out[t] = s[t];", False),
        ("for (int i = 0; i < *num / 256; ++i) { s[t] = i; __syncthreads(); out[t] = s[255 - t]; }", True),
        (
            "for (int i = 0; i < *num / 256; ++i)"
            " { s[t] = i; __syncthreads(); out[t] = s[255 - t]; __syncthreads(); }",
            False,
        ),
    ],
)
def test_rounds_that_a_size_in_memory_makes(access: str, racy: bool) -> None:
    text = f"""__global__ void k(int* out, const int* num) {{
    __shared__ int s[256]; int t = threadIdx.x; {access} }}
    void run(int* out, const int* n) {{ k<<<1, 256>>>(out, n); }}"""
    assert (kernel(text).verdict is Verdict.RACY) is racy
