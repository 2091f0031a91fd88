"""Columns in tiles of 32, written in vectors: ``(x % 32) / 4`` beside ``x / 32`` is ``x / 4``."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
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
