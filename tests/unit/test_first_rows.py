"""A store to the first row beside stores to any: ``a[x]`` and ``a[y * w + x]``, where rows may be below 0."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
HEAD = "__global__ void k(float* a, const float* b, int w, int v, int h, int r) { "
HEAD += "int x = blockIdx.x * blockDim.x + threadIdx.x; "


def decided(body: str) -> SolverResult:
    return refine_kernel(lowered(HEAD + body + " }"), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "body",
    [
        "if (x < w) { a[x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < w) { a[x] = 0; for (int y = h - r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x >= w) return; float s = a[x]; for (int y = r; y < h; y++) a[y * w + x] = s;",
        "if (x >= w) return; for (int y = r; y < h; y++) { a[y * w + x] = b[y]; a[x] = b[y + 1]; }",
        "if (x < w) { a[w - 1 - x] = 0; for (int y = r; y < h; y++) a[y * w + w - 1 - x] = b[y]; }",
        "if (x < v && v <= w) { a[x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
    ],
)
def test_a_column_is_one_threads_in_every_row(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert not any("overlap" in text for text in result.assumptions)


@pytest.mark.parametrize(
    "body",
    [
        "if (x <= w) { a[x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < v) { a[2 * x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < w) { a[x + 1] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < w) { a[w - 1 - x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < 2 * w) { a[x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
        "if (x < w) { a[w + x] = 0; for (int y = r; y < h; y++) a[y * w + x / 2] = b[y]; }",
        "if (x < v && w <= v) { a[x] = 0; for (int y = r; y < h; y++) a[y * w + x] = b[y]; }",
    ],
)
def test_columns_that_others_have_too_are_not_proved(body: str) -> None:
    assert decided(body).verdict is not Verdict.RACE_FREE
