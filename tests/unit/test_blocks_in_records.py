"""Blocks that a record holds: the one that fits a kernel, of all that the file makes the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text

HEAD = "struct Plan { dim3 grid; dim3 block; int n; };\n"
TILES = """
__global__ void k(float* a, int w) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w) a[y * w + x] = threadIdx.x;
}
"""
ROWS = (
    "__global__ void k(float* a, int w) { int i = blockIdx.x * 128 + threadIdx.x; if (i < w) a[i] = 1.0f; }\n"
)
LAUNCH = "void f(Plan& p, float* a, int w) { k<<<p.grid, p.block>>>(a, w); }\n"
ONE_OF_TWO = """
void plan(Plan& p, int d) { if (d == 1) p.block = dim3(128); else { p.block = dim3(16, 16); p.n = 2; } }
"""


@pytest.mark.parametrize(("kernel", "block"), [(TILES, (16, 16, 1)), (ROWS, (128, 1, 1))])
def test_a_kernel_is_launched_with_the_block_of_its_dimensions(
    kernel: str, block: tuple[int, int, int]
) -> None:
    (report,) = check_text(Path("a.cu"), HEAD + kernel + ONE_OF_TWO + LAUNCH).kernels
    assert report.verdict is Verdict.RACE_FREE, report.reasons
    assert [(launch.block, launch.source) for launch in report.launches] == [(block, LaunchSource.SIZES)]


@pytest.mark.parametrize(
    "plan",
    [
        "void plan(Plan& p, int d) { if (d) p.block = dim3(32, 8); else p.block = dim3(16, 16); }",
        "void plan(Plan& p, int d) { p.block = dim3(16, 16); if (d) p.block = dim3(d, 4); }",
        "void plan(Plan& p, int d) { p.block = dim3(16, 16); if (d) p.block.x = 32; }",
        "void plan(Plan& p, int d) { p.block = dim3(16, 16); if (d) p.block.y *= 2; }",
        "void plan(Plan& p, int d) { p.block = dim3(16, 16); choose(&p.block, d); }",
        "void plan(Plan& p, Plan& q) { p.block = dim3(16, 16); p.block = q.block; }",
        "void plan(Plan& p, int d) { p.block = dim3(256); }",
    ],
)
def test_of_others_nobody_knows_which_it_is(plan: str) -> None:
    (report,) = check_text(Path("a.cu"), HEAD + TILES + plan + "\n" + LAUNCH).kernels
    assert report.verdict is Verdict.UNDECIDED


def test_a_component_is_no_field_of_a_record() -> None:
    text = f"{ROWS} void g(Vec& v) {{ v.x = 128; }} void f(Vec p, float* a, int w) {{ k<<<w, p.x>>>(a, w); }}"
    (report,) = check_text(Path("a.cu"), text).kernels
    assert report.verdict is Verdict.UNDECIDED


def test_a_block_that_is_too_large_for_the_kernel_races() -> None:
    plan = "void plan(Plan& p, int d) { p.block = dim3(32, 16); }\n"
    (report,) = check_text(Path("a.cu"), HEAD + TILES + plan + LAUNCH).kernels
    assert report.verdict is not Verdict.RACE_FREE
    assert report.launches[0].block == (32, 16, 1)
