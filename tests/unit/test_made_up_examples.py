"""A race that takes many arguments to be just what they are is possible: the host has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Finding, Status
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* x, int a, int b, int c, int d, int e, int f, int g) {{
    int t = threadIdx.x;
    if ({where}) x[0] = t; else x[t + 1] = x[0];
}}
void h(float* x, int a, int b, int c, int d, int e, int f, int g) {{ k<<<1, 64>>>(x, a, b, c, d, e, f, g); }}
"""


def race(where: str) -> Finding:
    report = check_text(Path("k.cu"), KERNEL.format(where=where), PATIENT).kernels[0]
    found = [f for f in report.findings if f.witness is not None]
    assert found, report.reasons
    return found[0]


def test_seven_are_too_many() -> None:
    found = race("a * b * t == 6 && c * d == 35 && e * f * g == 30")
    assert found.status is Status.POSSIBLE
    assert found.reason == "the arguments"


@pytest.mark.parametrize(
    "where", ["a * b * t == 6", "a * b * t == 6 && c * d == 35", "t < a + b + c + d + e + f"]
)
def test_a_few_are_a_condition(where: str) -> None:
    assert race(where).status is Status.CONDITIONAL
