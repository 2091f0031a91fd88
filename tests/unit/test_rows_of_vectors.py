"""Rows that are counted in elements and accessed in vectors: ``out[(row * pitch + 2 * i) / 2]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float2* out, const float2* in, LONG rows, LONG cols, LONG pitch) {
  for (LONG row = blockIdx.x; row < rows; row += gridDim.x)
    for (int i = threadIdx.x; LIMIT; i += 128) {
      LONG at = INDEX;
      out[at] = in[at];
    }
}
void f(float2* out, const float2* in, LONG rows, LONG cols, LONG pitch) {
  k<<<256, 128>>>(out, in, rows, cols, pitch);
}
"""


@pytest.mark.parametrize("type_", ["long", "unsigned"])
@pytest.mark.parametrize(
    ("limit", "index", "verdict"),
    [
        ("i < cols / 2", "(row * pitch + 2 * i) / 2", "race-free"),
        ("2 * i < cols", "(row * pitch + 2 * i) / 2", "race-free"),
        ("i < cols / 4", "(row * pitch + 4 * i) / 4", "race-free"),
        ("i < cols / 4", "(row * pitch + 4 * i) / 2", "race-free"),
        ("i < cols / 2", "(row * cols + 2 * i) / 2", "race-free"),
        ("i < cols / 2", "(row * pitch + 2 * i) / 4", "racy"),
        ("i < cols / 2", "(row * pitch + i) / 2", "racy"),
        ("i <= pitch / 2", "(row * pitch + 2 * i) / 2", "racy"),
        ("i < cols", "(row * cols + 2 * i) / 2", "racy"),
        ("i < cols / 2", "(2 * i - 3 + row * 0) / 2 + 8", "racy"),
    ],
)
def test_vectors_of_rows_are_apart(type_: str, limit: str, index: str, verdict: str) -> None:
    text = KERNEL.replace("LONG", type_).replace("LIMIT", limit).replace("INDEX", index)
    (kernel,) = check_text(Path("a.cu"), text).kernels
    told = kernel.verdict is Verdict(verdict)
    # Of unsigned numbers that wrap nothing is proved.
    assert told or (type_ == "unsigned" and kernel.verdict is not Verdict.RACE_FREE), kernel.reasons
