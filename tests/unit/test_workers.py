"""Solver processes: results come back, a hang is killed, a crash is told, cancellation is silent."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import time
from functools import partial
from typing import Any

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.model import GpuModel, LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.second_tier import refine_with_second_opinion
from cuda_lsp.static.solver.solve import Budget
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


def refinement(kernel):
    return partial(refine_with_second_opinion, kernel, [LAUNCH], GPU, Budget(kernel=1.0))


def outcome(pool, work, seconds=60.0) -> Any:
    answers: queue.Queue[Any] = queue.Queue()
    pool.submit(work, seconds, answers.put)
    return answers.get(timeout=120)


def test_a_result_survives_the_way_through_the_process(pool):
    result = outcome(pool, refinement(racy_kernel()))
    assert result.verdict is Verdict.RACY
    assert result.findings[0].witness is not None
    assert pickle.loads(pickle.dumps(result)).verdict is Verdict.RACY


def test_a_hanging_task_is_stopped_and_the_next_one_answered(pool):
    hung = outcome(pool, Hang(), seconds=0.1)
    assert "stopped after" in hung.reason
    assert outcome(pool, refinement(racy_kernel())).verdict is Verdict.RACY


def test_a_crash_leaves_a_reason(pool):
    assert "ended unexpectedly" in outcome(pool, Crash()).reason


def test_an_error_leaves_a_reason(pool):
    assert "ValueError" in outcome(pool, partial(int, "not a number")).reason


def test_a_cancelled_task_delivers_nothing(pool):
    answers: queue.Queue[object] = queue.Queue()
    pool.submit(Hang(), 600.0, answers.put, owner="doc")
    pool.cancel("doc")
    assert outcome(pool, refinement(racy_kernel())).verdict is Verdict.RACY
    assert answers.empty()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the process that is stopped is started again")
def test_after_a_cancelled_task_the_same_process_answers_the_next_one(pool):
    warm = outcome(pool, os.getppid)  # every answer is given by a fork of the process
    pool.submit(Hang(), 600.0, print, owner="doc")
    time.sleep(0.1)
    pool.cancel("doc")
    assert outcome(pool, os.getppid) == warm
