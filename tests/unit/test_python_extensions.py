"""Python programs that open shared libraries which nvcc makes for them, as PyTorch's extensions are made."""

from __future__ import annotations

import ctypes
import io
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import EmulatedCard
from extension_programs import BUILT, CPP, CPP_EXTENSION, CUDA, INLINE, LOADING, STATIC
from test_gpu_program_on_emulator import said as messages_of
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions
from cuda_lsp.confirm_program import ProgramOptions, check_script
from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.programs.build_command import remembered
from cuda_lsp.dynamic.programs.job import ProgramJob
from cuda_lsp.dynamic.programs.on_gpu import Task
from cuda_lsp.dynamic.programs.recorder import record
from cuda_lsp.dynamic.programs.scripts.builds import Builds
from cuda_lsp.dynamic.programs.scripts.extensions import Extensions
from cuda_lsp.dynamic.programs.scripts.gpu_process import ScriptHosted, _Shape
from cuda_lsp.dynamic.programs.scripts.places import places_in
from cuda_lsp.dynamic.ptx.names import stable
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


# ------------------------------------------------------------------------------------ on an emulated card


@define
class Driver:
    """What the library in front of the driver tells: one allocation for a variable, by its own name."""

    variable: int
    asked: list[str] = field(factory=list[str])

    def clsp_allocation(self, *unused: object) -> int:
        return 0

    def clsp_variable(self, module: Any, name: bytes, start: Any, size: Any) -> int:
        self.asked.append(name.decode())
        start._obj.value, size._obj.value = self.variable, 4
        return int(module.value == 1)


def on_card(folder: Path, card: EmulatedCard, driver: Driver) -> ScriptHosted:
    """A program that has built and opened ``static.so``."""
    command = "nvcc -shared -Xcompiler -fPIC -arch=sm_90 kernels.cu call.cpp -o static.so"
    toolkit, cache = find_toolkit(), folder / "cache"
    _, started = record(command, folder, toolkit, cache, time.monotonic() + 300)
    remembered(folder, cache, started)
    script = folder / "script.py"
    script.write_text(BUILT)
    job = ProgramJob(script, "", (), CompileOptions(), cache, folder, interpreter="python", all_blocks=True)
    builds = Builds(toolkit, cache, "sm_75", places_in(script), float("inf"))
    return ScriptHosted(
        Task(job, script, (), toolkit), card, driver, io.BytesIO(), lambda number: card,  # type: ignore[arg-type]
        builds=builds, extensions=Extensions(folder, cache),
    )  # fmt: skip


def launch(host: ScriptHosted, card: EmulatedCard, module: int | None, name: str) -> tuple[int, list[int]]:
    """Whether the launch was carried out, and what it wrote."""
    out, given = card.allocate(256), card.allocate(256)
    card.upload(int(given), np.arange(64, dtype=np.int32))
    packed = ctypes.create_string_buffer(struct.pack("<QQ", int(out), int(given)))
    shape = _Shape(packed_size=16, packed=ctypes.addressof(packed))
    shape.numbers[:] = [1, 1, 1, 64, 1, 1, 0, 0, 1, 1, 1, 0, 0]
    taken = host.launched(module, name.encode(), ctypes.pointer(shape), None)
    data = np.zeros(64, np.int32)
    card.download(int(out), data)
    return taken, data.tolist()


def names_in(library: Path, what: str) -> str:
    """The name under which the library registers a kernel or variable."""
    pattern = rb"\0(_ZN\d+_GLOBAL__N__[\w$]*\d" + what.encode() + rb"E(?:PiPKi)?)\0"
    (name,) = set(re.findall(pattern, library.read_bytes()))
    return name.decode()


def test_on_a_gpu_launches_of_a_library_are_checked_with_its_variables(folder: Path) -> None:
    card = EmulatedCard()
    variable = card.allocate(4)
    card.upload(int(variable), np.array([7], np.int32))
    host = on_card(folder, card, driver := Driver(int(variable)))
    library = ctypes.CDLL(str(folder / "static.so"))
    place = ctypes.cast(library.run, ctypes.c_void_p).value
    host.loaded(1, place, 16)  # type: ignore[arg-type]
    racy, calm = (names_in(folder / "static.so", name) for name in ("racy", "calm"))
    expected = [63 - k + 7 for k in range(64)]
    assert launch(host, card, 1, racy)[0] == 1
    assert launch(host, card, 1, calm) == (1, expected)
    (asked,) = set(driver.asked)  # by the name that has this build's hash in it
    assert asked.endswith("5shiftE")
    assert asked.encode() in (folder / "static.so").read_bytes()
    checks = {m.entry.split()[0]: m.checked.races for m in messages_of(host) if m.checked is not None}
    assert {name: bool(races and races.races) for name, races in checks.items()} == {
        stable(racy): True, stable(calm): False,
    }  # fmt: skip
    assert {kernel.range.path for kernel in host.tally.instances.kernels.values()} == {folder / "kernels.cu"}
    # Of a module that nobody saw being loaded the kernel is found, but where its variables lie is not known.
    assert launch(host, card, None, calm)[0] == 0
    assert "lies in the program's memory is not known" in " ".join(reasons(host))


def test_on_a_gpu_kernels_of_other_libraries_are_named(folder: Path) -> None:
    card = EmulatedCard()
    host = on_card(folder, card, Driver(0))
    place = ctypes.cast(ctypes.CDLL("libm.so.6").cos, ctypes.c_void_p).value
    host.loaded(2, place, 16)  # type: ignore[arg-type]
    assert launch(host, card, 2, "theirs")[0] == 0
    assert launch(host, card, None, "unknown")[0] == 0
    assert reasons(host) == {
        "it stands in libm.so.6, whose build was not seen",
        "its source was not compiled by NVRTC in this program",
    }


def reasons(host: ScriptHosted) -> set[str]:
    return {reason for counts in host.tally.counts.values() for reason in counts.reasons}


def test_a_library_that_a_command_builds_before_is_checked_where_it_was_copied_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``setup.py build_ext --inplace`` does it."""
    monkeypatch.chdir(folder)
    (folder / "script.py").write_text(BUILT)
    command = "mkdir -p build && nvcc -shared -Xcompiler -fPIC kernels.cu call.cpp -o build/static.so"
    given = ["run", "script.py", "--python", "--engine", "emulator", "--build"]
    done = CliRunner().invoke(main, [*given, f"{command} && cp build/static.so ."])
    assert "error 0 [65, 64, 63]" in done.stderr, done.output
    assert "2 launches on CPU emulator, exit status 0" in done.stderr
    assert "kernels.cu:7:" in done.stdout and "[confirmed]" in done.stdout
    failed = CliRunner().invoke(main, [*given, "false"])
    assert "the build command `false` failed" in failed.stdout and failed.exit_code == 2
