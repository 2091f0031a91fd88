"""Indices below the smaller of a size and a constant (``t < min(n, 64u)``): no witness beyond either."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text


def kernel_of(body: str, size: str) -> KernelReport:
    text = f"__global__ void k(int* out, {size} n) {{ unsigned t = threadIdx.x, b = blockIdx.x; {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* o, {size} n) {{ k<<<8, 256>>>(o, n); }}\n")
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    ("size", "body"),
    [
        ("unsigned", "__shared__ int s[64]; if (t < min(n, 64u)) s[t] = t; __syncthreads();"
                     " if (t < min(n, 64u)) out[b * 64 + t] = s[t];"),
        ("unsigned", "unsigned m = n < 64u ? n : 64u; if (t < m) out[b * 64 + t] = t;"
                     " else if (t < 64) out[b * 64 + t] = 0;"),
        ("int", "int m = min(n - (int)b * 64, 64); if ((int)t < m) out[b * 64 + t] = t;"),
        ("unsigned", "if (t < min(n, 64u)) out[b * n + t] = 1;"),
        ("int", "__shared__ int s[128]; if (t < 128) s[t] = 0; __syncthreads();"
                " if (t < min(n, 64u)) { s[t] = t; s[t + 64] = n; } __syncthreads();"
                " if (t < 128) out[b * 128 + t] = s[t];"),
    ],
)  # fmt: skip
def test_nobody_comes_beyond_the_smaller_one(size: str, body: str) -> None:
    kernel = kernel_of(body, size)
    assert kernel.verdict is Verdict.RACE_FREE and not any(f.kind for f in kernel.findings), kernel.reasons


@pytest.mark.parametrize(
    "body",
    [
        "if (t < min(n, 65u)) out[b * 64 + t] = b;",
        "__shared__ int s[128]; s[t & 127] = t; __syncthreads(); if (t < 128) out[b * 128 + t] = s[t];",
    ],
)
def test_who_comes_beyond_a_row_is_told(body: str) -> None:
    assert kernel_of(body, "unsigned").verdict is Verdict.RACY
