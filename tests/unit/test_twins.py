"""Blocks that do the same where others are: told however hard their addresses are, where they race."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Status, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((32, 8, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, int pitch, int rows, int images) {{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = rows * 3 / 2;
    float* p = a + y * pitch + x;
    if (x >= pitch || y >= rows) return;
    for (int i = blockIdx.z; i < images; i += gridDim.z) {{
        {store}
    }}
}}
"""


def decided(store: str, launch: LaunchConfig = LAUNCH) -> SolverResult:
    kernel = lowered(KERNEL.format(store=store))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)), Budget(kernel=0.5))


@pytest.mark.parametrize(
    "store",
    [
        "*p = i; p += pitch * plane;",  # every block along z begins with the first image
        "p[x / rows * plane % pitch] = i;",
        "if (blockIdx.z < 3) *p = i;",
        "if (blockIdx.z != images / 2) *p = i;",
    ],
)
def test_blocks_that_begin_at_one_image_race(store: str) -> None:
    result = decided(store)
    assert result.verdict is Verdict.RACY, result.reasons
    certain = [f for f in result.findings if f.certain]
    assert certain and all(f.status is Status.CONDITIONAL for f in certain)
    blocks = [f.witness.blocks for f in certain if f.witness is not None and f.witness.blocks is not None]
    assert any(first[:2] == second[:2] and first[2] != second[2] for first, second in blocks)


@pytest.mark.parametrize(
    "store",
    [
        "if (blockIdx.z == 0) p[0] = i;",
        "if (i == 0) *p = blockIdx.z;",
        "if (i == images - 1) *p = i;",
        "a[(i * rows + y) * pitch + x] = i;",
    ],
)
def test_blocks_of_which_one_comes_by_do_not(store: str) -> None:
    assert decided(store).verdict is not Verdict.RACY


def test_one_block_along_an_axis_has_no_twin() -> None:
    one = LaunchConfig((32, 8, 1), (4, 4, 1), source=LaunchSource.FILE)
    assert decided("*p = i; p += pitch * plane;", one).verdict is not Verdict.RACY
