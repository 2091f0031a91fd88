"""Places behind which something is left out, ``i + n * (i / w)``: they are one where the index is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
// cuda-lsp: assume {said}
__global__ void k(float* out, const float* in, int m, int n, int s, int w) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m * n; i += blockDim.x * gridDim.x) {{
        int part = i / (s * n);
        {body}
    }}
}}
void f(float* out, const float* in, int m, int n, int s, int w, int blocks) {{
    k<<<blocks, 256>>>(out, in, m, n, s, w);
}}
"""


def report(body: str, said: str = "m < 1000") -> KernelReport:
    text = KERNEL.format(body=body, said=said)
    (kernel,) = check_text(Path("/k.cu"), text, Settings(solver_budget=400)).kernels
    return kernel


@pytest.mark.parametrize(
    "body",
    [
        "out[i + part * n] = in[i];",
        "out[i + (part + 1) * n + w] = in[i];",
        "out[i + part * n * 2 + i / w * 5] += in[i];",
    ],
)
def test_indices_with_gaps_are_apart(body: str) -> None:
    kernel = report(body)
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons
    assert "`n` is positive" in kernel.assumptions or "`n*s` is positive" in kernel.assumptions


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("out[i - part * n] = in[i];", "m < 1000"),  # they come closer
        ("out[i + part * n] = in[i]; out[i + part * n * 2] = 0;", "m < 1000"),  # other gaps
        ("out[i + part * n] = in[i]; out[i + part * n + n] = 0;", "m < 1000"),
        ("int j = i / 2; out[j + j / (s * n) * n] = in[i];", "m < 1000"),
        ("out[i / 2 + part * n] = in[i];", "m < 1000"),
        ("out[i + part * w] = in[i];", "w >= -3"),
        ("out[i + part * (int)in[0]] = in[i];", "m < 1000"),  # what memory holds may be less than 0
    ],
)
def test_others_are_not(body: str, said: str) -> None:
    kernel = report(body, said)
    assert kernel.verdict is not Verdict.RACE_FREE
