"""Shared indices outside their array, and shared memory read before it is written."""

from __future__ import annotations

from kernel_notation import TID, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, LaunchConfig
from cuda_lsp.static.diagnostics.bounds import bounds_findings, uninitialised_findings
from cuda_lsp.static.execution.enumerate import execute


def run(kernel, threads=64):
    return execute(kernel, LaunchConfig((threads, 1, 1), (1, 1, 1)), {}, GpuModel("sm_80", (8, 0)))


def test_an_index_one_past_the_end_is_named() -> None:
    n = Notation()
    s = n.shared("s", 64)
    (finding,) = bounds_findings(run(n.kernel(n.write(s, TID + 1))))
    assert finding.code is Code.SHARED_OUT_OF_BOUNDS
    assert "s[64]" in finding.message and "thread 63" in finding.message


def test_an_index_inside_a_guard_is_fine() -> None:
    n = Notation()
    s = n.shared("s", 64)
    assert not bounds_findings(run(n.kernel(n.when(TID < 63, n.write(s, TID + 1)))))


def test_a_negative_index_is_out_of_bounds() -> None:
    n = Notation()
    s = n.shared("s", 64)
    assert bounds_findings(run(n.kernel(n.write(s, TID - 1))))


def test_a_read_of_what_nobody_wrote_is_named() -> None:
    n = Notation()
    s = n.shared("s", 128)
    (finding,) = uninitialised_findings(run(n.kernel(n.write(s, TID), n.sync(), n.read(s, TID + 10))))
    assert "s[64]" in finding.message


def test_what_was_written_may_be_read() -> None:
    n = Notation()
    s = n.shared("s", 128)
    assert not uninitialised_findings(run(n.kernel(n.write(s, TID), n.sync(), n.read(s, 63 - TID))))
