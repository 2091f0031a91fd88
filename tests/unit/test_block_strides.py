"""Kernels that nothing launches: the block that their own indices count on is a plausible one."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import PATIENT
from cuda_lsp.model import FileReport, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
__global__ void rows_of_64(int* o) { o[blockIdx.x * 64 + threadIdx.x] = threadIdx.x; }
__global__ void shifted(int* o) { int block = blockIdx.x; o[(block << 7) + threadIdx.x] = threadIdx.x; }
__global__ void tiles(int* o, int n) {
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  o[y * n + x] = x;
}
__global__ void batches(int* o, int width, int n) {
  int batch = blockIdx.x / n, x = 16 * (blockIdx.x - batch * n) + threadIdx.x;
  int y = 16 * (blockIdx.y + blockIdx.z * gridDim.y) + threadIdx.y;
  if (x < width) o[(batch * 4096 + y) * width + x] = x;
}
__global__ void rows_of_3(int* o) { o[blockIdx.x * 3 + threadIdx.x] = threadIdx.x; }
__global__ void backwards(int* o) {
  __shared__ int s[256];
  int t = threadIdx.y * 16 + threadIdx.x;
  s[t] = t;
  o[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = s[255 - t];
}
"""


def kernels() -> dict[str, KernelReport]:
    report: FileReport = check_text(Path("k.cu"), TEXT, PATIENT)
    return {kernel.name: kernel for kernel in report.kernels}


def test_the_indices_of_a_kernel_tell_its_block() -> None:
    found = kernels()
    blocks = {name: found[name].launches[0].block for name in ("rows_of_64", "shifted", "tiles", "batches")}
    assert blocks.pop("batches") == (16, 16, 1)
    assert blocks == {"rows_of_64": (64, 1, 1), "shifted": (128, 1, 1), "tiles": (8, 8, 1)}
    assert {found[name].verdict for name in blocks} == {Verdict.RACE_FREE}


def test_an_extent_that_blocks_seldom_have_only_casts_doubt() -> None:
    found = kernels()["rows_of_3"]
    assert found.verdict is Verdict.UNDECIDED


def test_rows_counted_from_their_end_are_not_taken_to_lie_apart() -> None:
    assert kernels()["backwards"].verdict is not Verdict.RACE_FREE
