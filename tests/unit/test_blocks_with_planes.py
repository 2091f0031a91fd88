"""Kernels that number their threads in three dimensions, and a launch that nobody tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Dim3, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

PLANES = """BOUNDS __global__ void k(const float* in, float* out) {
  __shared__ float s[8][32];
  int x = threadIdx.x, z = threadIdx.z;
  s[z][x] = in[x + 32 * z + 256 * blockIdx.x];
  BARRIER
  out[x + 32 * z + 256 * blockIdx.x] = s[z][x] - (z > 0 ? s[z - 1][x] : 0);
}"""


def report(barrier: str, bounds: str = "") -> KernelReport:
    text = PLANES.replace("BARRIER", barrier).replace("BOUNDS", bounds)
    (found,) = check_text(Path("k.cu"), text).kernels
    return found


@pytest.mark.parametrize(
    ("barrier", "verdict"), [("__syncthreads();", Verdict.RACE_FREE), ("", Verdict.UNDECIDED)]
)
def test_the_block_is_as_deep_as_a_shared_array(barrier: str, verdict: Verdict) -> None:
    found = report(barrier)
    assert (found.launches[0].block, found.verdict) == ((32, 1, 8), verdict)


def test_a_row_of_threads_says_nothing_of_planes() -> None:
    """Threads of one plane have places of their own; those of two meet."""
    found = report("", "__launch_bounds__(48)")
    assert (found.launches[0].block, found.verdict) == ((48, 1, 1), Verdict.UNDECIDED)
    assert any("threadIdx.z is 0 in blocks of (48, 1, 1)" in reason for reason in found.reasons)


@pytest.mark.parametrize(("rows", "block"), [("threadIdx.y", (8, 8, 4)), ("0", (64, 1, 4))])
def test_the_default_block_has_planes_for_a_kernel_that_numbers_them(rows: str, block: Dim3) -> None:
    text = f"__global__ void k(int* a, int n) {{ a[(threadIdx.z * n + {rows}) * n + threadIdx.x] = 1; }}"
    (found,) = check_text(Path("k.cu"), text).kernels
    assert found.launches[0].block == block


def test_planes_of_the_grid_are_as_good_with_one_in_a_block() -> None:
    text = """__global__ void k(const float* in, float* out, int w, int h) {
  __shared__ float s[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  s[threadIdx.y][threadIdx.x] = in[y * w + x];
  __syncthreads();
  if (x < w && y < h) out[(z * h + y) * w + x] = s[threadIdx.y][threadIdx.x ^ 1];
}"""
    (found,) = check_text(Path("k.cu"), text).kernels
    assert (found.launches[0].block, found.verdict) == ((16, 16, 1), Verdict.RACE_FREE)
