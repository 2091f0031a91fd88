"""Barriers that all threads are proved to reach, of kernels of which something else stays open."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TABLES = """
struct Tables {{ int first[9]; int most[8]; int* out[8]; }};
__global__ void k(Tables tables, const int* asked) {{
    __shared__ int s[128];
    int table = 0;
    while (tables.first[table + 1] <= blockIdx.x) table++;
    if ({comes}) {{
        s[threadIdx.x] = tables.most[table];
        __syncthreads();
        tables.out[table][blockIdx.x * 128 + threadIdx.x] = s[127 - threadIdx.x];
    }}
}}
void go(Tables tables, const int* asked, int n) {{ k<<<n, 128>>>(tables, asked); }}
"""


def report(comes: str) -> KernelReport:
    (found,) = check_text(Path("a.cu"), TABLES.format(comes=comes), PATIENT).kernels
    return found


def divergences(found: KernelReport) -> list[str]:
    return [f.message for f in found.findings if f.code is Code.BARRIER_DIVERGENCE]


@pytest.mark.parametrize(
    "comes", ["(blockIdx.x - tables.first[table]) % 4 == 3", "asked[blockIdx.x] > tables.most[table]"]
)
def test_what_a_block_reads_alike_does_not_part_it(comes: str) -> None:
    found = report(comes)
    assert found.verdict is Verdict.UNDECIDED  # where the tables' pointers point is not known
    assert divergences(found) == []


@pytest.mark.parametrize("comes", ["asked[threadIdx.x] > 3", "tables.most[threadIdx.x % 8] > 3"])
def test_what_threads_read_for_themselves_does(comes: str) -> None:
    assert divergences(report(comes))
