"""Rows that are counted in elements and accessed in vectors: ``out[(row * pitch + 2 * i) / 2]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
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


PACKED = """
__global__ void k(float* out, const float* in, int w, int pitch, int wide, int n) {
  int row = blockIdx.x;
  for (int t = threadIdx.x; 4 * t < w; t += 128) {
    READ
    float* at = out + row * (w / 2) + 2 * t;
    at[0] = v.x + v.y;
    at[1] = v.z + v.w;
  }
}
void f(float* out, const float* in, int w, int pitch, int wide, int n) {
  k<<<n, 128>>>(out, in, w, pitch, wide, n);
}
"""
IN_VECTORS = "float4 v = *(const float4*)(in + row * w + 4 * t);"
NOTHING = "float4 v = make_float4(1, 2, 3, 4);"
WHOLE = "`w` is a multiple of 2"


def packed(read: str, old: str = "", new: str = "") -> KernelReport:
    text = PACKED.replace("READ", read).replace(old, new) if old else PACKED.replace("READ", read)
    (kernel,) = check_text(Path("a.cu"), text).kernels
    return kernel


def test_a_size_of_which_the_gpu_takes_multiples_alone_is_one() -> None:
    kernel = packed(IN_VECTORS)
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons
    assert WHOLE in kernel.assumptions


@pytest.mark.parametrize(
    "read",
    [
        NOTHING,
        "const float* i = in + row * w + 4 * t; float4 v = make_float4(i[0], i[1], i[2], i[3]);",
        "float4 v = *(const float4*)(in + row * pitch + 4 * t);",  # rows of another size
        "float4 v; if (wide) v = *(const float4*)(in + row * w + 4 * t);",  # where somebody looks at it
        "float2 v2 = *(const float2*)(in + 2 * (row * w + 4 * t)); float4 v = make_float4(v2.x, v2.y, 0, 0);",
    ],
)
def test_not_where_it_takes_others(read: str) -> None:
    kernel = packed(read)
    assert kernel.verdict is not Verdict.RACE_FREE
    assert WHOLE not in kernel.assumptions


@pytest.mark.parametrize(
    ("old", "new"),
    [("2 * t;", "t;"), ("row * (w / 2)", "row * (w / 4)"), ("at[1]", "at[2]"), ("4 * t < w", "4 * t <= w")],
)
def test_what_meets_in_whole_vectors_does(old: str, new: str) -> None:
    assert packed(IN_VECTORS, old, new).verdict is not Verdict.RACE_FREE
