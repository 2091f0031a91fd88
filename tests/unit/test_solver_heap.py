"""Memory of one question serves the next: contexts of Z3 that follow one another take no new pages."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, z3
from cuda_lsp.static.solver.heap import keep_memory
keep_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def ask():
    context = z3.Context()
    solver = z3.SimpleSolver(ctx=context)
    x = z3.Int("x", context)
    solver.add(x > 3, x * x < 2)
    solver.check()
for _ in range(5):
    ask()
    pieces = [bytearray(12 << 20) for _ in range(4)]
    del pieces
before = faults()
for _ in range(20):
    ask()
    pieces = [bytearray(12 << 20) for _ in range(4)]
    del pieces
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides by itself")
def test_questions_take_no_new_pages() -> None:
    told = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 2000
