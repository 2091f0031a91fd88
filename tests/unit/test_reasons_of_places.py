"""What places are up to is the reason that is told: contents, where these say them, and time last."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* out, const float* in, const int* skipped, int length, int heads, int size) {{
    int b = {row};
    for (int i = threadIdx.x; i < heads * size; i += blockDim.x)
        out[((b / length * heads + i / size) * length + b % length) * size + i % size] = in[b * size + i];
}}
void f(float* out, const float* in, const int* skipped, int rows, int length, int heads, int size) {{
    k<<<rows, 128>>>(out, in, skipped, length, heads, size);
}}
"""


def report(row: str) -> KernelReport:
    (found,) = check_text(Path("/k.cu"), KERNEL.format(row=row), Settings(solver_budget=700)).kernels
    return found


def test_rows_that_memory_names_are_up_to_its_contents() -> None:
    found = report("blockIdx.x + skipped[blockIdx.x]")
    assert found.verdict is Verdict.UNDECIDED
    assert "`skipped`" in found.reasons[0]
    assert not any("ran out of time" in reason for reason in found.reasons), found.reasons


def test_rows_of_blocks_are_proved() -> None:
    found = report("blockIdx.x")
    assert found.verdict is Verdict.RACE_FREE, found.reasons


@pytest.mark.parametrize("row", ["blockIdx.x / 2", "blockIdx.x / 2 + skipped[blockIdx.x / 2]"])
def test_rows_that_blocks_share_are_not(row: str) -> None:
    assert report(row).verdict is not Verdict.RACE_FREE
