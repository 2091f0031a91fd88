"""Macros of launches that headers define in a branch that no text takes: the build that compiles it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport
from cuda_lsp.static.analyze import Analyzer

KERNEL = """#include "common.h"
__global__ void k(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = a[i] + 1;
}
void run(float* a, int n) { k<<<(n + THREADS - 1) / THREADS, THREADS>>>(a, n); }
"""


def report_of(folder: Path, header: str, text: str = KERNEL) -> FileReport:
    (folder / ".git").mkdir()
    (folder / "common.h").write_text(header)
    file = folder / "k.cu"
    file.write_text(text)
    analyzer = Analyzer(Settings())
    try:
        analyzer.update(file, text)
        return analyzer.settle(file)
    finally:
        analyzer.shutdown()


def test_the_branch_that_defines_a_blocks_size_is_taken(tmp_path: Path) -> None:
    report = report_of(tmp_path, "#pragma once\n#ifdef WITH_GPU\n#define THREADS 192\n#endif\n")
    launch = report.kernels[0].launches[0]
    assert launch.block == (192, 1, 1) and not launch.assumed
    assert any("WITH_GPU" in error.message for error in report.errors)


@pytest.mark.parametrize(
    "header",
    [
        "#ifdef BIG\n#define THREADS 512\n#else\n#ifdef SMALL\n#define THREADS 192\n#endif\n#endif\n",
        "#if WITH_GPU && ARCHITECTURE == 3\n#define THREADS 192\n#endif\n",
        "#undef WITH_GPU\n#ifdef WITH_GPU\n#define THREADS 192\n#endif\n",
        "#ifdef WITH_GPU\n#define THREADS 192\n#else\nenum { THREADS = 64 };\n#endif\n",
    ],
)
def test_no_branch_is_taken_that_may_be_another(tmp_path: Path, header: str) -> None:
    launch = report_of(tmp_path, header).kernels[0].launches[0]
    assert launch.block != (192, 1, 1)


def test_what_is_defined_as_the_text_stands_needs_no_other_branch(tmp_path: Path) -> None:
    report = report_of(
        tmp_path, "#ifndef PLAIN\n#define THREADS 192\n#endif\n#ifdef OTHER\nint other;\n#endif\n"
    )
    launch = report.kernels[0].launches[0]
    assert launch.block == (192, 1, 1)
    assert not any("OTHER" in error.message or "PLAIN" in error.message for error in report.errors)


def test_a_branch_that_breaks_the_kernel_is_not_kept(tmp_path: Path) -> None:
    broken = "#ifdef WITH_GPU\n#define THREADS 192\n#define blockIdx nothing\n#endif\n"
    report = report_of(tmp_path, broken)
    assert not any("WITH_GPU" in error.message for error in report.errors)
