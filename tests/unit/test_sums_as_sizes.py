"""Rows of as many elements as the host computes as a sum of other arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

CONVOLVED = """
__global__ void convolved(float* y, const float* x, int images, int k, int h_in, int w_in, int h, int w) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (GUARD) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) sum += x[(blockIdx.z * h_in + row + i) * w_in + column + j];
        y[INDEX] = sum;
    }
}
void run(float* y, float* x, int n, int k, int h_in, int w_in) {
    int h = h_in - k + 1, w = w_in - k + 1;
    dim3 grid((w + 15) / 16, (h + 15) / 16, n);
    convolved<<<grid, dim3(16, 16)>>>(y, x, n, k, h_in, w_in, h, w);
}
"""


def verdict(guard: str, index: str) -> Verdict:
    text = CONVOLVED.replace("GUARD", guard).replace("INDEX", index)
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=6_000)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    ("guard", "index"),
    [
        ("row < h && column < w", "(blockIdx.z * h + row) * w + column"),
        ("row + k <= h_in && column < w", "(blockIdx.z * h + row) * w + column"),
        ("row < h && column < w", "(blockIdx.z * h_in + row) * w_in + column"),  # with what is left of rows
    ],
)
def test_rows_of_a_sum_are_rows(guard: str, index: str) -> None:
    assert verdict(guard, index) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("guard", "index"),
    [
        ("row < h && column < w_in", "(blockIdx.z * h + row) * w + column"),  # columns leave their rows
        ("row < h_in && column < w", "(blockIdx.z * h + row) * w + column"),  # rows leave their planes
        ("row < h && column < w", "(blockIdx.z * h + row) * (w - 1) + column"),
        ("row < h && column < w", "(blockIdx.z * h + row) * k + column"),
    ],
)
def test_what_the_sum_does_not_bound_stays_open(guard: str, index: str) -> None:
    assert verdict(guard, index) is not Verdict.RACE_FREE
