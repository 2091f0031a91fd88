"""What is not analysed says what to do about it, in the finding and among the reasons of the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Incomplete, NextStep
from cuda_lsp.model import Code, Position, Site, SourceRange, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.findings.words import LONGEST, incomplete

NOWHERE = SourceRange(Path("k.cu"), Position(1, 1), Position(1, 2))

RUN, PROGRAM, HEADER, BODY = (
    s.value for s in (NextStep.RUN, NextStep.PROGRAM, NextStep.HEADER, NextStep.BODY)
)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("__device__ int next(int);__global__ void k(int* a) { a[next(threadIdx.x)] = 1; }", BODY),
        (
            "struct S { virtual __device__ int at(int i); };"
            "__global__ void k(int* a, S* s) { a[s->at(threadIdx.x)] = 1; }",
            PROGRAM,
        ),
        (
            "__global__ void k(int* a, int (*at)(int)) { a[at(threadIdx.x)] = 1; }",
            PROGRAM,
        ),
        ("__global__ void k(int* a, int (*at)(int)) { a[(*at)(threadIdx.x)] = 1; }", PROGRAM),
        (
            "typedef int (*At)(int); __device__ At table[2];"
            "__global__ void k(int* a, int i) { a[table[i](threadIdx.x)] = 1; }",
            PROGRAM,
        ),
        ('__global__ void k(int* a) { asm volatile("wgmma.fence.sync.aligned;"); a[0] = 1; }', RUN),
    ],
)  # fmt: skip
def test_what_is_not_analysed_says_what_to_do(text: str, step: str) -> None:
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    found = [f for f in kernel.findings if f.code is Code.ANALYSIS_INCOMPLETE]
    assert kernel.verdict is not Verdict.RACE_FREE
    assert found and all(len(f.message) <= LONGEST and f.message.endswith(f"; {step}") for f in found)
    assert any(step in reason for reason in kernel.reasons)


def test_what_clang_does_not_know_asks_for_a_header_wherever_it_is_told():
    text = "__global__ void k(int* a) { a[threadIdx.x] = UNKNOWN_MACRO(threadIdx.x); }"
    report = check_text(Path("k.cu"), text, Settings(solver_budget=0))
    assert [e.message.endswith(HEADER) for e in report.errors] == [True]
    assert HEADER in report.kernels[0].reasons[0]


def test_a_long_reason_is_cut_and_the_step_is_not():
    statement = Incomplete("compile error", "x" * 300, Site(NOWHERE), step=NextStep.HEADER)
    assert len(incomplete(statement)) == LONGEST and incomplete(statement).endswith(f"…; {HEADER}")
