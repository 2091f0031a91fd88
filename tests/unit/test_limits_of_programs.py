"""A program under check has limits: memory with all that it starts, processes, the GPU's memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.programs.build import _WRAPPED
from cuda_lsp.dynamic.programs.guard import memory_of
from cuda_lsp.dynamic.programs.process import FLOOD, OVERDUE

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="it counts what /proc tells")

EATS = "held = bytearray(300 << 20)\nheld[::4096] = bytes(len(held[::4096]))\n"
SLEEPS = "import time\ntime.sleep(60)\n"


GUARDED = """
import json, subprocess, sys, tempfile, time
from cuda_lsp.children.sweep import adopt_orphans, end_descendants
from cuda_lsp.dynamic.programs import guard
code, memory, seconds, most, script = sys.argv[1:]
if int(most):
    guard.MOST_PROCESSES, guard.bound_processes = int(most), lambda process: None  # fork itself must not fail
adopt_orphans()
began = time.monotonic()
with tempfile.TemporaryFile() as output:
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    with guard.Guard(child, output, began + float(seconds), int(memory)) as watch:
        exec(script)
        status = child.wait()
end_descendants(guard.os.getpid())
print(json.dumps([watch.stopped, status, time.monotonic() - began]))
"""


def told(
    code: str, memory: int = 1 << 30, seconds: float = 20.0, most: int = 0, script: str = ""
) -> tuple[str | None, int, float]:
    """Why a Python program was stopped, its status, and when. ``script``: run beside it.

    In a process of its own: a guard ends everything below the process that it works in.
    """
    command = [sys.executable, "-c", GUARDED, code, str(memory), str(seconds), str(most), script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stopped, status, took = json.loads(done.stdout.splitlines()[-1])
    return stopped, status, took


def test_a_program_ends_at_its_deadline():
    stopped, status, seconds = told(SLEEPS, seconds=0.3)
    assert (stopped, status) == (OVERDUE, -signal.SIGKILL)
    assert seconds < 2.3


def test_a_program_that_ends_by_itself_is_let_be():
    assert told("raise SystemExit(3)")[:2] == (None, 3)


def test_a_flood_is_stopped():
    assert told("import sys\nwhile True: sys.stdout.write('x' * (1 << 20))")[0] == FLOOD


@on_linux
def test_memory_is_limited():
    stopped, status, _ = told(EATS + SLEEPS, memory=200 << 20)
    assert status == -signal.SIGKILL
    assert stopped is not None and "more than 200 MiB of memory" in stopped and "program-memory" in stopped


@on_linux
def test_memory_counts_with_all_that_was_started():
    each = "held = bytearray(80 << 20)\nheld[::4096] = bytes(len(held[::4096]))\n"
    family = f"import os\nfor _ in range({{}}):\n    if os.fork() == 0: break\n{each}{SLEEPS}"
    assert told(family.format(1), 250 << 20, seconds=1.0)[0] == OVERDUE  # two of 80 MiB
    stopped, _, _ = told(family.format(5), 250 << 20)
    assert stopped is not None and "more than 250 MiB" in stopped


@on_linux
def test_what_children_share_counts_once():
    code = f"import os, time\n{EATS}for _ in range(4):\n    if os.fork() == 0: break\n{SLEEPS}"
    assert told(code, memory=700 << 20, seconds=1.5)[0] == OVERDUE


@on_linux
def test_processes_are_limited():
    code = "import os, time\nfor _ in range(40):\n    if os.fork() == 0: break\n" + SLEEPS
    stopped, status, _ = told(code, most=20)
    assert status == -signal.SIGKILL
    assert stopped is not None and "more than 20 processes" in stopped


@on_linux
def test_memory_of_nothing_is_nothing():
    assert memory_of([999_999_999]) == 0 == memory_of([999_999_999], resolved=True)


@on_linux
def test_orphans_do_not_pile_up_as_zombies():
    """Each child leaves one behind, which ends as somebody else's child."""
    forks = "if os.fork() == 0: os.fork() or time.sleep(0.3); os._exit(0)"
    code = f"import os, time\nfor _ in range(50):\n    {forks}\n    os.wait()\n"
    count = "print(len(_below(guard.os.getpid())[1]))"
    look = f"time.sleep(2.0); from cuda_lsp.children.sweep import _below; {count}"
    command = [sys.executable, "-c", GUARDED, code + SLEEPS, str(1 << 30), "3.0", "0", look]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) == 0


