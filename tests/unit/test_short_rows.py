"""A race that takes a pitch below the columns which the host counts is no accusation."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

HALVES = """__global__ void k(unsigned char* out, int pitch, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (2 * x >= width || y >= height) return;
  out[y * pitch + 2 * x] = y;
  out[pitch * ROWS + y * (pitch / 2) + x] = x;
}
void run(unsigned char* o, int p, int w, int h) {
  k<<<dim3((w + 63) / 64, (h + 7) / 8), dim3(32, 8)>>>(o, p, w, h);
}"""


@pytest.mark.parametrize(("rows", "verdict"), [("height", Verdict.UNDECIDED), ("(height - 2)", Verdict.RACY)])
def test_a_plane_behind_another_one_is_left_open_and_one_within_it_accused(
    rows: str, verdict: Verdict
) -> None:
    (report,) = check_text(Path("k.cu"), HALVES.replace("ROWS", rows)).kernels
    assert report.verdict is verdict
