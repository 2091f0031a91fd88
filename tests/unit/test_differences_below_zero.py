"""Differences of unsigned sizes: a race that needs one to wrap is for arguments that nobody passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Status
from cuda_lsp.static.analyze import check_text


def statuses(body: str) -> set[Status]:
    text = (
        "__global__ void k(unsigned low, unsigned high, unsigned n, unsigned* a) {\n"
        f"  unsigned i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
        "void go(unsigned* r, unsigned n, unsigned* a) { k<<<42, 512>>>(r[0], r[1], n, a); }\n"
    )
    (report,) = check_text(Path("k.cu"), text).kernels
    return {f.status for f in report.findings if f.kind}


PARTS = (
    "unsigned first = low * 64, mid = (high - low + 1) * 64;"
    " for (unsigned j = i; j < first / 4; j += gridDim.x * blockDim.x) a[j] = i;"
    " for (unsigned j = (first + mid) / 4 + i; j < n / 4; j += gridDim.x * blockDim.x) a[j] = 2 * i;"
)


def test_parts_of_an_array_that_overlap_only_backwards_are_no_accusation() -> None:
    assert statuses(PARTS) <= {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "unsigned m = high - low; if (i < m) a[i / (m / 2 + 1)] = i;",
        "unsigned m = high - low; if (low > high) a[(i + m) % 7] = i;",
        PARTS.replace("(first + mid) / 4", "first / 8"),
    ],
)
def test_what_races_for_other_sizes_is_told(body: str) -> None:
    assert Status.CONDITIONAL in statuses(body)


LEFT = """
__global__ void k(int* t, int n) {
    size_t first = blockIdx.x * 32, out = first + blockIdx.y * n, next = gridDim.y * n STEP;
    if (threadIdx.x < min(32, static_cast<int>(n - first))) {
        t[out + threadIdx.x] = threadIdx.x;
        t[next + out + threadIdx.x] = 2;
    }
}
void run(int* t, int n, dim3 grid) { k<<<GRID, 256>>>(t, n); }
"""


@pytest.mark.parametrize(
    ("step", "grid", "told"),
    [
        ("", "grid", False),  # all threads of a block behind the end store
        ("- 1", "grid", True),
        ("", "dim3(64, 4)", True),  # there are some
        ("", "dim3((n + 31) / 32, 4)", False),
    ],
)
def test_a_block_behind_the_end_is_no_accusation_where_no_grid_is_known(
    step: str, grid: str, told: bool
) -> None:
    text = LEFT.replace("STEP", step).replace("GRID", grid)
    (report,) = check_text(Path("k.cu"), text).kernels
    sure = {f.status for f in report.findings if f.kind} - {Status.POSSIBLE}
    assert bool(sure) is told, report.findings
