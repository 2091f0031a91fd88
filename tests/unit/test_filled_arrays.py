"""Arrays of the thread's own that loops fill, and addresses that are read from them."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* out, const int* in, int n, int which) {{
    int a[4] = {{0, 1, 2, 3}};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {fill}
    for (int j = 0; j < 4; ++j) {{ {read} }}
}}
"""
READ = "out[i + a[j]] = 1;"


def decided(fill: str, read: str = READ) -> SolverResult:
    source = KERNEL.format(fill=fill, read=read)
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("fill", "read"),
    [
        ("for (int j = 0; j < 4; j++) a[j] = j * gridDim.x * blockDim.x;", READ),
        ("for (int j = 0; j < 3; j++) a[j + 1] = j * gridDim.x * blockDim.x;",
         "if (j > 0) out[i + a[j]] = 1;"),
        ("for (int j = 0; j < 8; j++) a[j % 4] = 1; for (int j = 0; j < 4; j++) a[j] = 0;",
         "out[4 * i + j + a[j]] = 1;"),
        ("for (int j = 0; j < 4; j++) a[j] = j;", "out[4 * i + a[3 - j]] = 1;"),
    ],
)  # fmt: skip
def test_what_a_loop_stores_is_read_back(fill: str, read: str) -> None:
    result = decided(fill, read)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("fill", "read"),
    [
        ("for (int j = 0; j < 4; j++) a[j] = j;", READ),
        ("for (int j = 0; j < 3; j++) a[j] = j * gridDim.x * blockDim.x;", READ),  # the last one is 3
        ("for (int j = 0; j < 4; j++) a[j] = j * gridDim.x * blockDim.x; a[which] = 1;", READ),
        ("for (int j = 0; j < 4; j++) { a[j] = j * gridDim.x * blockDim.x; if (in[j]) a[0] = 1; }", READ),
        ("for (int j = 0; j < 4; j++) if (in[j]) a[j] = j * gridDim.x * blockDim.x;", READ),
        ("for (int j = 0; j < 4; j++) { if (in[j]) break; a[j] = j * gridDim.x * blockDim.x; }", READ),
        ("for (int j = 0; j < which; j++) a[j] = j * gridDim.x * blockDim.x;", READ),
        ("for (int j = 0; j < 4; j++) a[j] = j * gridDim.x * blockDim.x; if (in[0]) a[1] = 1;", READ),
        ("for (int r = 0; r < 2; r++) { if (r) a[1] = 1; else for (int j = 0; j < 4; j++) a[j] = "
         "j * gridDim.x * blockDim.x; }", READ),
        ("for (int j = 0; j < 4; j++) a[j / 2 * 2] = j * gridDim.x * blockDim.x;", READ),
    ],
)  # fmt: skip
def test_an_element_that_something_else_may_hold_is_not_known(fill: str, read: str) -> None:
    assert decided(fill, read).verdict is not Verdict.RACE_FREE
