"""Whatever a check starts ends with it: what left its session, was forked twice, or forks without end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.children.sweep import descendants, end
from cuda_lsp.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")

FORKING = """
import os, signal, sys, time
from cuda_lsp.children.sweep import adopt_orphans
adopt_orphans()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for leaves in (False, True) * 3:
    if os.fork() == 0:
        if leaves:
            os.setsid()
        if os.fork() == 0:
            with open(sys.argv[1], "a") as file:
                file.write(f"{os.getpid()}\\n")
            time.sleep(600)
        os._exit(0)
time.sleep(600)
"""
BOMB = """
import os, sys, time
from cuda_lsp.children.sweep import adopt_orphans
adopt_orphans()
with open(sys.argv[1], "a") as file:
    file.write("0\\n" * 6)
alive = 0
while True:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    alive += 1
    if alive > 50:
        os.wait()
        alive -= 1
"""


def runs(process: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def soon(condition, seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("code", [FORKING, BOMB], ids=["left its session", "forks without end"])
def test_a_process_ends_with_all_that_it_started(tmp_path: Path, code: str):
    told = tmp_path / "told"
    child = subprocess.Popen([sys.executable, "-c", code, str(told)])
    assert soon(lambda: told.exists() and len(told.read_text().splitlines()) == 6)
    below = [*descendants(child.pid), *map(int, told.read_text().split())]
    assert below
    end(child.pid)
    child.wait()
    assert soon(lambda: not any(runs(process) for process in below if process))
    assert descendants(child.pid) == []


PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
__global__ void k(int* p) { p[threadIdx.x] = threadIdx.x; }
int main(int argc, char** argv) {
    for (int i = 0; i < 4; ++i)
        if (fork() == 0) {
            if (i % 2) setsid();
            if (fork() == 0) {
                FILE* told = fopen(argv[1], "a");
                fprintf(told, "%d\\n", (int)getpid());
                fclose(told);
                sleep(600);
            }
            _exit(0);
        }
    usleep(300000);
    int* p;
    cudaMalloc(&p, 128);
    k<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    if (argc > 2) for (;;) puts("and on, and on, and on, and on, and on, and on, and on, and on, and on");
    return 0;
}
"""


@needs_nvcc
@pytest.mark.parametrize("floods", [False, True], ids=["ends", "floods"])
def test_a_program_under_check_leaves_nothing_behind(tmp_path: Path, monkeypatch, floods: bool):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    source, told = tmp_path / "p.cu", tmp_path / "told"
    source.write_text(PROGRAM)
    command = ["run", str(source), "--program", "--engine", "emulator", "--", str(told)]
    done = CliRunner().invoke(main, [*command, *(["on"] if floods else [])])
    left = [int(line) for line in told.read_text().split()]
    assert len(left) == 4
    assert soon(lambda: not any(map(runs, left)), 2.0)
    assert ("more than 256 MiB" in done.stdout + done.stderr) is floods
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 64 << 20


def test_nothing_is_below_a_process_that_has_ended():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert descendants(child.pid) == []
    end(child.pid)
    assert os.getpid() not in descendants(os.getpid())
