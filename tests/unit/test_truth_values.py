"""A parameter of type ``bool`` is true or false, in whatever is told of it."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.static.analyze import check_text

CLIP = """
__global__ void clip(float* x, int n, float* scale, {type} last) {{
    float t = *scale;
    if (last && blockIdx.x * blockDim.x + threadIdx.x == 0) *scale = sqrtf(t);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= t;
}}
void f(float* x, int n, float* s, {type} last, int b) {{ clip<<<b, 256>>>(x, n, s, last); }}
"""


def race(type: str) -> Finding:
    report = check_text(Path("k.cu"), CLIP.format(type=type), PATIENT).kernels[0]
    found = [f for f in report.findings if f.code is Code.GLOBAL_RACE and f.status is Status.CONDITIONAL]
    assert found, report.reasons
    return found[0]


def test_an_example_has_one_for_what_is_true() -> None:
    assert "`last` == 1" in race("bool").message


def test_a_number_is_what_it_was() -> None:
    assert "`last` == 1" not in race("int").message
