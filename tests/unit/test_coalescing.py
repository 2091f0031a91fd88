"""Sectors of global requests against the ideal."""

from __future__ import annotations

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig
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
