"""Columns of threads differ: in whichever rows they are, nothing more need be known of these."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
ROWS = """
__global__ void k(float* g, int pitch, int first, int last, int m, int q) {{
    int column = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (column < last)
        for (int n = 0; n <= m; ++n)
            for (int j = 0; j < q * q - 1; ++j) g[{index}] = n;
}}
"""


def decided(index: str) -> SolverResult:
    return refine_kernel(lowered(ROWS.format(index=index)), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "index",
    [
        "pitch * (n * (q * q - 1) + j) + column",
        "pitch * (n * q * q - j) + column - first",
        "pitch * (n ^ j) + column",
    ],
)
def test_rows_of_several_sizes_need_not_be_told_apart(index: str) -> None:
    result = decided(index)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "rows of `pitch` elements do not overlap" in result.assumptions


@pytest.mark.parametrize(
    "index",
    [
        "pitch * (n * (q * q - 1) + j) + column / 2",
        "pitch * (n * (q * q - 1) + j) + column + j",  # which leave their rows, or meet in them
        "pitch * (n * (q * q - 1) + j) + last - 1 - column + n",
    ],
)
def test_columns_that_meet_do_so_in_every_row(index: str) -> None:
    assert decided(index).verdict is not Verdict.RACE_FREE


MIXED_UP = """
__global__ void k(float* out, int heads, int rows) {{
    int y = blockIdx.y, r = blockIdx.x, h = threadIdx.x;
    if (r < rows && h < heads) out[{index}] = r;
}}
"""


@pytest.mark.parametrize(
    ("index", "free"),
    [
        ("(y * rows + r) * heads + h", True),
        ("(y * heads + r) * rows + h", False),  # rows and columns mixed up
        ("(y * rows + h) * heads + r", False),
    ],
)
def test_a_plane_holds_more_than_a_part_of_one_row(index: str, free: bool) -> None:
    result = refine_kernel(lowered(MIXED_UP.format(index=index)), [LAUNCH], GpuModel("test", (9, 0)))
    assert (result.verdict is Verdict.RACE_FREE) is free, result.assumptions
