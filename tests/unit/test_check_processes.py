"""``check`` in processes that may die: each costs its file only, and the order of work changes nothing."""

from __future__ import annotations

import errno
import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner
from hostile_texts import ENDLESS, LARGE, written

from cuda_lsp.batch import pool
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.check import checking
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool, Say, Work
from cuda_lsp.children.sweep import descendants
from cuda_lsp.cli import main
from cuda_lsp.model import FileReport, KernelReport, Position, Severity, SourceRange, ToolError, Verdict
from cuda_lsp.readings import Reading

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RACY = """__global__ void neighbour(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { neighbour<<<1, 64>>>(out); }
"""
LIMITS = FileLimits(30)
FOUND_FROM_HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_LSP_CACHE", str(tmp_path_factory.mktemp("cache")))
        faulthandler.disable()  # of pytest: crashes are meant here
        yield
        faulthandler.enable()


def said_of(reports: Sequence[FileReport], name: str) -> str:
    """What the report of a file says instead of findings."""
    (report,) = [report for report in reports if report.path.stem == name]
    return "; ".join(error.message for error in report.errors if error.severity is Severity.ERROR)


def checked(paths: Sequence[Path], jobs: int = 2, limits: FileLimits = LIMITS) -> list[FileReport]:
    with checking(paths, Asked(), jobs, limits, cache=False) as reports:
        return list(reports)


# --------------------------------------------------------------------- what a text does to its process


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        ("#pragma clang __debug crash\n", LIMITS, "crashed, most likely in clang (SIGILL)"),
        ("#pragma clang __debug llvm_fatal_error\n", LIMITS, "crashed, most likely in clang (SIGABRT)"),
        (ENDLESS, evolve(LIMITS, seconds=1), "takes more than 1 s; --deadline allows more"),
    ],
    ids=["a crash", "a fatal error", "a hang"],
)
def test_a_text_that_ends_its_process_costs_its_file_only(
    tmp_path: Path, text: str, limits: FileLimits, reason: str
) -> None:
    reports = checked(written(tmp_path, before=RACY, bad=text + RACY, behind=RACY), limits=limits)
    assert [report.path.stem for report in reports] == ["before", "bad", "behind"]
    assert said_of(reports, "bad") == f"not analysed: its analysis {reason}"
    for name in ("before", "behind"):
        (report,) = [report for report in reports if report.path.stem == name]
        assert [kernel.verdict for kernel in report.kernels] == [Verdict.RACY] and not report.errors


def test_a_bomb_of_memory_is_told_from_a_crash(tmp_path: Path):
    paths = written(tmp_path, before=RACY, bad=LARGE + RACY, behind=RACY)
    command = [sys.executable, "-P", "-m", "cuda_lsp", "check", "--memory", "512", "--no-cache"]
    result = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "not analysed: its analysis takes more than 512 MB" in " ".join(result.stdout.split())
    assert result.stdout.count("shared-race") >= 2


