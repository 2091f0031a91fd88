"""Threads that wait for one another in loops: what ends ends, what does not is proved; locks order."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.model import LaunchConfig

pytestmark = needs_nvcc
TEXT = """
__device__ __noinline__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
extern "C" {
__global__ void lock(int* o) {
    __shared__ int taken, sum;
    if (threadIdx.x == 0) taken = sum = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&taken, 0, 1) == 0) {
            __threadfence_block();
            sum += threadIdx.x;
            __threadfence_block();
            atomicExch(&taken, 0);
            done = true;
        }
    __syncthreads();
    o[threadIdx.x] = sum;
}
__global__ void lock_without_fences(int* o) {
    __shared__ int taken, sum;
    if (threadIdx.x == 0) taken = sum = 0;
    __syncthreads();
    while (atomicCAS(&taken, 0, 1) != 0) { }
    sum += threadIdx.x;
    atomicExch(&taken, 0);
    __syncthreads();
    o[threadIdx.x] = sum;
}
__global__ void never_unlocked(int* o) {
    __shared__ int taken;
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    while (atomicCAS(&taken, 0, 1) != 0) { }
    o[threadIdx.x] = 1;
}
__global__ void stores_for_ever(volatile int* o) {
    while (true) { o[1] = 3; }
}
__global__ void lane_behind(volatile int* o) {
    if (threadIdx.x == 0) while (o[0] == 0) { }
    else if (threadIdx.x == 1) o[0] = 1;
    if (threadIdx.x == 0) o[1] = 2;
}
__global__ void flag_that_nobody_sets(volatile int* o) { while (o[0] == 0) { } }
__global__ void named_barrier_with_too_few(int* o) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    o[threadIdx.x] = 1;
}
__global__ void partial_masks(int* o) {
    int v = threadIdx.x;
    if (v & 1) {
        if (v & 2) v = __shfl_sync(0x88888888u, v, 3); else v = __shfl_sync(0x22222222u, v, 1);
        __syncwarp(0xaaaaaaaau);
        v += __reduce_add_sync(0xaaaaaaaau, 1);
    }
    __syncwarp();
    o[threadIdx.x] = v;
}
__global__ void two_masks_at_once(int* o) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = 0;
    if (t % 32 < 8) {
        if (t % 32 == 0)
            for (int k = 0; k < 20; ++k) s[t] += k;
        __syncwarp(0xff);
        s[t] = 5;
    }
    __syncwarp();
    o[t] = s[t / 32 * 32 + t % 8];
}
__global__ void counted_after_exits(int* o) {
    if (threadIdx.x < 48) o[threadIdx.x] = __syncthreads_count(threadIdx.x < 20);
}
__global__ void bounded_recursion(int* o) { o[threadIdx.x] = factorial(threadIdx.x % 10); }
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("waiting") / "kernels.cu"
    path.write_text(TEXT)
    return compile_module(path, TEXT, CompileOptions(), Level.O0, find_toolkit(), path.parent / "cache")


def outcome(module, entry, deadline=20.0):
    argument = Argument("o", bytes(8), ((0, Buffer("o", np.zeros(256, np.uint8))),))
    launch = LaunchConfig((64, 1, 1), (1, 1, 1), 0)
    run = KernelRun(module.ptx, entry, launch, (argument,), sites_of(module, entry), deadline=deadline)
    return EmulatorEngine(keep_results=True).run(run, lambda stage: None)


def words(result):
    return result.results["o"].view(np.int32)


def test_a_lock_orders_what_its_holders_do(module):
    result = outcome(module, "lock")
    assert result.failure is None and result.races == ()
    assert (words(result) == sum(range(64))).all()


def test_a_lock_without_fences_orders_nothing(module):
    assert outcome(module, "lock_without_fences").races


def test_a_lane_waits_for_one_behind_it(module):
    assert words(outcome(module, "lane_behind"))[:2].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("entry", "waits", "text"),
    [
        ("never_unlocked", 63, "taken"),
        ("flag_that_nobody_sets", 64, "o[0]"),
        ("stores_for_ever", 64, "o[1]"),
    ],
)
def test_a_loop_that_nobody_ends_is_named_before_the_deadline(module, entry, waits, text):
    result = outcome(module, entry, deadline=60)
    assert result.failure is not None and "for what no thread does" in result.failure
    (stuck,) = result.stuck
    assert stuck.spinning
    ((site, count, _),) = stuck.waiting
    assert count == waits
    assert text in sites_of(module, entry)[site].site.text


def test_a_named_barrier_that_too_few_reach_is_named(module):
    result = outcome(module, "named_barrier_with_too_few")
    assert result.failure is not None and result.stuck[0].waiting[0][1] == 32


def test_lanes_exchange_under_the_masks_that_they_name(module):
    expected = [v if v % 2 == 0 else (3 if v % 4 == 3 else 1) + v // 32 * 32 + 16 for v in range(64)]
    assert words(outcome(module, "partial_masks")).tolist() == expected


def test_lanes_wait_for_those_whom_they_name_and_no_others(module):
    result = outcome(module, "two_masks_at_once")
    assert result.races == ()
    assert (words(result) == 5).all()


def test_a_barrier_counts_those_who_have_not_left(module):
    result = outcome(module, "counted_after_exits")
    assert (words(result)[:48] == 20).all() and result.stuck[0].exited == 16


def test_recursion_is_followed_as_deep_as_it_goes(module):
    assert words(outcome(module, "bounded_recursion"))[:6].tolist() == [1, 1, 2, 6, 24, 120]
