"""Kernels of shared libraries that a program's own build makes: linked with it, or opened as it runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from no_gpu import ran_on_no_gpu
from shared_libraries import written
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.programs.build import build
from cuda_lsp.dynamic.programs.build_command import BuildJob, follow
from cuda_lsp.dynamic.programs.job import ProgramJob

pytestmark = [
    needs_nvcc,
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make"),
    pytest.mark.usefixtures("own_cache"),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(file: str, *options: str):
    return CliRunner().invoke(main, ["run", file, "--engine", "emulator", *options])


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_a_library_that_the_program_is_linked_with_is_checked_on_its_own_lines(project, barrier, racy):
    written(project, barrier)
    done = run("app.cu", "--build", "make", "--run", "./linked")
    assert "linked 164 264, no error" in done.stderr, done.output
    assert ("turn.cuh:6" in done.stdout and "[confirmed]" in done.stdout) == racy


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_libraries_that_the_program_opens_are_checked_each_with_its_own_kernel_of_one_name(
    project, barrier, racy
):
    written(project, barrier)
    done = run("first.cu", "--build", "make", "--run", "./opened ./libfirst.so libsecond.so")
    assert "./libfirst.so: 164, libsecond.so: 264, no error" in done.stderr, done.output
    assert "2 launches on CPU emulator" in done.stderr
    assert "turn(int*) (second.cu) was launched once by the program, 1 checked" in done.output
    assert ("turn.cuh:6" in done.stdout and "[confirmed]" in done.stdout) == racy


@pytest.mark.parametrize(
    ("file", "target", "words"), [("app.cu", "linked", ()), ("first.cu", "opened", ("./libfirst.so",))]
)
def test_on_a_gpu_launches_of_libraries_come_to_the_program_s_hooks(
    project: Path, file: str, target: str, words: tuple[str, ...]
) -> None:
    written(project, "")
    toolkit, cache = find_toolkit(), project / "cache"
    built = follow(BuildJob(project / file, project, "make", f"./{target}", cache), lambda stage: None)
    assert built.problem is None
    of = built.made_of
    text = (project / file).read_text()
    job = ProgramJob(project / file, text, (), CompileOptions(), cache, project, link=of.link, built=of.units,
                     libraries=of.libraries, needs=of.needs)  # fmt: skip
    program = build(job, toolkit, architecture=90)
    said = ran_on_no_gpu(project, program, words)
    numbers = {unit.path.name: unit.library for unit in of.units}
    launched = [f"launch _Z4turnPi$library{numbers[name]} 1 64" for name in ("first.cu", "second.cu")]
    variables = [f"variable added$library{numbers[name]} 4" for name in ("first.cu", "second.cu")]
    count = 1 if words else 2  # of the libraries that are there
    assert [line for line in said if line.startswith("launch")] == launched[:count]
    assert sorted(line for line in said if line.startswith("variable")) == sorted(variables[:count])


CMAKE = """cmake_minimum_required(VERSION 3.18)
project(demo CXX CUDA)
add_library(first SHARED first.cu)
target_compile_definitions(first PRIVATE NAME=first ADDED=163)
set_target_properties(first PROPERTIES VERSION 1.2 SOVERSION 1)
add_library(second MODULE second.cu)
target_compile_definitions(second PRIVATE NAME=second ADDED=263)
set_target_properties(second PROPERTIES CUDA_SEPARABLE_COMPILATION ON PREFIX "")
target_link_options(second PRIVATE -Wl,--no-undefined)
add_executable(app app.cpp opening.cpp)
target_include_directories(app PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_link_libraries(app first ${CMAKE_DL_LIBS} -L/usr/local/cuda/lib64 -lcudart)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
def test_libraries_of_cmake_linked_and_opened_by_a_program_without_device_code(project: Path) -> None:
    """One has a version in its name; the program finds the other one beside itself."""
    written(project, "")
    (project / "CMakeLists.txt").write_text(CMAKE)
    (project / "app.cpp").write_text('extern "C" void first(int*);\nvoid (*linked)(int*) = first;\n')
    opening = (project / "opening.cpp").read_text()
    here = 'char own[999] = {}; readlink("/proc/self/exe", own, 900);'
    here += " strcpy(strrchr(own, '/') + 1, \"second.so\");"
    opening = opening.replace("int *p, host = 0;", f"int *p, host = 0; {here} names[count - 1] = own;")
    (project / "opening.cpp").write_text(f"#include <string.h>\n#include <unistd.h>\n{opening}")
    build = "PATH=$PATH:/usr/local/cuda/bin cmake -S . -B build && cmake --build build"
    done = run("second.cu", "--build", build, "--run", "build/app libfirst.so.1 beside")
    assert "libfirst.so.1: 164, " in done.stderr and "second.so: 264, no error" in done.stderr, done.output
    assert "2 launches on CPU emulator, exit status 0" in done.stderr
    assert "turn.cuh:6" in done.stdout
