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
