"""Barriers some threads miss, and barriers that order nothing."""

from __future__ import annotations

from kernel_notation import TID, E, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.types import INT32
from cuda_lsp.model import LaunchConfig, Status
from cuda_lsp.static.diagnostics.barriers import barrier_findings, redundant_barriers
from cuda_lsp.static.execution.enumerate import execute

GPU = GpuModel("sm_80", (8, 0))


def run(kernel, threads=64):
    return execute(kernel, LaunchConfig((threads, 1, 1), (1, 1, 1)), {}, GPU)


def test_a_barrier_under_a_thread_dependent_condition_diverges() -> None:
    n = Notation()
    (finding,) = barrier_findings(run(n.kernel(n.when(TID < 32, n.sync()))))
    assert finding.status is Status.PROVED
    assert "thread 0 reaches it, thread 32 does not" in finding.message


def test_a_barrier_after_a_partial_return_diverges() -> None:
    n = Notation()
    (finding,) = barrier_findings(run(n.kernel(n.leave_if(TID > 40), n.sync())))
    assert "has returned" in finding.message


def test_a_return_of_all_threads_does_not() -> None:
    n = Notation()
    assert not barrier_findings(run(n.kernel(n.leave_if(TID >= 64), n.sync())))


def test_a_condition_that_is_data_may_diverge() -> None:
    n = Notation()
    data, flag = n.globals("data", INT32), n.var("flag")
    kernel = n.kernel(n.read(data, TID, flag), n.when(E(flag) > 0, n.sync()))
    (finding,) = barrier_findings(run(kernel))
    assert finding.status is Status.POSSIBLE and finding.reason


def test_a_flag_broadcast_through_shared_memory_does_not_diverge() -> None:
    n = Notation()
    data, s = n.globals("data", INT32), n.shared("s", 1, element=INT32)
    own, flag = n.var("own"), n.var("flag")
    leader = n.when(TID.eq(0), n.read(data, 0, own), n.write(s, 0, own))
    kernel = n.kernel(leader, n.sync(), n.read(s, 0, flag), n.when(E(flag) > 0, n.sync()))
    assert not barrier_findings(run(kernel))


def test_only_the_barrier_that_orders_something_is_needed() -> None:
    n = Notation()
    s = n.shared("s", 64)
    first, second = n.sync(), n.sync()
    kernel = n.kernel(n.write(s, TID), first, n.read(s, 63 - TID), second)
    (finding,) = redundant_barriers(run(kernel))
    assert finding.site is second.site
