"""Floating-point values that all threads read from one place: what they decide is decided alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

CG = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


def checked(text: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), CG + text, PATIENT).kernels
    return report


def divergences(report: KernelReport) -> list[str]:
    return [f.message for f in report.findings if f.code is Code.BARRIER_DIVERGENCE]


SOLVE = """
// cuda-lsp: launch block=64 grid=4
__global__ void solve(float* v, double* sum, float limit) {
    cg::grid_group grid = cg::this_grid();
    cg::sync(grid);
    double left = *sum;
    int k = 1;
    while (left > limit * limit && k <= 100) {
        cg::sync(grid);
        if (threadIdx.x == 0 && blockIdx.x == 0) *sum = 0.0;
        cg::sync(grid);
        atomicAdd(sum, (double)v[grid.thread_rank()]);
        cg::sync(grid);
        left = WHERE;
        k++;
    }
}
"""


def test_a_sum_that_all_read_between_barriers_of_the_grid_ends_a_loop_for_all():
    report = checked(SOLVE.replace("WHERE", "*sum"))
    assert report.verdict is Verdict.RACE_FREE and not divergences(report)


@pytest.mark.parametrize("where", ["v[threadIdx.x]", "*sum + v[threadIdx.x]", "sum[blockIdx.x]"])
def test_what_threads_or_blocks_read_apart_does_not(where: str):
    assert divergences(checked(SOLVE.replace("WHERE", where)))


CHAIN = """
// cuda-lsp: launch block=64 grid=4
__global__ void stop(float* v, const float* limit) {
    __shared__ float best;
    if (threadIdx.x == 0) best = v[blockIdx.x];
    __syncthreads();
    float scaled = FIRST * 2.0f;
    bool done = scaled > limit[0];
    if (done) return;
    __syncthreads();
    v[blockIdx.x * 64 + threadIdx.x] = 1.0f;
}
"""


def test_a_return_by_what_is_computed_of_one_shared_number_is_for_the_whole_block():
    assert not divergences(checked(CHAIN.replace("FIRST", "best")))


def test_a_return_by_a_number_of_each_thread_is_not():
    assert divergences(checked(CHAIN.replace("FIRST", "(best + threadIdx.x)")))


def test_a_number_that_some_thread_may_be_writing_is_not_one_for_all():
    report = checked(CHAIN.replace("    __syncthreads();\n    float", "    float").replace("FIRST", "best"))
    assert report.verdict is Verdict.RACY


CHOSEN = """
// cuda-lsp: launch block=64 grid=4
__global__ void pick(float* out, const float* scores) {
    __shared__ float chosen[2];
    if (threadIdx.x == 0) { chosen[0] = scores[blockIdx.x]; chosen[1] = 3.0f; }
    __syncthreads();
    if (threadIdx.x == (int)chosen[WHICH]) out[blockIdx.x] = FACTOR;
}
"""


def test_the_thread_whose_number_is_in_shared_memory_is_one():
    assert checked(CHOSEN.replace("WHICH", "0").replace("FACTOR", "scores[threadIdx.x]")).verdict is (
        Verdict.RACE_FREE
    )


def test_threads_that_each_look_elsewhere_may_be_several():
    report = checked(CHOSEN.replace("WHICH", "threadIdx.x & 1").replace("FACTOR", "scores[threadIdx.x]"))
    assert report.verdict is not Verdict.RACE_FREE
