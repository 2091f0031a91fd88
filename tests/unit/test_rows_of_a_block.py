"""Rows of a sparse matrix that a block takes one after the other: the columns of a row differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import RACES, KernelReport, Severity, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(const unsigned* first, const unsigned* col, const float* v, float* x, float* y,
                  const float* d, const unsigned* part, unsigned n) {{
    {rows} {{
        float r = {number};
        unsigned end = first[row + 1];
        for (unsigned e = first[row] + {begin}; e < end; e += {step}) {{ {entry} }}
        {barrier}
    }}
}}
void f(unsigned* p, unsigned* c, float* v, float* x, float* y, float* d, unsigned* b, unsigned n) {{
    k<<<{blocks}, 128>>>(p, c, v, x, y, d, b, n);
}}
"""
ALL = "for (unsigned row = 0; row < n; ++row)"
PART = "for (unsigned row = part[2 * blockIdx.x]; row < part[2 * blockIdx.x + 1]; ++row)"
ENTRY = "x[col[e]] -= r * v[e];"
USUAL = {
    "rows": ALL, "number": "x[row]", "begin": "threadIdx.x", "step": "blockDim.x", "entry": ENTRY,
    "barrier": "__syncthreads();", "blocks": "1",
}  # fmt: skip


def told(**changed: str) -> KernelReport:
    return check_text(Path("k.cu"), KERNEL.format(**{**USUAL, **changed}), PATIENT).kernels[0]


def accused(report: KernelReport) -> bool:
    races = [f for f in report.findings if f.code in RACES]
    return any(f.effective_severity is not Severity.INFORMATION for f in races)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"entry": "unsigned c = col[e]; if (c > row) x[c] -= r * v[e];"},
        {"number": "x[row] / d[row]"},
        {"rows": PART, "blocks": "16"},  # each block has rows of its own
        {"number": "d[row]", "entry": "y[col[e]] += v[e] * r;"},
    ],
)
def test_they_are_not_accused(changed: dict[str, str]) -> None:
    report = told(**changed)
    assert not accused(report)
    assert report.verdict is Verdict.UNDECIDED  # nobody has seen that they differ


@pytest.mark.parametrize(
    "changed",
    [
        {"barrier": ""},  # a thread is at the next row
        {"begin": "threadIdx.x", "step": "1"},
        {"begin": "threadIdx.x / 2", "step": "blockDim.x / 2"},
        {"begin": "0", "step": "1"},
        {"entry": "x[col[e]] += 1;"},
        {"entry": "x[col[e]] += v[e];"},  # weights by keys
        {"entry": "x[col[e] % n] -= r * v[e];"},
        {"entry": "x[col[e / 2]] -= r * v[e];"},
        {"number": "d[threadIdx.x]"},
        {"rows": "for (unsigned row = threadIdx.x / 32; row < n; row += 4)", "barrier": ""},  # one for a warp
        {"rows": PART, "blocks": "16", "number": "d[row]", "entry": "y[col[e]] += r * v[e];"},  # transposed
    ],
)
def test_others_are(changed: dict[str, str]) -> None:
    assert accused(told(**changed))
