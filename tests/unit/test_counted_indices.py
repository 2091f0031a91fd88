"""Digits of one index that a count of all elements bounds: the top one stays within its row of the output."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.answer import Budget
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)

TEXT = """
__global__ void k(float* out, const float* in, int a, int b, int c, int d, int n) {{
    {stated}
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ({guard}) return;
    int x = i % a, y = i / a % b, z = i / (a * b) % c, t = i / (a * b * c);
    {body}
}}
"""


def checked(body: str, guard: str = "i >= n", stated: str = "") -> SolverResult:
    source = TEXT.format(body=body, guard=guard, stated=stated)
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=0.15, query=0.05))


@pytest.mark.parametrize(
    "body",
    [
        "out[((y * d + t) * c + z) * a + x] = in[i];",
        "out[((z * b + y) * d + t) * a + x] = in[i];",
        "out[(y * d + t) * a * c + x * c + z] = in[i];",
    ],
)
def test_the_top_digit_lies_in_its_row(body: str) -> None:
    result = checked(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "rows of `d` elements do not overlap" in result.assumptions


@pytest.mark.parametrize(
    ("body", "guard", "stated"),
    [
        ("out[((y * d + t) * c + z) * a] = in[i];", "i >= n", ""),  # a digit is missing
        ("out[((y * d + t) * c + z) * a + x / 2] = in[i];", "i >= n", ""),
        ("out[((y * d + t) * c + z) * a + x] = in[i];", "i >= n", "if (n <= 2 * d) return;"),
        ("out[((y * d + t) * c + z) * a + x] = in[i];", "i >= a * b * c * (d + 1)", ""),  # a row too long
        ("out[((y * 4 + t) * c + z) * a + x] = in[i];", "i >= n", ""),  # of a number
    ],
)
def test_rows_that_are_too_short_are_not_granted(body: str, guard: str, stated: str) -> None:
    assert checked(body, guard, stated).verdict is not Verdict.RACE_FREE
