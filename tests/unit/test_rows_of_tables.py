"""Rows in the objects that a table of pointers leads to: a batch of images, of matrices."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

BATCH = """
struct Plane { int width, height; float* base; };
__global__ void fill(TABLE, int pitch, int columns, int rows) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x < columns && y < rows) BASE[AT] = x + threadIdx.y;
}
void run(TABLE, int pitch, int columns, int rows, int n) {
  dim3 block(32, 8), grid((columns + 31) / 32, (rows + 7) / 8, n);
  fill<<<grid, block>>>(t, pitch, columns, rows);
}
"""


@pytest.mark.parametrize(
    ("table", "base"), [("float** t", "t[z]"), ("const Plane* t", "t[z].base"), ("float** t", "t[z + 1]")]
)
@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        ("y * pitch + x", Verdict.RACE_FREE),
        ("y * pitch + x / 2", Verdict.RACY),
        ("y / 2 * pitch + x", Verdict.RACY),
        ("x", Verdict.RACY),
    ],
)
def test_rows_of_one_object_do_not_overlap(table: str, base: str, at: str, verdict: Verdict) -> None:
    text = BATCH.replace("TABLE", table).replace("BASE", base).replace("AT", at)
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [verdict]


@pytest.mark.parametrize("base", ["t[z / 2]", "t[0]"])
def test_blocks_of_one_object_are_not_told_apart(base: str) -> None:
    text = BATCH.replace("TABLE", "float** t").replace("BASE", base).replace("AT", "y * pitch + x")
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [Verdict.RACY]
