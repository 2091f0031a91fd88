"""Rows that a list names, each with a stretch of entries of its own, are named once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import RACES, KernelReport, Severity, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(const unsigned* first, const {type}* id, const unsigned* col, const float* v, float* y,
                  const float* x, unsigned rows, unsigned n) {{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float sum = 0;
    {body}
}}
void f(unsigned* p, {type}* id, unsigned* c, float* v, float* y, float* x, unsigned rows, unsigned n) {{
    k<<<128, 128>>>(p, id, c, v, y, x, rows, n);
}}
"""
STRETCH = "for (unsigned j = first[i]; j < first[i + 1]; ++j) sum += v[j] * x[col[j]];"


def told(body: str, type: str = "unsigned") -> KernelReport:
    return check_text(Path("k.cu"), KERNEL.format(body=body, type=type), PATIENT).kernels[0]


def accused(report: KernelReport) -> bool:
    races = [f for f in report.findings if f.code in RACES]
    return any(f.effective_severity is not Severity.INFORMATION for f in races)


@pytest.mark.parametrize(
    "body",
    [
        f"{STRETCH} y[id[i]] += sum;",
        f"{STRETCH} unsigned at = id[i] * 2 + 1; if (n) y[at] += sum; else y[at] = sum;",
        f"{STRETCH.replace('x[col[j]]', 'y[col[j]]')} y[id[i]] -= sum;",  # those of rows before
        "unsigned row = id[i], end = first[i + 1]; sum = y[row];"
        " for (unsigned j = first[i]; j < end; j++) sum -= v[j]; y[row] = sum;",
    ],
)
def test_they_are_not_accused(body: str) -> None:
    report = told(body)
    assert not accused(report)
    assert report.verdict is Verdict.UNDECIDED  # nobody has seen that they differ


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ("for (unsigned j = first[i]; j < first[i + 1]; ++j) y[id[j]] += v[j] * x[i];", "unsigned"),  # edges
        ("y[id[i]] += 1;", "unsigned"),  # counted
        (f"{STRETCH} y[id[i] % n] += sum;", "unsigned"),
        (f"{STRETCH} y[id[i]] += sum;", "unsigned char"),
        (f"{STRETCH} y[id[i / 2]] += sum;", "unsigned"),
        (f"{STRETCH.replace('[i', '[i / 2')} y[id[i / 2]] += sum;", "unsigned"),  # one entry for two threads
        (f"{STRETCH} y[id[i + 1]] += sum;", "unsigned"),
        (f"{STRETCH} y[id[n - i]] += sum * x[col[i]];", "unsigned"),
    ],
)
def test_other_ids_are(body: str, type: str) -> None:
    assert accused(told(body, type))
