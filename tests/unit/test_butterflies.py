"""Numbers without their remainders are whole steps apart: what butterflies exchange, and what not."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

LAUNCH = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, unsigned n, unsigned m, unsigned size) {{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (m == 0 || n < 2 || i >= size) return;
    unsigned {place};
    {does}
}}
"""
EXCHANGE = "float t = a[p]; a[p] = a[q]; a[q] = t;"


def decided(place: str, does: str) -> SolverResult:
    return refine_kernel(lowered(KERNEL.format(place=place, does=does)), [LAUNCH], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("place", "does"),
    [
        ("p = i, q = i + n / 2", f"if (i % n < n / 2) {{ {EXCHANGE} }}"),
        ("p = i, q = i + n / 2", "if (i % n < n / 2) a[p] += a[q];"),
        ("p = i / m * m * 2 + i % m, q = p + m", EXCHANGE),
        ("p = i, q = i - m", f"if (i % (2 * m) >= m) {{ {EXCHANGE} }}"),
        ("p = i, q = i + 1", "if (i % m == 0 && m > 1) a[p] += a[q];"),
    ],
)
def test_partners_are_nobody_elses(place: str, does: str) -> None:
    result = decided(place, does)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("place", "does"),
    [
        ("p = i, q = i + n / 2", f"if (i % n <= n / 2) {{ {EXCHANGE} }}"),  # the middle one, too
        ("p = i, q = i + n / 2 + 1", f"if (i % n < n / 2) {{ {EXCHANGE} }}"),
        ("p = i, q = i + n", "if (i % n < n / 2) a[p] += a[q];"),  # the next one's
        ("p = i / m * m * 2 + i % m, q = p + m - 1", EXCHANGE),
        ("p = i / m * m + i % m, q = p + m", "a[p] += a[q];"),
        ("p = i, q = i + 1", "if (i % m == 0) a[p] += a[q];"),  # by 1 all are multiples
        ("p = i, q = i + m", "if (i % n < n / 2) a[p] += a[q];"),  # another number's half
    ],
)
def test_other_partners_may_be(place: str, does: str) -> None:
    assert decided(place, does).verdict is not Verdict.RACE_FREE
