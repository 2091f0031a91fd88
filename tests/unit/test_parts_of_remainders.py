"""Columns in tiles of 32, written in vectors: ``(x % 32) / 4`` beside ``x / 32`` is ``x / 4``."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((256, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(char4* a, int m, int n, int d) {{
    int row = blockIdx.x;
    if (row >= m || d < 1) return;
    for (int x = 4 * threadIdx.x; x < n; x += {step}) a[{index}].x = x;
}}
"""


def decided(index: str, step: str = "4 * blockDim.x") -> SolverResult:
    kernel = lowered(KERNEL.format(index=index, step=step))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("index", "step"),
    [
        ("x / 32 * 8 * m + row * 8 + x % 32 / 4", "4 * blockDim.x"),
        ("((x & 0xffffffe0) * m + (row << 5) + (x & 31)) >> 2", "4 * blockDim.x + 3"),
        ("x / (8 * d) * 2 * d * m + row * 2 * d + x % (8 * d) / 4", "4 * blockDim.x"),
    ],
)
def test_a_vector_of_a_tile_is_one_of_the_row(index: str, step: str) -> None:
    result = decided(index, step)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


ROWS = """
__global__ void k(char4* a, int m, int n) {{
    for (int x = 4 * threadIdx.x; x < n; x += {step}) a[{index}].x = x;
}}
void f(char4* a, int m, int n) {{ k<<<m, 256>>>(a, m, n); }}
"""
TILE = "((x & 0xffffffe0) * m + (blockIdx.x << 5) + (x & 31)) >> 2"


@pytest.mark.parametrize("step", ["4 * blockDim.x", "4 * blockDim.x + 3"])
def test_rows_that_the_grid_counts_are_vectors_of_tiles(step: str) -> None:
    (report,) = check_text(Path("/k.cu"), ROWS.format(step=step, index=TILE)).kernels
    assert report.verdict is Verdict.RACE_FREE, report.reasons


@pytest.mark.parametrize(
    ("index", "step"),
    [
        (TILE, "4 * blockDim.x - 1"),  # the last thread's vector, the first's next
        (TILE.replace("0xffffffe0", "0xffffffc0"), "4 * blockDim.x"),
        (TILE.replace("<< 5", "<< 4"), "4 * blockDim.x"),
    ],
)
def test_rows_that_the_grid_counts_and_that_meet_are_not(index: str, step: str) -> None:
    (report,) = check_text(Path("/k.cu"), ROWS.format(step=step, index=index)).kernels
    assert report.verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("index", "step"),
    [
        ("x / 32 * 8 * m + row * 8 + x % 32 / 8", "4 * blockDim.x"),  # two vectors of two threads
        ("x / 32 * 8 * m + row * 8 + x % 16 / 4", "4 * blockDim.x"),  # half of each tile twice
        ("x / 32 * 8 * m + row * 8 + x % 32 / 4", "4 * blockDim.x - 4"),  # the last thread, the first's next
        ("x / 64 * 8 * m + row * 8 + x % 32 / 4", "4 * blockDim.x"),  # every other tile
        ("x / 32 * 8 * m + row * 4 + x % 32 / 4", "4 * blockDim.x"),  # tiles of two rows
        ("x / (8 * d) * 2 * d * m + row * 2 * d + x % (4 * d) / 4", "4 * blockDim.x"),
    ],
)
def test_vectors_that_meet_are_not_proved(index: str, step: str) -> None:
    assert decided(index, step).verdict is not Verdict.RACE_FREE