HARNESS = r"""
#include <cuda_runtime_api.h>
#include <cstdio>
extern "C" void clsp_limit(unsigned long long, unsigned long long, void (*)(int));
static size_t given = 256;
static cudaError_t real(void** p, size_t size) {
    if (size >= (size_t)1 << 40) return *p = nullptr, cudaErrorMemoryAllocation;
    *p = (void*)(given += 256);
    return cudaSuccess;
}
extern "C" {
cudaError_t __real_cudaMalloc(void** p, size_t n) { return real(p, n); }
cudaError_t __real_cudaMallocManaged(void** p, size_t n, unsigned) { return real(p, n); }
cudaError_t __real_cudaMallocAsync(void** p, size_t n, cudaStream_t) { return real(p, n); }
cudaError_t __real_cudaMallocHost(void** p, size_t n) { return real(p, n); }
cudaError_t __real_cudaFree(void*) { return cudaSuccess; }
cudaError_t __wrap_cudaMalloc(void**, size_t);
cudaError_t __wrap_cudaMallocManaged(void**, size_t, unsigned);
cudaError_t __wrap_cudaMallocAsync(void**, size_t, cudaStream_t);
cudaError_t __wrap_cudaMallocHost(void**, size_t);
cudaError_t __wrap_cudaFree(void*);
%s
}
static int refusals[2];
int main() {
    void *a, *b, *c, *d, *e;
    clsp_limit(1000, 50, [](int pinned) { ++refusals[pinned]; });
    printf("%%d ", __wrap_cudaMalloc(&a, 600));
    printf("%%d ", __wrap_cudaMallocManaged(&b, 400, 1));
    printf("%%d ", __wrap_cudaMallocAsync(&c, 1, nullptr));
    printf("%%d ", __wrap_cudaFree(a));
    printf("%%d ", __wrap_cudaMalloc(&d, 600));
    printf("%%d ", __wrap_cudaMallocHost(&e, 51));
    printf("%%d ", __wrap_cudaMalloc(&d, ~(size_t)0));
    printf("%%d %%d\n", refusals[0], refusals[1]);
}
"""


@needs_nvcc
def test_the_memory_of_a_gpu_is_limited(tmp_path: Path):
    """The program's own runtime refuses, with the error of a device that has no more."""
    folder = resources.files("cuda_lsp.dynamic.programs") / "standin"
    libraries, source = ((folder / name).read_text() for name in ("libraries.cpp", "hooks.cpp"))
    libraries += f'const char __cuda_lsp_folder[] = "{tmp_path}/";\n'
    libraries += "const char* const __cuda_lsp_libraries[] = {nullptr};\n"
    defined = ("cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaMallocHost", "cudaFree")
    others = [name for name in _WRAPPED.findall(source) if name not in defined]
    stubs = "".join(f"int __real_{name}() {{ return 0; }}\n" for name in others)
    (tmp_path / "hooks.cpp").write_text(libraries + source)
    (tmp_path / "main.cpp").write_text(HARNESS % stubs)
    nvcc = str(find_toolkit().nvcc)
    subprocess.run([nvcc, "-std=c++17", "main.cpp", "hooks.cpp", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    memory = "2"  # cudaErrorMemoryAllocation
    assert done.stdout.split() == ["0", "0", memory, "0", "0", memory, memory, "2", "1"]
