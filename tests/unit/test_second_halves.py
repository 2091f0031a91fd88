"""Threads behind the first half take ``i - n`` apart, which a condition keeps from being negative."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* a, float* b, const float* in, int n, int h, int s, int d) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x, half = n * h * s * d;
    if (i >= 2 * half) return;
    float* out = {first} ? a : b;
    int j = {first} ? i : {rest};
    int q = j / (h * s * d), r = j / (s * d) % h, c = j % (s * d);
    out[{place}] = in[i];
}}
void f(float* a, float* b, const float* in, int n, int h, int s, int d) {{
    k<<<(2 * n * h * s * d + 255) / 256, 256>>>(a, b, in, n, h, s, d);
}}
"""
TURNED = "(r * n + q) * s * d + c"


def report(place: str = TURNED, first: str = "i < half", rest: str = "i - half") -> KernelReport:
    text = KERNEL.format(place=place, first=first, rest=rest)
    (found,) = check_text(Path("/k.cu"), text, Settings(solver_budget=500)).kernels
    return found


def test_both_halves_are_taken_apart() -> None:
    found = report()
    assert found.verdict is Verdict.RACE_FREE, found.reasons


@pytest.mark.parametrize(
    ("place", "first", "rest"),
    [
        (TURNED, "i < half", "i - half / 2"),
        (TURNED, "i < half / 2", "i - half"),
        (TURNED.replace("+ c", "+ c / 2"), "i < half", "i - half"),
        (TURNED.replace("r * n", "r"), "i < half", "i - half"),
        (TURNED, "i < half", "(i - half) / 2"),
    ],
)
def test_parts_that_overlap_are_not_proved(place: str, first: str, rest: str) -> None:
    assert report(place, first, rest).verdict is not Verdict.RACE_FREE
