"""Indices taken apart by sizes and put together again, in grids that the host computes from these sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* o, const float* in, int n, int rows, int width, int pitch, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * rows * width) return;
    int x = i %% width, y = i / width %% rows, b = i / width / rows;
    %s
}
void run(float* o, const float* in, int n, int rows, int width, int pitch, int first) {
    int count = n * rows * width;
    k<<<(count + 255) / 256, 256>>>(o, in, n, rows, width, pitch, first);
}
"""

APART = [
    "o[(b * rows + y) * width + x] = i;",
    "o[(b * pitch + y) * width + x] = i;",
    "o[(b * pitch + first + y) * width + x] = i;",
    "o[x + (first + y) * width + b * pitch * width] = i;",
    "o[(b * width + x) * rows + y] = i;",
    "o[(y * n + b) * width + x] = i;",
    "o[b * pitch + y * width + x] += in[i];",
    "if (x == 0) o[(b * rows + y) * pitch + first] = i;",
    "if (x == 0) o[b * rows * pitch + y * pitch + first] = i;",
    "((float4*)o)[(b * pitch + first + y) * width + x] = ((const float4*)in)[i];",
]
OVERLAPPING = [
    "int u = i % (width + 1), v = i / (width + 1); o[v * width + u] = i;",
    "o[(b * rows + y) * (width - 1) + x] = i;",
    "int u = i % (width + 1), v = i / (width + 1); o[(b * pitch + first + v) * width + u] = i;",
    "int v = i / width % (rows + 1), c = i / width / (rows + 1); o[(c * rows + v) * width + x] = i;",
    "o[(i % rows) * width + x] = i;",
    "o[(b * width + x) * (rows - 1) + y] = i;",
    "o[(b * rows + y) * width + x / 2] = i;",
    "o[y * width + x] = i;",
    "o[(b * pitch + y) * width + y] = i;",
    "o[(b + y) * width + x] = i;",
    "if (x <= 1) o[(b * rows + y) * pitch + first] = i;",
    "if (y == 0) o[(b * rows + y) * pitch + first] = i;",
    "int h = width ? i / width : 0; o[h * pitch] = i;",
]


def verdict(body: str) -> Verdict:
    return check_text(Path("k.cu"), KERNEL % body, PATIENT).kernels[0].verdict


@pytest.mark.parametrize("body", APART)
def test_each_thread_has_its_own(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize("body", OVERLAPPING)
def test_rows_that_the_kernel_itself_makes_overlap_are_not_granted(body: str) -> None:
    assert verdict(body) is not Verdict.RACE_FREE
