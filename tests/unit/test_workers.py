"""Solver processes: results come back, a hang is killed, a crash is told, cancellation is silent."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.config import Settings
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static import background, budgets, workers
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


def test_a_system_without_processes_delays_an_answer(monkeypatch: pytest.MonkeyPatch):
    start, refused = subprocess.Popen, iter((True, True))

    def scarce(*arguments: Any, **named: Any) -> Any:
        if next(refused, False):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return start(*arguments, **named)

    monkeypatch.setattr(subprocess, "Popen", scarce)
    answers: queue.Queue[Any] = queue.Queue()
    pool = SolverPool(1)
    try:
        pool.submit(partial(abs, -3), 5.0, answers.put)
        assert answers.get(timeout=60) == 3
    finally:
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


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts all data on Linux only")
def test_memory_of_solver_processes_is_limited_by_themselves():
    """Not by the limit of the process that starts them."""
    code = """
import queue, resource
from functools import partial
from cuda_lsp.static.workers import SolverPool
if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, hard))
    pool, answers = SolverPool(1), queue.Queue()
    pool.submit(partial(resource.getrlimit, resource.RLIMIT_DATA), 60.0, answers.put)
    print(answers.get(timeout=120)[0])
    pool.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == budgets.SOLVER_BYTES


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


class KilledOnce:
    """Kills whoever answers it, and what that is a fork of, the first time; a number the second."""

    def __init__(self, marker, number):
        self.marker, self.number = str(marker), number

    def __reduce__(self):
        return (_once, (self.marker, self.number))


def _once(marker, number):
    if os.path.exists(marker):
        return partial(int, "7")
    Path(marker).write_text(str(os.getpid()))
    os.kill(os.getppid(), number)
    time.sleep(600)


@pytest.mark.skipif(sys.platform != "linux", reason="answers are given by forks on Linux only")
def test_a_killed_process_is_replaced_and_its_question_asked_again(pool, tmp_path):
    assert outcome(pool, KilledOnce(tmp_path / "killed", signal.SIGKILL)) == 7
    assert_gone((tmp_path / "killed").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="answers are given by forks on Linux only")
def test_a_process_that_was_stopped_is_replaced_and_its_question_asked_again(pool, tmp_path):
    assert outcome(pool, KilledOnce(tmp_path / "stopped", signal.SIGSTOP), seconds=0.5) == 7
    assert_gone((tmp_path / "stopped").read_text())


def assert_gone(*processes: str):
    until = time.monotonic() + 30
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_no_solver_outlives_the_process_that_asked():
    code = (
        "import os, time; from cuda_lsp.static.workers import SolverPool; pool = SolverPool(2)\n"
        "from test_workers import Hang; pool.submit(Hang(), 600.0, print)\n"
        "from cuda_lsp.children.sweep import descendants\n"
        "while len(found := descendants(os.getpid())) < 3: time.sleep(0.05)\n"
        "print(*found, flush=True); time.sleep(600)"
    )
    folder = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((folder, *filter(None, sys.path)))}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    below = child.stdout.readline().split()
    assert len(below) == 3
    child.kill()
    child.communicate()
    assert_gone(*below)


def test_no_more_solvers_start_than_the_machine_has_cores(monkeypatch):
    sizes = []
    monkeypatch.setattr(workers, "SolverPool", sizes.append)
    processes = Settings(solver_workers=300).solver_processes
    background.Background(processes, lambda path: Settings(), lambda *answer: None).start()
    assert sizes == [os.cpu_count()]
