"""Rows of several pitches, and sizes that are not negative: what a proof takes for granted is told."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

SLICES = """
// cuda-lsp: launch block=(32,8)
__global__ void slices_of_rows(unsigned char* image, size_t pitch, size_t slice, int depth) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    for (int z = 0; z < depth; z++) {
        unsigned char* pixel = image + z * slice + y * pitch + 4 * x;
        pixel[0] = x;
        pixel[3] = y;
    }
}
"""

BORDERS = """
// cuda-lsp: launch block=128
__global__ void borders_of_a_row(float* out, int width, int radius) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int x = 0; x < radius; x++) out[row * width + x] = 0.0f;
    for (int x = radius; x < width - radius; x++) out[row * width + x] = 1.0f;
}
"""


def checked(text: str) -> KernelReport:
    (kernel,) = check_text(Path("rows.cu"), text, Settings(solver_budget=20_000)).kernels
    return kernel


def test_rows_within_slices_are_two_pitches() -> None:
    assert checked(SLICES).verdict is Verdict.RACE_FREE


def test_rows_that_are_stepped_by_less_than_a_pixel_are_not_proved() -> None:
    assert checked(SLICES.replace("4 * x", "3 * x")).verdict is not Verdict.RACE_FREE


def test_borders_lie_within_their_row_for_a_radius_that_is_not_negative() -> None:
    assert checked(BORDERS).verdict is Verdict.RACE_FREE


def test_a_border_that_reaches_into_the_next_row_is_not_proved() -> None:
    assert checked(BORDERS.replace("x < width - radius", "x <= width")).verdict is not Verdict.RACE_FREE


def test_a_division_under_a_condition_proves_nothing_where_the_divisor_is_zero() -> None:
    text = """
// cuda-lsp: launch block=64 grid=1
__global__ void spread(float* out, unsigned n, unsigned width) {
    unsigned place = n ? threadIdx.x % n * width : 0;
    if (n == 0) out[place] = threadIdx.x;
}
"""
    assert checked(text).verdict is Verdict.RACY
