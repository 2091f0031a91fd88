"""Copies of a thread's coordinates: of ``blockIdx`` in a variable the axes count that are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

COPY = "dim3 b = blockIdx, t = threadIdx;"
GROUP = "auto g = cooperative_groups::this_thread_block(); dim3 b = g.group_index(), t = g.thread_index();"
KERNEL = """#include <cooperative_groups.h>
__global__ void k(unsigned* out, int w, int h) {{
    {before}
    unsigned x = b.x * 16 + t.x, y = b.y * 16 + t.y;
    if (x < w && y < h) out[w * y + x] = {stored};
}}
"""


def verdict(before: str, stored: str = "x") -> Verdict:
    (report,) = check_text(Path("a.cu"), KERNEL.format(before=before, stored=stored), PATIENT).kernels
    return report.verdict


@pytest.mark.parametrize("before", [COPY, GROUP])
def test_an_axis_that_is_copied_and_not_read_tells_no_blocks_apart(before: str) -> None:
    assert verdict(before) is Verdict.RACE_FREE


@pytest.mark.parametrize("before", [COPY, GROUP])
def test_one_that_is_read_does(before: str) -> None:
    assert verdict(before, "b.z") is not Verdict.RACE_FREE


def test_so_does_one_that_is_stored_within_a_record() -> None:
    text = (
        KERNEL.format(before=COPY, stored="x")
        .replace("unsigned* out", "uint3* out")
        .replace("= x", "= blockIdx")
    )
    (report,) = check_text(Path("a.cu"), text, PATIENT).kernels
    assert report.verdict is not Verdict.RACE_FREE
