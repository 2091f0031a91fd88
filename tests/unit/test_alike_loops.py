"""Pairs that differ in conditions on data and in names of counters are one question; others are not."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, const int* flag, int count, int width, int height) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= count) return;
    {loops}
}}
"""
LOOP = "if (flag[x] == {i}) for (int c = 0; c < width; c++) a[(c + {shift}) * height + x] = {i};"


def decided(loops: list[str]) -> SolverResult:
    return refine_kernel(lowered(KERNEL.format(loops="\n".join(loops))), [LAUNCH], GpuModel("test", (9, 0)))


def test_loops_that_do_the_same_are_asked_once() -> None:
    two, six = (decided([LOOP.format(i=i, shift=0) for i in range(n)]) for n in (2, 6))
    assert two.verdict is six.verdict is Verdict.RACE_FREE
    assert two.assumptions == six.assumptions
    assert six.stats.queries <= two.stats.queries + 4
    assert six.stats.pairs > 4 * two.stats.pairs


@pytest.mark.parametrize(
    "other",
    [
        "if (flag[x] == 9) for (int c = 0; c < width; c++) a[c * height + x + 1] = 9;",  # the next one's
        "if (flag[x] == 9) for (int c = 0; c < width; c++) a[c * height] = 9;",  # each in column 0
        "if (flag[x] == 9) for (int c = 0; c < width; c++) a[x] += a[c];",
        "if (flag[x] == 9) for (int c = 0; c < x; c++) a[c + 1] = 9;",
    ],
)
def test_one_that_does_something_else_is_not_taken_for_one_of_them(other: str) -> None:
    result = decided([*(LOOP.format(i=i, shift=0) for i in range(3)), other])
    assert result.verdict is not Verdict.RACE_FREE


def test_two_counters_of_one_pair_do_not_become_one() -> None:
    """Threads meet where ``c`` and ``d`` differ, and nowhere else."""
    nest = "if (flag[x] == {i}) for (int c = 0; c < width; c++) for (int d = 0; d < width; d++) {does}"
    loops = [
        nest.format(i=0, does="if (c == d) a[(c * width + d) * height + x] = 0;"),
        nest.format(i=1, does="a[(c * width + d) * height + (c == d ? x : x / 2)] = 1;"),
    ]
    assert decided(loops).verdict is not Verdict.RACE_FREE
