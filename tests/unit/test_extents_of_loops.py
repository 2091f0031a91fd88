"""What loops count up to is positive, unless the kernel says what it does without."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

WINDOWS = """
__global__ void windows(float* y, const float* x, int n, int width, int k) {
    int row = blockIdx.x, column = threadIdx.x;
    ASKED
    for (; column + k <= width; column += blockDim.x) {
        float sum = 0;
        for (int i = 0; i < LIMIT; i++) sum += x[row * width + column + i];
        y[row * (width - k + 1) + column] = sum;
        REST
    }
}
void run(float* y, float* x, int n, int width, int k) { windows<<<n, 128>>>(y, x, n, width, k); }
"""
BEYOND = "y[(row + 1) * width - k] = 0;"


def checked(asked: str = "", limit: str = "k", index: str = "", rest: str = "") -> KernelReport:
    text = WINDOWS.replace("ASKED", asked).replace("LIMIT", limit).replace("REST", rest)
    if index:
        text = text.replace("row * (width - k + 1) + column", index)
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=6_000)).kernels
    return kernel


def test_a_window_has_an_element() -> None:
    kernel = checked(index="row * width + column")
    assert kernel.verdict is Verdict.RACE_FREE
    assert "`k` is positive" in kernel.assumptions


@pytest.mark.parametrize(
    "asked",
    ["if (k < 0 && column == 0) y[0] = 1;", "if (k <= 0) { y[(row + 1) * width] = 1; return; }"],
)
def test_not_where_the_kernel_goes_on_without(asked: str) -> None:
    assert checked(asked, index="row * width + column").verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("limit", "index"),
    [
        ("n", "row * width + column"),  # nothing counts up to k
        ("k", "row * (width - k) + column"),  # with one, too
    ],
)
def test_rows_that_are_too_short_race(limit: str, index: str) -> None:
    assert checked(limit=limit, index=index).verdict is not Verdict.RACE_FREE
