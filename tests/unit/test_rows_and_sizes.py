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
    (kernel,) = check_text(Path("rows.cu"), text, Settings(solver_budget=6_000)).kernels
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


PLANES = """
__global__ void planes(float* out, int nx, int ny, int nz) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y - 1, z = blockIdx.z;
    if (x >= nx || y > ny || z >= nz) return;
    out[(z * ny + y) * nx + x] = x + y + z;
}
void launch(float* out, int nx, int ny, int nz) {
    planes<<<dim3((nx + 15) / 16, (ny + 17) / 16, nz), dim3(16, 16)>>>(out, nx, ny, nz);
}
"""

STEPS = """
// cuda-lsp: launch block=256
__global__ void steps(float* out, int T, int C) {
    int i = blockIdx.x * 256 + threadIdx.x, n = blockIdx.y, step = i / C - 1;
    if (step < -1 || step >= T) return;
    out[(n * T + step) * C + i % C] = i;
}
"""

PADDED = """
__global__ void padded(float* out, int T, int P, int D) {
    int d = blockIdx.x * 64 + threadIdx.x;
    if (blockIdx.y >= T + P || d >= D) return;
    out[(blockIdx.z * T + blockIdx.y) * D + d] = blockIdx.y;
}
void launch(float* out, int n, int h, int w) {
    padded<<<dim3((w + 63) / 64, n + 4, h), 64>>>(out, n, 4, w);
}
"""


def test_rows_that_guards_let_behind_their_plane_are_not_taken_to_lie_in_it() -> None:
    assert checked(PLANES).verdict is Verdict.RACY
    assert checked(PLANES.replace("y > ny", "y < 0 || y >= ny")).verdict is Verdict.RACE_FREE
    shifted = PLANES.replace("(z * ny + y)", "(z * (ny + 2) + y + 1)")
    assert checked(shifted).verdict is Verdict.RACE_FREE


def test_a_step_before_its_row_is_in_the_row_before() -> None:
    assert checked(STEPS).verdict is not Verdict.RACE_FREE
    assert checked(STEPS.replace("step < -1 || ", "")).verdict is not Verdict.RACE_FREE
    assert checked(STEPS.replace("step < -1 || step >= T", "step > T - 2")).verdict is Verdict.RACE_FREE
    assert checked(STEPS.replace("step < -1", "step < 0")).verdict is Verdict.RACE_FREE


SHUFFLED = """
__global__ void shuffled(float* out, const float* in, int C, int H, int W) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= C * 4 * H * W) return;
    int w = i % W, h = i / W % H, q = i / (W * H) % 4, c = i / (W * H * 4);
    out[(c * 2 * H + 2 * h + q / 2) * 2 * W + 2 * w + q / 2] = in[i];
}
void launch(float* out, const float* in, int C, int H, int W) {
    int count = C * 4 * H * W;
    shuffled<<<(count + 255) / 256, 256>>>(out, in, C, H, W);
}
"""


def test_numbers_in_place_of_sizes_show_what_products_of_them_hide() -> None:
    assert checked(SHUFFLED).verdict is Verdict.RACY
    assert checked(SHUFFLED.replace("2 * w + q / 2", "2 * w + q % 2")).verdict is Verdict.RACE_FREE


def test_two_blocks_suffice_for_the_arguments_of_a_witness() -> None:
    assert checked(PADDED).verdict is Verdict.RACY
    assert checked(PADDED.replace("blockIdx.z * T", "blockIdx.z * (T + P)")).verdict is Verdict.RACE_FREE
