"""Programs that a command of their own builds: followed, built again for the check, run on the emulator."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.programs.build_command import BuildJob
from cuda_lsp.dynamic.programs.recorder import record
from cuda_lsp.dynamic.runner import CheckCancelled, Runner

pytestmark = [
    needs_nvcc,
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make"),
    pytest.mark.usefixtures("own_cache"),
]

SHIFT = """#include "shift.h"
__global__ void shift(int* p) {
    __shared__ int s[64 * SCALE];
    s[threadIdx.x] = p[threadIdx.x];
    p[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
void start(int* p, int n) { shift<<<1, n>>>(p); }
"""
APP = """#include <cstdio>
#include <cstdlib>
#include "shift.h"
int main(int argc, char** argv) {
    int n = atoi(argv[1]), read = 0;
    int* p;
    cudaMalloc(&p, n * sizeof(int));
    start(p, n);
    printf("%s n %d host %d read %d\\n", argv[0], n, host(n), scanf("%d", &read) == 1 ? read : -1);
    printf("preloaded %s\\n", getenv("LD_PRELOAD"));
    return cudaDeviceSynchronize();
}
"""
MAKEFILE = """NVCC ?= nvcc
FLAGS = -O3 -std=c++17 -Iinclude -DSCALE=2
app: app.o libshift.a host.o
\t$(NVCC) $(FLAGS) $^ -o $@
libshift.a: shift.o
\tar rcs $@ $^
%.o: %.cu
\t$(NVCC) $(FLAGS) -c $< -o $@
host.o: host.cpp
\tg++ -Iinclude -c host.cpp -o host.o
run: app
\techo 7 > input
\t./app 32 < input
"""
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(demo CXX CUDA)
add_library(shift STATIC shift.cu)
add_library(hosted SHARED host.cpp)
target_include_directories(shift PUBLIC include)
target_include_directories(hosted PUBLIC include)
target_compile_definitions(shift PUBLIC SCALE=2)
add_executable(app app.cu)
set_target_properties(app PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(app shift hosted)
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/shift.h").write_text("void start(int* p, int n);\nint host(int);\n")
    (tmp_path / "shift.cu").write_text(SHIFT)
    (tmp_path / "app.cu").write_text(APP)
    (tmp_path / "host.cpp").write_text('#include "shift.h"\nint host(int n) { return 2 * n; }\n')
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(file: str, *options: str):
    return CliRunner().invoke(main, ["run", file, "--engine", "emulator", *options])


def test_make_tells_the_sources_and_make_run_how_the_program_is_called(project, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    done = run("shift.cu", "--build", "make", "--run", "make run")
    assert "preloaded libm.so.6\n" in done.stderr
    assert "./app n 32 host 64 read 7" in done.stderr
    assert "1 launches on CPU emulator, exit status 0" in done.stderr
    assert "shift.cu:5:22: shared-race [confirmed]" in done.stdout
    again = run("app.cu", "--build", "make", "--run", "./app 16")  # nothing is left to build
    assert "./app n 16 host 32 read -1" in again.stderr
    assert "[confirmed]" in again.stdout


SECOND = """__global__ void same(int* p) { p[0] = threadIdx.x; }
int main() { int* p; cudaMalloc(&p, 256); same<<<1, 64>>>(p); return cudaDeviceSynchronize(); }
"""


def test_a_run_command_that_starts_several_programs_or_one_several_times_checks_all(project):
    (project / "second.cu").write_text(SECOND)
    with (project / "Makefile").open("a") as makefile:
        makefile.write("second: second.cu\n\t$(NVCC) second.cu -o second\n")
        makefile.write("all: app second\nboth: all\n\t./app 32\n\t./app 16\n\t./second\n\t./app 16\n")
    done = run("shift.cu", "--build", "make all", "--run", "make both")
    assert "./app n 32 host 64" in done.stderr
    assert "./app n 16 host 32" in done.stderr
    assert "3 launches on CPU emulator, exit status 0" in done.stderr
    assert "second.cu:1:" in done.stdout
    assert "shift was launched 2 times by the program, 2 checked" in done.stdout
    assert "starts 4 programs with CUDA, 3 different calls: 3 were checked" in done.stdout
    first = run("shift.cu", "--build", "make all", "--run", "make both", "--first")
    assert "1 launches on CPU emulator" in first.stderr
    assert "the first was checked" in first.stdout
    assert "second.cu" not in first.stdout


def test_the_settings_may_name_the_commands(project):
    (project / "cuda-lsp.toml").write_text('build-command = "make"\nrun-command = "./app 32"\n')
    done = run("shift.cu", "--program")
    assert "./app n 32" in done.stderr
    assert "[confirmed]" in done.stdout


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
def test_cmake_with_libraries_and_separable_compilation(project):
    (project / "CMakeLists.txt").write_text(CMAKE)
    found = run(
        "shift.cu", "--build", "PATH=$PATH:/usr/local/cuda/bin cmake -S . -B build && cmake --build build",
        "--run", "build/app 32",
    )  # fmt: skip
    assert "build/app n 32 host 64" in found.stderr, found.output
    assert "[confirmed]" in found.stdout


def test_a_build_that_fails_shows_its_last_words(project):
    (project / "host.cpp").write_text("int broken(")
    done = run("shift.cu", "--build", "make")
    assert "the build command `make` failed in " in done.stdout
    assert "host.cpp" in done.stdout
    assert done.exit_code == 2


def test_a_command_that_is_not_there_is_told(project):
    assert "`no-such-tool` was not found" in run("shift.cu", "--build", "no-such-tool").stdout


def test_a_build_with_nothing_to_do_that_was_never_seen_is_told(project):
    subprocess.run(["make", "NVCC=true", "-t"], check=True, capture_output=True)
    assert "build afresh once" in run("shift.cu", "--build", "make").stdout


def test_of_several_programs_the_one_with_the_file_is_meant_or_one_must_be_named(project):
    rule = "all: app other\nother: other.cu shift.cu host.cpp\n\tnvcc -Iinclude -DSCALE=1 $^ -o other\n"
    (project / "other.cu").write_text(APP.replace('printf("', 'printf("the other '))
    (project / "Makefile").write_text(rule.replace("nvcc", "$(NVCC)") + MAKEFILE)
    several = run("shift.cu", "--build", "make")
    assert "makes app, other: name the one to check" in several.stdout
    assert "the other ./other n 8" in run("shift.cu", "--build", "make", "--run", "./other 8").stderr
    meant = run("other.cu", "--build", "make", "--", "8")
    assert "the other" in meant.stderr
    (project / "alone.cu").write_text("__global__ void k() {}\n")
    assert "makes no program of alone.cu; it makes app, other" in run("alone.cu", "--build", "make").stdout


def test_a_run_command_that_starts_another_program_is_told(project):
    assert "`true` starts no program" in run("shift.cu", "--build", "make", "--run", "true").stdout


def test_device_code_of_several_sources_is_linked(project):
    (project / "app.cu").write_text(APP.replace("int main", "__device__ int far();\n__global__ void k(int* p)"
        " { *p = far(); }\nint main").replace("start(p, n);", "start(p, n);\nk<<<1, 1>>>(p);"))  # fmt: skip
    (project / "host.cu").write_text("__device__ int far() { return 1; }\nint host(int n) { return n; }\n")
    (project / "Makefile").write_text(
        "app: app.cu shift.cu host.cu\n\tnvcc -rdc=true -Iinclude -DSCALE=1 $^ -o app\n"
    )
    done = run("app.cu", "--build", "PATH=$PATH:/usr/local/cuda/bin make", "--run", "./app 8")
    assert "k was launched once by the program, 1 checked" in done.stdout
    assert "exit status 0" in done.stderr


def test_cancelling_ends_the_build_and_all_it_started(tmp_path):
    job = BuildJob(tmp_path / "a.cu", tmp_path, "echo $$ > started; sleep 60; true", "", tmp_path / "cache")
    started = tmp_path / "started"
    runner = Runner()
    with pytest.raises(CheckCancelled):
        runner.run_build(job, cancelled=started.exists)
    shell = started.read_text().strip()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{shell}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{shell}").exists()
    runner.close()


def test_a_check_that_waits_for_its_turn_is_cancelled_at_once(tmp_path):
    first = BuildJob(tmp_path / "a.cu", tmp_path, "touch started; sleep 60", "", tmp_path / "cache")
    runner, stop = Runner(), threading.Event()

    def long() -> None:
        with pytest.raises(CheckCancelled):
            runner.run_build(first, cancelled=stop.is_set)

    thread = threading.Thread(target=long)
    thread.start()
    while not (tmp_path / "started").exists():
        time.sleep(0.02)
    with pytest.raises(CheckCancelled):
        runner.run_build(first, cancelled=lambda: True)
    assert thread.is_alive()  # it did not wait for the other to end
    stop.set()
    thread.join()
    runner.close()


def test_the_cache_may_have_blanks_in_its_name(tmp_path):
    (tmp_path / "a.c").write_text("int one;\n")
    cache, end = tmp_path / "a cache: mine", time.monotonic() + 60
    done, started = record("gcc -c a.c -o a.o", tmp_path, find_toolkit(), cache, end)
    assert done.status == 0 and done.output == ""
    assert any("a.c" in one.arguments for one in started)
    assert all("LD_PRELOAD" not in one.environment for one in started)
