"""Sectors of global requests against the ideal."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, LaunchConfig
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.coalescing import coalescing_findings, sector_reports
from cuda_lsp.static.execution.enumerate import execute


def run(kernel):
    return execute(kernel, LaunchConfig((64, 1, 1), (1, 1, 1)), {}, GpuModel("sm_80", (8, 0)))


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32), (0, 1)])
def test_sectors_of_a_strided_read(stride: int, sectors: int) -> None:
    n = Notation()
    data = n.globals("data")
    (report,) = sector_reports(run(n.kernel(n.read(data, TID * stride))))
    assert report.sectors == sectors and report.ideal == (4 if stride else 1)


def test_a_strided_write_is_reported_and_a_packed_one_is_not() -> None:
    n = Notation()
    a, b = n.globals("a"), n.globals("b")
    write = n.write(a, TID * 16)
    findings = coalescing_findings(run(n.kernel(write, n.write(b, TID))))
    assert [f.site for f in findings] == [write.site]


@pytest.mark.parametrize(
    ("guard", "told"),
    [
        (
            "true",
            "a warp needs 32 sectors of 32 bytes for in[threadIdx.x * 8] instead of 4; its lanes are",
        ),
        (
            "threadIdx.x < 8",
            "8 lanes of a warp need 8 sectors of 32 bytes for in[threadIdx.x * 8] instead of 1; they are",
        ),
    ],
)
def test_it_says_how_many_lanes_come_where_not_all_do(guard: str, told: str) -> None:
    text = (
        "__global__ void k(int* out, const int* in) {"
        f" if ({guard}) out[threadIdx.x] = in[threadIdx.x * 8]; }}\n"
        "void go(int* out, const int* in) { k<<<1, 64>>>(out, in); }"
    )
    (found,) = [f for f in check_text(Path("k.cu"), text).findings if f.code is Code.UNCOALESCED_ACCESS]
    assert told in found.message
