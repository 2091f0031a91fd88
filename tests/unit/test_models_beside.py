"""What a race needs of sizes that are multiplied: told within a small budget, and told as before."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Status, Verdict
from cuda_lsp.static.findings.conditions import Compared, Example
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((256, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, int n, int h, int w) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.y >= {blocks}) return;
    for (int b = 0; b < n; b++)
        for (int r = 0; r < h; r++)
            if (x < w) a[{index}] = b + threadIdx.x;
}}
"""


def decided(blocks: str, index: str) -> SolverResult:
    kernel = lowered(KERNEL.format(blocks=blocks, index=index))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=1.0))


@pytest.mark.parametrize("blocks", ["n * h", "n * h + 1"])
def test_blocks_that_do_the_same_race_within_a_small_budget(blocks: str) -> None:
    result = decided(blocks, "(b * h + r) * w + x")
    assert result.verdict is Verdict.RACY, result.reasons
    (finding,) = result.findings
    assert finding.status is Status.CONDITIONAL
    assert all(isinstance(c, Compared | Example) for c in finding.conditions)
    arguments = finding.witness.arguments if finding.witness is not None else {}
    assert min(arguments.values()) >= 1


@pytest.mark.parametrize(
    ("blocks", "index"),
    [
        ("n * h", "((blockIdx.y * n + b) * h + r) * w + x"),
        ("1", "(b * h + r) * w + x"),
        ("min(n * h, 1)", "(b * h + r) * w + x"),
    ],
)
def test_blocks_with_elements_of_their_own_do_not(blocks: str, index: str) -> None:
    assert decided(blocks, index).verdict is Verdict.RACE_FREE
