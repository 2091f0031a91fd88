"""Python programs on the GPU: what packages compile at run time is checked, where they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from python_programs import (
    BINDINGS,
    CORE,
    CUPY,
    LINKED,
    NUMBA,
    TORCH,
    TORCH_FILE,
    TORCH_IMPORTED,
    TORCH_LOADED,
    TORCH_SETUP,
)

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions
from cuda_lsp.confirm_program import ProgramOptions, check_script
from cuda_lsp.dynamic.gpu.engine import device_architecture
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.programs.build_command import BuildJob
from cuda_lsp.dynamic.programs.job import ProgramResult
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.dynamic.runs import EngineUnavailable
from cuda_lsp.model import FileReport, Verdict


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    try:
        device_architecture()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    made = Runner()
    yield made
    made.close()


def run(runner: Runner, folder: Path, package: str, text: str) -> tuple[list[FileReport], ProgramResult]:
    try:
        there = find_spec(package) is not None
    except ModuleNotFoundError:
        there = False
    if not there:
        pytest.skip(f"{package} is not installed")
    script = folder / "script.py"
    script.write_text(text)
    how = ProgramOptions(folder=folder, deadline=240.0)
    return check_script(script, sys.executable, Settings(), runner, CheckOptions(EngineKind.GPU), how, ())


PACKAGES = {
    "bindings": ("cuda.bindings.nvrtc", BINDINGS),
    "linked": ("cuda.bindings.nvrtc", LINKED),
    "core": ("cuda.core", CORE),
    "cupy": ("cupy", CUPY),
    "numba": ("numba.cuda", NUMBA),
}


@pytest.mark.parametrize(("package", "text"), PACKAGES.values(), ids=PACKAGES)
def test_kernels_of_a_package_are_checked_with_what_the_program_gives_them(
    runner: Runner, tmp_path: Path, package: str, text: str
) -> None:
    reports, result = run(runner, tmp_path, package, text)
    assert result.status == 0, (result, result.output)
    verdicts = {kernel.name: kernel.verdict for report in reports for kernel in report.kernels}
    assert verdicts["racy"] is Verdict.RACY, (result, result.output)
    assert verdicts["calm"] is Verdict.UNDECIDED, result  # not seeing a race proves nothing
    lines = text.splitlines()
    races = [
        finding for report in reports for finding in report.findings if finding.code.value == "shared-race"
    ]
    assert races
    for finding in races:
        assert finding.site.range.path == (tmp_path / "script.py").resolve()
        assert "s[" in lines[finding.site.range.start.line - 1]
    counts = {run.name: run.counts for run in result.runs}
    assert counts["racy"].checked == counts["calm"].checked == 1
    if "print(" in text:
        assert "[63, 62, 61]" in result.output


@pytest.mark.large_children
def test_an_extension_that_torch_builds_is_checked_on_the_lines_of_the_script(
    runner: Runner, tmp_path: Path, own_cache: object
) -> None:
    reports, result = run(runner, tmp_path, "torch", TORCH)
    assert_seen(reports, result, tmp_path / "script.py")
    again = run(runner, tmp_path, "torch", TORCH)  # ninja has nothing to do
    assert_seen(*again, tmp_path / "script.py")


@pytest.mark.large_children
def test_an_extension_of_files_is_checked_on_their_lines(
    runner: Runner, tmp_path: Path, own_cache: object
) -> None:
    (tmp_path / "kernels.cu").write_text(TORCH_FILE)
    assert_seen(*run(runner, tmp_path, "torch", TORCH_LOADED), tmp_path / "kernels.cu")


@pytest.mark.large_children
def test_an_extension_that_setuptools_builds_is_checked(
    runner: Runner, tmp_path: Path, own_cache: object
) -> None:
    for name, text in (("kernels.cu", TORCH_FILE), ("setup.py", TORCH_SETUP)):
        (tmp_path / name).write_text(text)
    asked = BuildJob(
        tmp_path / "script.py", tmp_path, f"{sys.executable} setup.py build_ext --inplace", "",
        cache_folder(), libraries=True,
    )  # fmt: skip
    if find_spec("torch") is not None:
        assert runner.run_build(asked).problem is None
    assert_seen(*run(runner, tmp_path, "torch", TORCH_IMPORTED), tmp_path / "kernels.cu")


def assert_seen(reports: list[FileReport], result: ProgramResult, source: Path) -> None:
    """The race of one kernel, on its line, and what the other computes."""
    assert result.status == 0, (result, result.output)
    assert "[63, 62, 61]" in result.output
    runs = {run.name: run for run in result.runs}
    assert (runs["racy"].counts.checked, runs["calm"].counts.checked) == (1, 1), (result, result.output)
    verdicts = {kernel.name: kernel.verdict for report in reports for kernel in report.kernels}
    assert (verdicts["racy"], verdicts["calm"]) == (Verdict.RACY, Verdict.UNDECIDED)
    findings = [f for report in reports for f in report.findings if f.code.value == "shared-race"]
    assert findings
    lines = source.read_text().splitlines()
    for finding in findings:
        assert finding.site.range.path.resolve() == source.resolve()
        assert "s[" in lines[finding.site.range.start.line - 1]
