"""Integers that go through the lesser of two floating-point numbers and back: rounding keeps order."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
#define WIDE (sizeof(long) * 8)
__global__ void k(int* out, const float* in, int n, float f) {{
    int first = blockIdx.x * 64, t = threadIdx.x;
    if (first >= n) return;
    int count = {count};
    if (t < count) out[first + t] = n;
}}
void run(int* out, const float* in, int n, float f) {{ k<<<n, 256>>>(out, in, n, f); }}
"""


def verdict(count: str) -> Verdict:
    report = check_text(Path("k.cu"), TEXT.format(count=count))
    assert not report.errors
    return report.kernels[0].verdict


@pytest.mark.parametrize(
    "count",
    [
        "fminf(n - first, 64)",
        "fminf(64.0f, n - first)",
        "fmin(n - first, 64)",
        "min((float)(n - first), 64.0f)",
        "fmaxf(fminf(n - first, 64), 0)",
        "fminf(n - blockIdx.x * WIDE, WIDE)",
        "(int)fminf(n, 64)",
    ],
)
def test_the_lesser_of_two_whole_numbers_is_known(count: str) -> None:
    assert verdict(count) is Verdict.RACE_FREE


@pytest.mark.parametrize("count", ["fminf(n - first, 65)", "fmaxf(n - first, 64)", "fminf(n, 65)"])
def test_a_limit_beyond_the_row_is_seen(count: str) -> None:
    assert verdict(count) is Verdict.RACY


@pytest.mark.parametrize(
    "count",
    [
        "fminf(n - first + 0.5f, 64.5f)",  # arithmetic of its own
        "fminf(n - first, 64.5f)",
        "fminf(in[0], 65)",
        "fminf(f, 65)",
        "(int)(float)n",  # more than the type tells apart
        "fminf((float)(n - first) * f, 64)",
    ],
)
def test_other_numbers_are_not_taken_for_whole_ones(count: str) -> None:
    assert verdict(count) is not Verdict.RACE_FREE
