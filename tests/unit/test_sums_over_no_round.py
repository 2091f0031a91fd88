"""Addresses summed over as many axes as an argument says: that there may be none of them is no race."""

from __future__ import annotations

from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Status, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
SUMMED = """
__global__ void k(float* out, const int* strides, int n, int axes) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int rest = i, at = 0;
    for (int d = 0; d < axes; ++d) {{ at += strides[d] * (rest % 8); rest /= 8; }}
    {store}
}}
"""


def of(store: str) -> SolverResult:
    return refine_kernel(lowered(SUMMED.format(store=store)), [LAUNCH], GpuModel("test", (9, 0)))


def test_the_strides_decide_where_each_thread_has_its_sum() -> None:
    result = of("out[at] = i;")
    assert result.verdict is Verdict.UNDECIDED
    assert {f.status for f in result.findings} <= {Status.POSSIBLE}


def test_what_needs_no_sum_races_for_all_strides() -> None:
    result = of("out[i / 2] = i;")
    assert Status.CONDITIONAL in {f.status for f in result.findings}


def test_what_an_argument_switches_off_races_without_it() -> None:
    """A flag is no bound of a loop."""
    result = of("if (axes == 0) out[0] = i; else out[i] = i;")
    assert Status.CONDITIONAL in {f.status for f in result.findings}
