"""A race that only a late round of a long loop brings: a check confirms it, or says why it does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked
from cuda_lsp.confirm import CheckOptions, check_kernels, kernel_jobs
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import Code, Finding, KernelReport, Status
from cuda_lsp.readings import Reading

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]

KERNEL = """__global__ void k(float* out, PARAMETERS) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = t;
    float sum = 0;
    BODY
    out[blockIdx.x * 256 + t] = sum;
}
void go(float* p) { LAUNCH; }
"""
ROUND = "__syncthreads(); if (WHEN) { sum += s[(t + 1) % 256]; s[t] = 1; }"

SHAPES = {
    "constant": ("int n", f"for (int i = 0; i < 10000; ++i) {{ {ROUND} }}", "i == 5000", "RUN(p, 1)"),
    "argument": ("int n", f"for (int i = 0; i < n; ++i) {{ {ROUND} }}", "i == 5000", "RUN(p, 10000)"),
    "last": ("int n", f"for (int i = 0; i < n; ++i) {{ {ROUND} }}", "i == n - 1", "RUN(p, 10000)"),
    "unknown": ("int n", f"for (int i = 0; i < n; ++i) {{ {ROUND} }}", "i == 9999", ""),
    "nested": (
        "int n",
        f"for (int i = 0; i < 100; ++i) for (int j = 0; j < n; ++j) {{ {ROUND} }}",
        "i == 99 && j == 73",
        "RUN(p, 100)",
    ),
    "while": ("int n", f"int i = n; while (i > 0) {{ i -= 3; {ROUND} }}", "i <= 0", "RUN(p, 30000)"),
    "data": ("const int* n", f"for (int i = 0; i < n[0]; ++i) {{ {ROUND} }}", "i == 5000", ""),
    "behind": (
        "int n",
        "for (int i = 0; i < n; ++i) { __syncthreads(); sum += s[(t + i) % 256];"
        " if (i < n - 1) __syncthreads(); } s[t] = 0;",
        "",
        "RUN(p, 10000)",
    ),
    "inner loop": (
        "const float* a, int n",
        "for (int i = 0; i < n; ++i) { s[t] = a[i * 256 + t]; __syncthreads();"
        " for (int j = 0; j < 16; ++j) sum += s[(t + 16 * j) % 256]; if (i != n - 2) __syncthreads(); }",
        "",
        "RUN(p, p, 10000)",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def text_of(parameters: str, body: str, when: str, launch: str) -> str:
    text = KERNEL.replace("PARAMETERS", parameters).replace("BODY", body)
    return text.replace("WHEN", when).replace("LAUNCH", launch.replace("RUN", "k<<<8, 256>>>"))


def clicked(path: Path, runner: Runner, deadline: float = 60.0) -> KernelReport:
    """The kernel's report after a check of it. A machine that does other things has three times as long."""
    options = CheckOptions(EngineKind.EMULATOR, deadline=deadline)
    plan = Asked(plan=lambda analyzer, text, report: kernel_jobs(options, (), analyzer, text, report))
    found = analysed(Reading(path), plan, lambda report: None)
    (kernel,) = check_kernels(found.report, found.planned, runner).kernels
    return kernel


def shared(kernel: KernelReport) -> list[Finding]:
    return [f for f in kernel.findings if f.code is Code.SHARED_RACE]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_race_of_a_late_round_is_confirmed(shape: str, runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(text_of(*SHAPES[shape]))
    kernel = clicked(path, runner)
    assert shared(kernel), kernel
    assert {f.status for f in shared(kernel)} == {Status.CONFIRMED}, kernel
    assert not any(f.missed for f in shared(kernel))


FAR = "for (int i = 0; i < n; ++i) { __syncthreads(); sum += s[(t + (i == n - 1)) % 256]; s[t] = i; }"


def test_a_round_that_cannot_be_reached_in_time_is_told(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(text_of("int n", FAR, "", "RUN(p, 1000000000)"))
    kernel = clicked(path, runner, deadline=8.0)
    assert shared(kernel)
    assert {f.status for f in shared(kernel)} <= {Status.PROVED, Status.CONDITIONAL, Status.POSSIBLE}
    assert any("did not finish before the deadline" in note for note in kernel.notes), kernel.notes
    assert any("the run that was to show it did not come to its end" in n for n in kernel.notes), kernel.notes
    assert any("block 0 alone did not come to its end either" in n for n in kernel.notes), kernel.notes


def test_a_run_that_was_too_short_for_a_loop_says_with_what_it_was_made(
    runner: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "k.cu"
    path.write_text(text_of("int n", FAR.replace("n - 1", "9000000"), "", ""))
    kernel = clicked(path, runner)
    (found,) = shared(kernel)
    assert found.status is Status.NOT_OBSERVED
    assert "not seen on CPU emulator with `n` == " in found.message


MANY_BLOCKS = """__global__ void k(int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    if (blockIdx.x != 70000) __syncthreads();
    out[blockIdx.x * 64 + t] = s[(t + 1) % 64];
}
void go(int* p) { k<<<100000, 64>>>(p); }
"""


def test_the_block_of_a_witness_runs_however_large_the_grid(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(MANY_BLOCKS)
    assert {f.status for f in shared(clicked(path, runner))} == {Status.CONFIRMED}
