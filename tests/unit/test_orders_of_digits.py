"""Addresses of many digits: which of them stands above which is found with little work."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((256, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, int n, int rows, int heads) {{
    int first = 4 * (blockIdx.x * 8 + threadIdx.x / 32), lane = threadIdx.x % 32;
    if (first >= n || lane >= {lanes}) return;
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < heads; h++) a[{index}] = r + h;
}}
"""
LITTLE = Budget(kernel=0.2)


def decided(index: str, lanes: int = 4) -> SolverResult:
    kernel = lowered(KERNEL.format(index=index, lanes=lanes))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)), LITTLE)


@pytest.mark.parametrize(
    "index",
    [
        "((blockIdx.y * rows + r) * heads + h) * (n + 4) + first + lane",
    ],
)
def test_digits_in_any_order_are_told_apart_within_a_small_budget(index: str) -> None:
    result = decided(index)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("index", "lanes"),
    [
        ("((blockIdx.y * heads + h) * rows + r) * (n + 4) + first + lane", 5),  # the next warp's first
        ("((blockIdx.y * heads + h) * rows + r) * n + first + lane - n", 32),
        ("((blockIdx.y * heads + h) * rows + r) * (n + 4) + first + lane / 2", 4),  # two lanes, one element
        ("((blockIdx.y / 2 * heads + h) * rows + r) * (n + 4) + first + lane", 4),  # two blocks, one plane
    ],
)
def test_digits_that_overlap_are_not(index: str, lanes: int) -> None:
    assert decided(index, lanes).verdict is not Verdict.RACE_FREE
