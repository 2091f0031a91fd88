"""The child process of dynamic checks: results, cancellation, crashes, one clear message each."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, job_for
from cuda_lsp.dynamic import runner as runner_module
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind, TrialResult
from cuda_lsp.dynamic.observations.merge import merged
from cuda_lsp.dynamic.runner import CheckCancelled, Runner
from cuda_lsp.dynamic.runs import RunOutcome
from cuda_lsp.model import Code, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import Analyzer

RACY = (
    "__global__ void k(int* o) { __shared__ int s[64]; s[threadIdx.x] = 1;"
    " o[threadIdx.x] = s[63 - threadIdx.x]; }\n"
)
ENDLESS = "__global__ void k(volatile int* o) { while (o[0] < 1000) { } }\n"
LAUNCH = "void run(int* o) { k<<<1, 64>>>(o); }\n"


def prepared(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadline: float = 10.0):
    """The job for the one kernel of ``text``, and its static report."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "k.cu"
    path.write_text(text)
    analyzer = Analyzer(Settings())
    report = analyzer.update(path, text)
    (kernel,) = report.kernels
    program = analyzer.kernel(path, kernel.name)
    assert program is not None
    options = CheckOptions(EngineKind.EMULATOR, deadline=deadline, watch_all=True)
    job = job_for(path, text, program, kernel, Settings(), options)
    analyzer.shutdown()
    return job, kernel


@pytest.fixture
def runner():
    found = Runner()
    yield found
    found.close()


def checked(runner: Runner, job: CheckJob, report: KernelReport) -> tuple[CheckResult, KernelReport]:
    result = runner.run(job)
    return result, merged(report, result, job.shapes)


@needs_nvcc
def test_a_race_is_confirmed_with_its_counts(runner, tmp_path, monkeypatch):
    job, report = prepared(RACY + LAUNCH, tmp_path, monkeypatch)
    stages: list[str] = []
    result = runner.run(job, stages.append)
    after = merged(report, result, job.shapes)
    (race,) = [f for f in after.findings if f.kind]
    assert race.status is Status.CONFIRMED and race.observation is not None
    assert race.observation.pairs == 64 and race.observation.words == 64
    assert "compiling" in stages and "running" in stages
    assert after.verdict is Verdict.RACY


@needs_nvcc
def test_what_the_static_side_missed_is_added_and_says_so(runner, tmp_path, monkeypatch):
    job, report = prepared(RACY + LAUNCH, tmp_path, monkeypatch)
    result = runner.run(job)
    blind = KernelReport(report.name, report.range, Verdict.UNDECIDED, ("a reason",), report.launches)
    after = merged(blind, result, job.shapes)
    (race,) = [f for f in after.findings if f.code is Code.SHARED_RACE]
    assert race.status is Status.CONFIRMED and "had not found it" in race.message
    assert race.witness is not None and race.witness.array == "s"
    assert after.verdict is Verdict.RACY


@needs_nvcc
def test_an_endless_kernel_ends(runner, tmp_path, monkeypatch):
    job, report = prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=12)
    result, after = checked(runner, job, report)
    assert any("stuck" in reason or "deadline" in reason for reason in after.reasons), after.reasons
    assert result.results[0].races.failure


@needs_nvcc
def test_a_check_can_be_cancelled_while_the_kernel_runs(runner, tmp_path, monkeypatch):
    job, _ = prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)
    running = threading.Event()

    def watch(stage: str) -> None:
        if stage == "running":
            running.set()

    with pytest.raises(CheckCancelled):
        runner.run(job, watch, running.is_set)


@needs_nvcc
def test_a_cancelled_check_has_ended_within_200_ms(runner, tmp_path, monkeypatch):
    job, _ = prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)
    taken = [_time_to_end(runner, job) for _ in range(3)]
    assert min(taken) < 0.2, taken  # the machine may be busy once


def _time_to_end(runner: Runner, job: CheckJob) -> float:
    """Seconds from the wish to cancel a kernel that hangs to the end of its process."""
    running = 0.0

    def watch(stage: str) -> None:
        nonlocal running
        running = time.monotonic() if stage == "running" else 0.0

    def asked() -> bool:
        return 0 < running < time.monotonic() - 0.3

    with pytest.raises(CheckCancelled):
        runner.run(job, watch, asked)
    return time.monotonic() - running - 0.3


@needs_nvcc
def test_a_child_that_is_stopped_is_ended_and_told(runner, tmp_path, monkeypatch):
    job, _ = prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)

    def stop(stage: str) -> None:
        if stage == "running":
            os.kill(runner._child.pid, signal.SIGSTOP)

    result = runner.run(job, stop)
    assert result.problem is not None and "was stopped by somebody" in result.problem
    assert runner.run(evolve(job, deadline=12)).results


@needs_nvcc
def test_what_a_driver_keeps_for_ever_is_ended_soon_after_its_deadline(runner, tmp_path, monkeypatch):
    """The child says until when it must be heard of again; then it is not waited for."""
    job, _ = prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)
    real, waiting = runner_module.receive, []

    def receive(stream):
        """As the child does on a GPU: before it runs the kernel, it says when it will be back."""
        message = waiting.pop() if waiting else real(stream)
        if message == ("progress", "running") and not due:
            waiting.append(message)
            due.append(time.monotonic() + 0.1)
            return "due", 0.1
        return message

    due: list[float] = []
    monkeypatch.setattr(runner_module, "receive", receive)
    result = runner.run(job)
    assert result.problem is not None and "when its time was over" in result.problem
    assert time.monotonic() - due[0] < 1