def test_what_the_parent_has_or_once_had_in_memory_is_not_taken_for_the_childs(tmp_path: Path):
    """In a process of its own: what this one has is known to nobody."""
    written(tmp_path, bomb=LARGE, crash="#pragma clang __debug llvm_fatal_error\n", good=RACY)
    code = """
import sys
from pathlib import Path
from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.check import checking
from cuda_lsp.batch.limits import FileLimits
once = bytearray(b"x") * (300 << 20)
del once
now = bytearray(b"x") * (300 << 20)
paths = [Path(name) for name in ("bomb.cu", "crash.cu", "good.cu")]
with checking(paths, Asked(), 1, FileLimits(30, 1 << 30), cache=False) as reports:
    for report in reports:
        print(report.path.stem, *(error.message for error in report.errors))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=FOUND_FROM_HERE)
    assert done.stdout.splitlines() == [
        "bomb not analysed: its analysis takes more than 1 GB",
        "crash not analysed: its analysis crashed, most likely in clang (SIGABRT)",
        "good",
    ], done.stderr


@pytest.mark.parametrize("style", ["text", "json", "sarif", "github"])
def test_a_file_that_was_lost_is_named_with_the_reason_and_the_exit_code_is_2(tmp_path: Path, style: str):
    paths = written(tmp_path, bad="#pragma clang __debug crash\n", good=RACY)
    result = CliRunner().invoke(main, ["check", "--format", style, *map(str, paths)])
    assert result.exit_code == 2
    said = result.stdout.replace("\n", " ")
    assert "not analysed: its analysis crashed, most likely in clang" in said and "bad.cu" in said
    assert "shared-race" in said
    if style == "text":
        assert "1 file not analysed" in said
    if style == "sarif":
        (run,) = json.loads(result.stdout)["runs"]
        assert run["invocations"][0]["executionSuccessful"] is False


# ------------------------------------------------------------------------------ how a process can end


def reports_of(work: Work, paths: Sequence[Path], jobs: int = 2) -> dict[str, FileReport]:
    with Pool([Reading(path) for path in paths], work, jobs, LIMITS) as running:
        return {reading.path.stem: found.report for reading, found in running.reports()}


def first_fails(failing: Callable[[Say], object]) -> Work:
    """Work that ``failing`` ends on files of the name ``bad``."""

    def work(reading: Reading, say: Say) -> Analysed:
        if reading.path.stem == "bad":
            failing(say)
        return Analysed(FileReport(reading.path))

    return work


def no_memory(say: Say) -> None:
    raise MemoryError


def a_bug(say: Say) -> None:
    raise KeyError("k")


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (lambda say: os.kill(os.getpid(), signal.SIGKILL), "not analysed: its analysis was ended (SIGKILL)"),
        (lambda say: os._exit(3), "not analysed: its analysis crashed, most likely in clang (exit status 3)"),
        (no_memory, "not analysed: its analysis takes more than 2 GB"),
        (a_bug, "not analysed: internal error KeyError: 'k'; please report this file"),
    ],
)
def test_every_end_of_a_process_is_told(
    tmp_path: Path, failing: Callable[[Say], object], reason: str
) -> None:
    reports = reports_of(first_fails(failing), written(tmp_path, bad="", good=""))
    assert said_of(list(reports.values()), "bad") == reason
    assert reports["good"] == FileReport(tmp_path / "good.cu")


def test_a_process_that_does_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "STILL_S", 0.6)
    reports = reports_of(first_fails(lambda say: time.sleep(100)), written(tmp_path, bad="", good=""))
    assert said_of(list(reports.values()), "bad") == "not analysed: its analysis does not come to an end"


def test_what_was_known_before_a_process_died_stays(tmp_path: Path) -> None:
    place = SourceRange(tmp_path / "bad.cu", Position(1, 1), Position(1, 2))
    racy = KernelReport("racy", place, Verdict.RACY)
    still_open = KernelReport("open", place, Verdict.UNDECIDED, ("a pair",))

    def failing(say: Say) -> None:
        say(FileReport(tmp_path / "bad.cu", (racy, still_open)))
        os.kill(os.getpid(), signal.SIGSEGV)

    report = reports_of(first_fails(failing), written(tmp_path, bad=""))["bad"]
    why = "its analysis crashed, most likely in clang (SIGSEGV)"
    assert report.kernels == (racy, evolve(still_open, reasons=("a pair", why)))
    assert report.errors == (ToolError(f"not analysed to its end: {why}", severity=Severity.ERROR),)


def test_a_killed_process_is_replaced_while_others_go_on(tmp_path: Path) -> None:
    paths = written(tmp_path, bad=ENDLESS, one=RACY, two=RACY, three=RACY)
    of_others = set(descendants(os.getpid()))  # of tests before this one
    with checking(paths, Asked(), 2, LIMITS, cache=False) as reports:
        first = min(set(descendants(os.getpid())) - of_others)  # with the largest file
        os.kill(first, signal.SIGKILL)
        found = list(reports)
    assert said_of(found, "bad") == "not analysed: its analysis was ended (SIGKILL)"
    assert [report.kernels[0].verdict for report in found[1:]] == [Verdict.RACY] * 3


@pytest.mark.parametrize("refusals", [2, 1000])
def test_a_system_without_processes_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    fork, left = os.fork, [refusals]

    def sometimes() -> int:
        left[0] -= 1
        if left[0] >= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", sometimes)
    monkeypatch.setattr(pool, "LOOK_S", 0.01)
    monkeypatch.setattr(pool, "MOST_REFUSALS", 5)
    reports = reports_of(first_fails(lambda say: None), written(tmp_path, one="", two=""))
    refused = "not analysed: its analysis could not be started: Resource temporarily unavailable"
    assert {said_of(list(reports.values()), n) for n in reports} == ({""} if refusals == 2 else {refused})


# ------------------------------------------------------------------------- the order of work is nobody's


def test_findings_are_the_same_with_one_two_and_four_processes() -> None:
    names = ("figure1", "histogram", "labelled/narrow", "matmul", "scan", "stencil", "transpose")
    paths = [FIXTURES / f"{name}.cu" for name in names]
    alone, two, four = (
        [evolve(report, seconds=0.0) for report in checked(paths, jobs)] for jobs in (1, 2, 4)
    )
    assert [report.path for report in alone] == paths
    assert any(report.findings for report in alone)
    assert alone == two == four
    assert [evolve(report, seconds=0.0) for report in checked(paths[-1:])] == alone[-1:]


def test_the_largest_file_is_begun_first_and_reports_keep_the_order(tmp_path: Path) -> None:
    paths = written(tmp_path, small="//", large="// large", middle="// m")
    begun = tmp_path / "begun"

    def work(reading: Reading, say: Say) -> Analysed:
        with begun.open("a") as file:
            file.write(f"{reading.path.stem} ")
        return Analysed(FileReport(reading.path))

    with Pool([Reading(path) for path in paths], work, 1, LIMITS) as running:
        assert len(list(running.reports())) == 3
    assert begun.read_text().split() == ["large", "middle", "small"]
    assert [report.path for report in checked(paths)] == paths


def test_no_more_processes_than_files_or_jobs(tmp_path: Path) -> None:
    paths = written(tmp_path, a="", b="", c="")
    of_others = set(descendants(os.getpid()))  # of tests before this one
    with Pool([Reading(path) for path in paths], first_fails(lambda say: None), 2, LIMITS):
        assert len(set(descendants(os.getpid())) - of_others) <= 2


# ------------------------------------------------------------------------------------ nothing is left


def started(tmp_path: Path, **how: object) -> subprocess.Popen[bytes]:
    """``check`` of a file that takes long and another, once both are analysed."""
    paths = written(tmp_path, long=ENDLESS, longer=ENDLESS + "//")
    command = [sys.executable, "-m", "cuda_lsp", "check", "-j2", *map(str, paths)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **how)  # type: ignore[call-overload]
    wait_for(lambda: len(descendants(process.pid)) == 2)
    return process


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def alive(processes: Sequence[int]) -> list[int]:
    return [p for p in processes if Path(f"/proc/{p}/stat").exists() and "Z" not in state(p)]


def state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize("how", ["Ctrl-C", "a closed pipe", "a kill of the first process"])
def test_the_end_of_a_run_is_the_end_of_everything(tmp_path: Path, how: str) -> None:
    process = started(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    children = descendants(process.pid)
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    elif how == "a closed pipe":
        process.stdout.close()
    else:
        process.kill()
    wait_for(lambda: not alive(children))
    code = process.wait(10)
    if how == "Ctrl-C":
        assert code == 130 and process.stderr.read() == b""
    elif how == "a closed pipe":
        assert code == 1 and process.stderr.read() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.cu", "longer.cu"]
    process.stderr.close()
    process.stdout.close()
