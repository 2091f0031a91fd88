"""Kernels that the source launches in many ways: all of them count, and what is not looked at is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, LaunchConfig, Verdict
from cuda_lsp.static import budgets
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.launches.alike import left_out, looked_at

KERNEL = """
__global__ void k(float* out, int n) {{
    __shared__ float s[64];
    s[threadIdx.x % {meet}] = n + threadIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x % {meet}];
}}
void go(float* out, int n, int h) {{ {launches} }}
"""


def report(launches: str, meet: int = 64) -> KernelReport:
    (found,) = check_text(Path("a.cu"), KERNEL.format(launches=launches, meet=meet), PATIENT).kernels
    return found


def launched(*configurations: str) -> str:
    return " ".join(f"k<<<{configuration}>>>(out, n);" for configuration in configurations)


SMALL = tuple(f"n, {threads}" for threads in range(1, budgets.MOST_LAUNCHES + 2))


def test_the_largest_block_is_looked_at_however_many_there_are() -> None:
    found = report(launched(*SMALL, "n, 64"), meet=40)
    assert found.verdict is Verdict.RACY
    assert "2 more blocks that the source launches are not looked at" in found.reasons


def test_what_holds_in_every_block_holds_in_those_that_are_not_looked_at() -> None:
    told = (*SMALL, "n, 64", "n, 60", "n, 50")
    assert report(launched(*told)).verdict is Verdict.RACE_FREE


def test_a_block_that_is_not_looked_at_keeps_a_kernel_undecided() -> None:
    blocks = [f"n, dim3({n}, {n})" for n in range(1, budgets.MOST_LAUNCHES + 3)]
    found = report(launched(*blocks, "n, dim3(1, 512)"), meet=64)
    assert found.verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(("grids", "free"), [(("n, 2", "n, 2"), True), (("n, h", "n, 2"), False)])
@pytest.mark.parametrize("turned", [False, True])
def test_launches_that_know_more_of_their_grid_do_not_stand_for_others(
    grids: tuple[str, str], free: bool, turned: bool
) -> None:
    text = "__global__ void k(float* out, int n) { out[2 * blockIdx.x + blockIdx.y % 2] = blockIdx.y; }\n"
    told = [f"k<<<dim3({grid}), 1>>>(out, n);" for grid in (grids[::-1] if turned else grids)]
    text += f"void go(float* out, int n, int h) {{ {' '.join(told)} }}"
    (found,) = check_text(Path("a.cu"), text, PATIENT).kernels
    assert (found.verdict is Verdict.RACE_FREE) is free


def test_launches_of_one_block_are_taken_together_where_they_are_many() -> None:
    told = [LaunchConfig((32, 1, 1), (n, 1, 1), arguments={"n": n, "m": 3}) for n in range(1, 20)]
    told.append(LaunchConfig((64, 1, 1), (4, 1, 1)))
    together, other = looked_at(told)
    assert (together.block, together.grid, together.grid_axes) == ((32, 1, 1), None, (None, 1, 1))
    assert together.arguments == {"m": 3}
    assert (other, left_out(told, (together, other))) == (told[-1], ())
