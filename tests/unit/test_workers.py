"""Solver processes: results come back, a hang is killed, a crash is told, cancellation is silent."""

from __future__ import annotations

import os
import pickle
import queue
import time

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.model import GpuModel, LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solve import Budget, SolverResult
from cuda_lsp.static.workers import SolverPool

GPU = GpuModel("test", (9, 0))
LAUNCH = LaunchConfig((64, 1, 1), (1, 1, 1), source=LaunchSource.FILE)


def racy_kernel():
    n = Notation()
    s = n.shared("s", 65)
    return n.kernel(n.write(s, TID), n.read(s, TID + 1))


class Hang:
    """Unpickles into an endless sleep."""

    def __reduce__(self):
        return (time.sleep, (600,))


class Crash:
    """Unpickles into the end of the process."""

    def __reduce__(self):
        return (os._exit, (3,))


@pytest.fixture
def pool():
    pool = SolverPool(1)
    yield pool
    pool.close()


def outcome(pool, kernel, seconds=1.0) -> SolverResult:
    answers: queue.Queue[SolverResult] = queue.Queue()
    pool.submit(kernel, [LAUNCH], GPU, Budget(kernel=seconds), answers.put)
    return answers.get(timeout=40)


def test_a_result_survives_the_way_through_the_process(pool):
    result = outcome(pool, racy_kernel())
    assert result.verdict is Verdict.RACY
    assert result.findings[0].witness is not None
    assert pickle.loads(pickle.dumps(result)).verdict is Verdict.RACY


def test_a_hanging_task_is_killed_and_the_next_one_answered(pool):
    hung = outcome(pool, Hang(), seconds=0.1)
    assert hung.verdict is Verdict.UNDECIDED
    assert "stopped after" in hung.reasons[0]
    assert outcome(pool, racy_kernel()).verdict is Verdict.RACY


def test_a_crashed_process_leaves_an_undecided_reason(pool):
    crashed = outcome(pool, Crash())
    assert crashed.verdict is Verdict.UNDECIDED
    assert "ended unexpectedly" in crashed.reasons[0]


def test_a_cancelled_task_delivers_nothing(pool):
    answers: queue.Queue[SolverResult] = queue.Queue()
    pool.submit(Hang(), [LAUNCH], GPU, Budget(kernel=5), answers.put, owner="doc")
    pool.cancel("doc")
    assert outcome(pool, racy_kernel()).verdict is Verdict.RACY
    assert answers.empty()