@needs_nvcc
def test_a_child_that_is_killed_is_told_and_the_next_check_works(runner, tmp_path, monkeypatch):
    job, _ = prepared(RACY + LAUNCH, tmp_path, monkeypatch)

    def kill(stage: str) -> None:
        assert runner._child is not None
        os.kill(runner._child.pid, signal.SIGSEGV)

    result = runner.run(job, kill)
    assert result.problem is not None and "SIGSEGV" in result.problem
    assert runner.run(job).results


def test_a_missing_compiler_is_one_line_with_the_next_step(runner, tmp_path, monkeypatch):
    job, report = prepared(RACY + LAUNCH, tmp_path, monkeypatch)
    result = runner.run(evolve(job, nvcc=tmp_path / "no-such-nvcc"))
    assert result.problem is not None and "no-such-nvcc" in result.problem and "pip install" in result.problem
    assert merged(report, result, job.shapes) == report


@needs_nvcc
def test_errors_of_the_compiler_stand_on_the_users_lines(runner, tmp_path, monkeypatch):
    job, _ = prepared(RACY + LAUNCH + "int x = nowhere;\n", tmp_path, monkeypatch)
    result = runner.run(job)
    assert [(e.range.start.line, e.range.start.column) for e in result.errors if e.range] == [(3, 9)]


@needs_nvcc
def test_a_folder_that_cannot_be_written_is_told(runner, tmp_path, monkeypatch):
    job, _ = prepared(RACY + LAUNCH, tmp_path, monkeypatch)
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = runner.run(evolve(job, cache=blocked))
    assert result.problem is not None and "file" in result.problem


@needs_nvcc
def test_of_a_template_the_analysed_instantiation_runs(runner, tmp_path, monkeypatch):
    text = (
        "template <int N> __global__ void k(int* o) {"
        " __shared__ int s[128]; s[threadIdx.x % N] = threadIdx.x; }\n"
        "void run(int* o) { k<128><<<1, 64>>>(o); k<32><<<1, 64>>>(o); }\n"
    )
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "k.cu"
    analyzer = Analyzer(Settings())
    seen: dict[str, int] = {}
    for report in analyzer.update(path, text).kernels:
        kernel = analyzer.kernel(path, report.name)
        assert kernel is not None
        options = CheckOptions(EngineKind.EMULATOR, watch_all=True)
        result = runner.run(job_for(path, text, kernel, report, Settings(), options))
        seen[report.name] = len(result.results[0].races.races)
    analyzer.shutdown()
    assert seen == {"k<128>": 0, "k<32>": 1}


@needs_nvcc
def test_the_deadline_counts_from_the_click_and_compiling_counts(runner, tmp_path, monkeypatch):
    slow = "#include <cuda/barrier>\n#include <cuda/std/ranges>\n" + ENDLESS + LAUNCH
    job, _ = prepared(slow, tmp_path, monkeypatch, deadline=60)
    job = evolve(job, deadline=0.5, cache=tmp_path / "empty")
    before = time.monotonic()
    result = runner.run(job)
    assert time.monotonic() - before < 0.5 + 2.0
    assert result.problem is not None
    assert "within its deadline of 0.5 s" in result.problem or "when its time was over" in result.problem


SEEN = RunOutcome("GPU", 0.1, 1, 1)


def many(job: CheckJob, trials: int) -> CheckJob:
    return evolve(job, trials=job.trials[:1] * trials)


def test_trials_after_one_that_hangs_are_made_in_a_new_process(runner, tmp_path, monkeypatch):
    job = many(prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)[0], 3)
    hung = evolve(SEEN, failure="the kernel did not end within 5 s")
    asked: list[int] = []
    stopped: list[int] = []

    def attempt(job: CheckJob, *unused: object) -> CheckResult:
        asked.append(len(job.trials))
        outcome = hung if len(asked) == 1 else SEEN
        made = [TrialResult(trial, outcome) for trial in job.trials[: 1 if len(asked) == 1 else None]]
        return CheckResult(job.kernel, "GPU", tuple(made), left=len(job.trials) - len(made))

    monkeypatch.setattr(runner, "_attempt", attempt)
    monkeypatch.setattr(runner, "_stop", lambda: stopped.append(len(asked)))
    result = runner.run(job)
    assert (asked, stopped) == ([3, 2], [1])
    assert [trial.races.failure for trial in result.results] == [hung.failure, None, None]
    assert result.left == 0


def test_what_was_seen_before_a_check_had_to_be_ended_is_kept(runner, tmp_path, monkeypatch):
    job = many(prepared(ENDLESS + LAUNCH, tmp_path, monkeypatch, deadline=60)[0], 2)

    def attempt(job: CheckJob, *unused: object) -> object:
        runner._seen = CheckResult(job.kernel, "GPU", (TrialResult(job.trials[0], SEEN),))
        return runner_module._Death(-9)

    monkeypatch.setattr(runner, "_attempt", attempt)
    result = runner.run(job)
    assert len(result.results) == 1
    assert result.problem is not None and "out of memory" in result.problem
