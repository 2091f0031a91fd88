"""Threads that leave before a barrier: told as divergence, and races are still decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

BODY = """__global__ void k(float* a, int n) {
  __shared__ float s[64];
  int i = threadIdx.x;
  %s
}
void go(float* a, int n) { k<<<1, 64>>>(a, n); }
"""


def check(body: str) -> KernelReport:
    (kernel,) = check_text(Path("/k.cu"), BODY % body).kernels
    return kernel


def diverges(kernel: KernelReport) -> bool:
    return any(f.code is Code.BARRIER_DIVERGENCE for f in kernel.findings)


@pytest.mark.parametrize(
    "body",
    [
        "if (i >= n) return; s[i] = a[i]; __syncthreads(); a[i] = s[0]; __syncthreads(); s[i] = 1;",
        "if (i >= n) return; for (int k = 0; k < n; ++k) { s[i] = k; __syncthreads(); a[i] += s[n - 1 - i];"
        " __syncthreads(); }",
    ],
)
def test_those_who_stay_are_ordered(body: str) -> None:
    kernel = check(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert diverges(kernel)


def test_a_race_among_those_who_stay() -> None:
    assert check("if (i >= n) return; s[i] = a[i]; a[i] = s[0]; __syncthreads();").verdict is Verdict.RACY


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) __syncthreads(); s[i] = 1; __syncthreads(); a[i] = s[63 - i];",
        "for (int k = 0; k < 4; ++k) { if (i < n * k) __syncthreads(); } a[i] = 1;",
        "for (int k = i; k < n; k += 64) { s[i] = k; __syncthreads(); } __syncthreads(); a[i] = s[0];",
    ],
)
def test_barriers_that_may_be_matched_wrongly_leave_it_undecided(body: str) -> None:
    kernel = check(body)
    assert diverges(kernel)
    assert kernel.verdict is not Verdict.RACE_FREE


def test_a_write_by_one_who_leaves_races() -> None:
    body = "if (i >= 32) { s[0] = 1; return; } __syncthreads(); if (i == 0) a[0] = s[0];"
    assert check(body).verdict is Verdict.RACY
