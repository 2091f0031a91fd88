"""Variables in branches of an execution: assigned there, whatever other lanes hold; joined behind both."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text


def checked(body: str, launch: str = "block=64 grid=4", solver: int = 0) -> KernelReport:
    text = f"// cuda-lsp: launch {launch}\n__global__ void k(int* a, const int* b, int n, int m) {{ {body} }}"
    (report,) = check_text(Path("k.cu"), text, Settings(solver_budget=solver)).kernels
    return report


REDUCE = """
    __shared__ int s[64];
    int t = threadIdx.x;
    int i;
    s[t] = b[t];
    __syncthreads();
    if (CONDITION) {
        for (i = 1; i < 64; i = 2 * i) {
            if (t % (2 * i) == 0) s[t] += s[t + i];
            __syncthreads();
        }
        if (t == 0) a[blockIdx.x] = s[0];
    } else {
        for (i = 2; i < 64; i = 2 * i) {
            if (t % (2 * i) == 0) s[t] += s[t + i];
            BARRIER
        }
    }
"""


@pytest.mark.parametrize("condition", ["blockIdx.x == 1", "n == 64", "blockIdx.x != n - 1"])
def test_a_counter_that_a_branch_sets_is_not_what_it_was_elsewhere(condition: str):
    free = checked(REDUCE.replace("CONDITION", condition).replace("BARRIER", "__syncthreads();"))
    assert not [f for f in free.findings if f.code is Code.BARRIER_DIVERGENCE]
    racy = checked(REDUCE.replace("CONDITION", condition).replace("BARRIER", ""), solver=20_000)
    assert Code.SHARED_RACE in {f.code for f in racy.findings}


def test_behind_a_branch_each_lane_has_what_it_assigned():
    body = "int x = threadIdx.x; if (threadIdx.x < 32) { x = 63 - threadIdx.x; } a[blockIdx.x * 64 + x] = n;"
    assert checked(body).verdict is Verdict.RACY  # 63 and 0 both store to 63


def test_behind_an_unknown_branch_both_values_are_possible():
    body = "int x = threadIdx.x; if (b[threadIdx.x]) { x = 0; } a[blockIdx.x * 64 + x] = threadIdx.x;"
    assert checked(body).verdict is not Verdict.RACE_FREE


def test_lanes_that_left_keep_what_they_assigned():
    body = """
        int x = threadIdx.x;
        do {
            if (threadIdx.x >= 32) { x = threadIdx.x - 32; break; }
            x = threadIdx.x;
        } while (false);
        a[blockIdx.x * 64 + x] = threadIdx.x;
    """
    assert checked(body).verdict is Verdict.RACY


def test_a_loop_of_some_lanes_leaves_the_counter_of_others():
    body = """
        int i = threadIdx.x;
        if (threadIdx.x < 4) { for (i = 0; i < 40; ++i) a[blockIdx.x * 64 + threadIdx.x] = i; }
        a[blockIdx.x * 64 + i] = n;
    """
    assert checked(body).verdict is Verdict.RACY  # thread 40 and the first four


def test_a_condition_that_all_share_leaves_one_value_for_all():
    body = """
        __shared__ int s[64];
        int rounds = 1;
        if (n > 2) rounds = 5;
        for (int i = 0; i < rounds; ++i) { s[threadIdx.x] = i; __syncthreads(); }
    """
    assert not [f for f in checked(body).findings if f.code is Code.BARRIER_DIVERGENCE]
    body = body.replace("n > 2", "b[threadIdx.x] > 2")
    assert [f for f in checked(body).findings if f.code is Code.BARRIER_DIVERGENCE]
