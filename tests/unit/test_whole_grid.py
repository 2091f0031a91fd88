"""Kernels that number the threads of the whole grid, whatever its shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.config import PATIENT
from cuda_lsp.ir.program import Axis, Builtin
from cuda_lsp.ir.walk import expressions, subexpressions
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.symbolic import whole_grid

CG = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
SCALE = (
    CG
    + """
__device__ void scale(float* y, int n, const cg::grid_group& grid) {
    for (int i = grid.thread_rank(); i < n; i += STEP) y[i + MORE] *= 2.0f;
}
__global__ void k(float* y, int n) { scale(y, n, cg::this_grid()); }
"""
)


def verdict(step: str, more: str = "0") -> Verdict:
    text = SCALE.replace("STEP", step).replace("MORE", more)
    return check_text(Path("k.cu"), text, PATIENT).kernels[0].verdict


def test_strides_of_the_whole_grid_keep_threads_apart():
    assert verdict("grid.size()") is Verdict.RACE_FREE
    assert verdict("grid.num_threads()") is Verdict.RACE_FREE


@pytest.mark.parametrize(("step", "more"), [("grid.size() - 1", "0"), ("grid.size()", "(i & 1)")])
def test_other_strides_do_not(step: str, more: str):
    assert verdict(step, more) is not Verdict.RACE_FREE


def axes(body: str) -> set[Axis]:
    kernel = lowered(f"{CG} __global__ void k(int* a) {{ cg::grid_group grid = cg::this_grid(); {body} }}")
    parts = subexpressions(whole_grid.without_line(list(expressions(kernel.body))))
    return {e.axis for e in parts if isinstance(e, Builtin)}


def test_a_grid_that_is_only_numbered_is_a_line():
    found = axes("a[grid.thread_rank()] = grid.size();")
    assert {Axis.BID_X, Axis.GDIM_X} <= found and not found & {Axis.BID_Y, Axis.GDIM_Y, Axis.GDIM_Z}


def test_a_coordinate_besides_shows_its_shape():
    assert Axis.BID_Z in axes("a[grid.thread_rank()] = blockIdx.x;")
    text = f"{CG} __global__ void k(int* a) {{ a[blockIdx.x] = cg::this_grid().size(); }}"
    assert check_text(Path("k.cu"), text, PATIENT).kernels[0].verdict is not (Verdict.RACE_FREE)
