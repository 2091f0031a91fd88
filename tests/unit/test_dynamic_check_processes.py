"""Dynamic checks of files of which some end the process that analyses them: the others are run."""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hostile_texts import ENDLESS, LARGE, written
from programs import HISTOGRAM
from toolkit import needs_nvcc

from cuda_lsp.batch import limits
from cuda_lsp.cli import main

CRASH = "#pragma clang __debug crash\n"
CRASHED = "not analysed: its analysis crashed, most likely in clang (SIGILL)"
RACY = """__global__ void neighbour(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1 + threadIdx.x;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { neighbour<<<1, 64>>>(out); }
"""


@pytest.fixture(autouse=True)
def crashes_are_meant(own_cache: None):
    faulthandler.disable()  # of pytest: crashes are meant here
    yield
    faulthandler.enable()


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def statuses(result: Result) -> dict[str, list[str]]:
    """By file: what became of its races."""
    return {
        Path(file["path"]).stem: [f["status"] for f in file["findings"] if f["code"] == "shared-race"]
        for file in json.loads(result.stdout)["files"]
    }


def flat(text: str) -> str:
    return " ".join(text.split())


# ------------------------------------------------------------------------------------ check --dynamic


@needs_nvcc
@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (CRASH, (), CRASHED),
        (ENDLESS, ("--deadline", 2), "not analysed: its analysis takes more than 2 s"),
    ],
    ids=["a crash", "a hang"],
)
def test_a_file_that_ends_its_analysis_is_told_and_the_others_are_run(
    tmp_path: Path, text: str, options: Sequence[object], reason: str
) -> None:
    paths = written(tmp_path, before=RACY, bad=text + RACY, behind=RACY)
    result = invoke("check", "--dynamic", "emulator", "--format", "json", *options, *paths)
    assert result.exit_code == 2
    assert statuses(result) == {"before": ["confirmed"], "bad": [], "behind": ["confirmed"]}
    assert reason in result.stdout


@needs_nvcc
def test_a_bomb_of_memory_costs_its_file(tmp_path: Path) -> None:
    paths = written(tmp_path, before=RACY, bad=LARGE + RACY)
    command = [sys.executable, "-P", "-m", "cuda_lsp", "check", "--dynamic", "emulator", "--memory", "512"]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "bad.cu: not analysed: its analysis takes more than 512 MB" in flat(done.stdout)
    assert "[confirmed]" in done.stdout


@needs_nvcc
def test_a_crash_while_runs_are_planned_leaves_what_is_proved(tmp_path: Path, monkeypatch) -> None:
    def crash(*_: object) -> object:
        os.abort()

    monkeypatch.setattr("cuda_lsp.static.run_needs.buffer_bytes", crash)
    result = invoke("check", "--dynamic", "emulator", "--format", "json", *written(tmp_path, one=RACY))
    assert result.exit_code == 2
    assert statuses(result) == {"one": ["proved"]}
    assert "not analysed to its end: its analysis crashed" in result.stdout


@needs_nvcc
def test_a_headers_kernels_are_run_as_its_unit_launches_them(tmp_path: Path) -> None:
    (tmp_path / "tile.cuh").write_text(RACY.replace("void launch", "#pragma once\ninline void launch"))
    written(tmp_path, one='#include "tile.cuh"\nint main() { launch(nullptr); }\n')
    result = invoke("check", "--dynamic", "emulator", "--format", "json", tmp_path)
    assert result.exit_code == 1
    assert statuses(result) == {"one": [], "tile": ["confirmed"]}


# ------------------------------------------------------------------------------------------------ run


def test_run_tells_of_a_file_that_crashes_its_analysis(tmp_path: Path) -> None:
    (path,) = written(tmp_path, bad=CRASH + RACY)
    for names in ((), ("--kernel", "neighbour")):
        result = invoke("run", path, "--engine", "emulator", *names)
        assert result.exit_code == 2
        assert f"bad.cu: {CRASHED}" in flat(result.stdout)


def test_run_tells_of_a_file_that_hangs_its_analysis(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "READING_S", 1)
    (path,) = written(tmp_path, bad=ENDLESS + RACY)
    result = invoke("run", path, "--engine", "emulator")
    assert result.exit_code == 2
    assert "bad.cu: not analysed: its analysis takes more than 1 s" in flat(result.stdout)


# ------------------------------------------------------------------------------------------- programs


@needs_nvcc
def test_a_source_of_a_program_that_crashes_its_analysis_is_told_and_the_program_runs(
    tmp_path: Path,
) -> None:
    program, other = written(tmp_path, program=HISTOGRAM.replace("BARRIER", ""), other=CRASH)
    options = ("--program", "--engine", "emulator", "--with", other, "--format", "json")
    result = invoke("run", program, *options, "--", 640)
    assert result.exit_code == 2
    assert statuses(result) == {"program": ["confirmed"], "other": []}
    assert CRASHED in result.stdout
    assert "3 launches on CPU emulator, exit status 0" in result.stderr


@needs_nvcc
def test_a_program_whose_own_source_crashes_the_analysis_runs_unwatched(tmp_path: Path) -> None:
    (program,) = written(tmp_path, program=CRASH + HISTOGRAM.replace("BARRIER", ""))
    result = invoke("run", program, "--program", "--engine", "emulator", "--", 640)
    assert result.exit_code == 2
    assert f"program.cu: {CRASHED}" in flat(result.stdout)
    assert "3 launches on CPU emulator, exit status 0" in result.stderr


@needs_nvcc
def test_a_program_is_not_told_how_many_threads_our_own_libraries_may_use(tmp_path: Path) -> None:
    text = (
        "#include <cstdio>\n#include <cstdlib>\n"
        'int main() { puts(getenv("OPENBLAS_NUM_THREADS") ? "one" : "all"); }\n'
    )
    program, other = written(tmp_path, program=text, other="// nothing\n")
    command = [sys.executable, "-P", "-m", "cuda_lsp", "run", str(program), "--program", "--with", str(other)]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [*command, "--engine", "emulator"], capture_output=True, text=True, env=environment, timeout=300
    )
    assert "all" in done.stderr.splitlines(), done.stdout + done.stderr
