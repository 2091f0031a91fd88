"""Components of a structure of arrays (``x[i]``, ``x[pitch + i]``) are apart, also where they are updated."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


def verdict(body: str) -> Verdict:
    text = f"""
    __global__ void k(float* x, float* y, int pitch, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      {body}
    }}
    void go(float* x, float* y, int p, int n) {{ k<<<(n + 127) / 128, 128>>>(x, y, p, n); }}
    """
    (kernel,) = check_text(Path("k.cu"), text).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) { x[i] += 1; x[pitch + i] += 2; x[2 * pitch + i] += y[i]; }",
        "if (i < n) { float a = x[i], b = x[i + pitch]; x[i] = a + b; x[i + pitch] = a - b; }",
        "if (i < n) { x[2 * i] += 1; x[2 * i + 1] += 2; x[2 * pitch + i] += 3; }",
        "if (i < n) { float2 v = ((float2*)x)[i]; v.x += 1; ((float2*)x)[i] = v; x[2 * pitch + i] += 1; }",
        "if (i < n) { x[i] = y[i]; x[pitch + i] *= x[i]; }",
        "if (i < n) for (int c = 0; c < 3; ++c) x[c * pitch + i] += y[i];",
    ],
)
def test_components_that_are_updated_do_not_overlap(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) x[i] += x[i + pitch];",  # a neighbour's element, which only its own thread stores
        "if (i < n) x[i + pitch] += x[i];",
        "if (i < n) { x[i] = y[i]; x[i] += x[i + pitch]; }",
        "if (i <= pitch) { x[i] += 1; x[pitch + i] += 2; }",  # one too many
        "if (i < n) { x[i] += 1; x[pitch + i] += x[i + 1]; }",
        "if (i < n) { x[i] += 1; x[pitch + i / 2] += 2; }",
        "if (i < n) { x[i] += 1; x[i + 1] += 2; }",
        "if (i < n) { x[i] += 1; if (n > 5) x[i + pitch] = 0; y[i] = x[2 * pitch + i]; y[i + 1] += 1; }",
    ],
)
def test_what_only_one_of_them_stores_may_be_a_neighbours(body: str) -> None:
    assert verdict(body) is Verdict.RACY
