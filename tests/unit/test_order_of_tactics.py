"""What can be decided soon is decided before anything may take all of a kernel's time."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

QUARTERS = """
__global__ void scale(int n, const float* x, float* out) {
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n / 4; j += blockDim.x * gridDim.x) {
        out[4 * j] = x[4 * j];
        out[4 * j + 1] = x[4 * j + 1];
        out[4 * j + 2] = x[4 * j + 2];
        out[4 * j + 3] = x[4 * j + 3];
    }
    int rest = ((n / 4 - 1) / blockDim.x + 1) * (4 * blockDim.x) + threadIdx.x;
    for (int i = rest; i < n; i++) out[i] = threadIdx.x * x[i];
}
void f(int n, float* a, float* b) { scale<<<(n / 4 + 255) / 256, 256>>>(n, a, b); }
"""


def test_a_race_of_small_sizes_is_shown_beside_one_that_only_long_loops_could_replay() -> None:
    (report,) = check_text(Path("/k.cu"), QUARTERS).kernels
    assert report.verdict is Verdict.RACY, report.reasons
