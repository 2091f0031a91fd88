"""Python programs that open shared libraries which nvcc makes for them, as PyTorch's extensions are made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from extension_programs import BUILT, CPP, CPP_EXTENSION, CUDA, INLINE, LOADING, STATIC
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions
from cuda_lsp.confirm_program import ProgramOptions, check_script
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import FileReport, Verdict

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]
needs_ninja = pytest.mark.skipif(shutil.which("ninja") is None, reason="there is no ninja")


@pytest.fixture
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("cpp_extension.py", CPP_EXTENSION), ("kernels.cu", CUDA), ("call.cpp", CPP)):
        (tmp_path / name).write_text(text)
    return tmp_path


def checked(runner: Runner, folder: Path, text: str) -> tuple[list[FileReport], Any]:
    script = folder / "script.py"
    script.write_text(text)
    options, how = CheckOptions(EngineKind.EMULATOR), ProgramOptions(folder=folder, deadline=200.0)
    return check_script(script, sys.executable, Settings(), runner, options, how, ())


def assert_seen(reports: list[FileReport], result: Any, source: Path) -> None:
    assert "error 0 [65, 64, 63]" in result.output, result
    assert result.status == 0, result
    verdicts = {kernel.name: kernel.verdict for report in reports for kernel in report.kernels}
    assert verdicts == {"racy": Verdict.RACY, "calm": Verdict.UNDECIDED}
    lines = source.read_text().splitlines()
    findings = [finding for report in reports for finding in report.findings]
    assert {finding.code.value for finding in findings} == {"shared-race"}
    for finding in findings:
        assert finding.site.range.path.resolve() == source.resolve()
        assert "s[63 - threadIdx.x] + shift" in lines[finding.site.range.start.line - 1]


@needs_ninja
def test_an_extension_that_ninja_builds_is_checked_on_its_sources_and_known_when_nothing_is_left_to_build(
    runner: Runner, folder: Path
) -> None:
    before = {path.name for path in folder.iterdir()}
    assert_seen(*checked(runner, folder, LOADING), folder / "kernels.cu")
    again = checked(runner, folder, LOADING)
    assert "ninja: no work to do" in again[1].output
    assert_seen(*again, folder / "kernels.cu")
    assert {path.name for path in folder.iterdir()} - before <= {"script.py", "__pycache__"}


@needs_ninja
def test_an_extension_of_texts_in_the_program_is_checked_on_the_lines_of_these(
    runner: Runner, folder: Path
) -> None:
    assert_seen(*checked(runner, folder, INLINE), folder / "script.py")


def test_a_library_with_the_static_runtime_is_checked(runner: Runner, folder: Path) -> None:
    assert_seen(*checked(runner, folder, STATIC), folder / "kernels.cu")


def test_a_library_whose_build_was_not_seen_stays_as_it_is(runner: Runner, folder: Path) -> None:
    command = "nvcc -shared -Xcompiler -fPIC -arch=sm_90 kernels.cu call.cpp -o static.so"
    subprocess.run(command, cwd=folder, shell=True, check=True)
    reports, result = checked(runner, folder, BUILT)
    assert "error 0" not in result.output
    assert result.launches == 0
    (told,) = [error.message for report in reports for error in report.errors]
    assert told == "it launched no kernel: nothing was checked"
