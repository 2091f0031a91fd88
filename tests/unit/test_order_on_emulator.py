"""What one thread learns reaches others through warps, barriers, locks and flags; and no further."""

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

COMMON = """
#define WAIT(p) while (atomicAdd(p, 0) == 0) { }
#define SET(p) { __threadfence_block(); atomicExch(p, 1); }
#define BAR(what, id) asm volatile(what " " #id ", 64;" ::: "memory")
__device__ void arrive(unsigned long long* b) {
    unsigned at = __cvta_generic_to_shared(b);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at) : "memory");
}
__device__ void init(unsigned long long* b, int n) {
    unsigned at = __cvta_generic_to_shared(b);
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(n) : "memory");
}
__device__ void wait(unsigned long long* b) {
    unsigned at = __cvta_generic_to_shared(b), done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
}
"""

# name → (body, its lines left out one after the other make it racy); s: shared words, l: lane, w: warp
KERNELS = {
    "leader_sets_a_flag": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();  //-
            if (l == 0) SET(&flag)
        } else if (w == 1) {
            if (l == 0) WAIT(&flag)  //-
            __syncwarp();  //-
            o[b * 32 + l] = s[31 - l];
        }""",
    "half_a_warp_hears_of_it": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();
            if (l == 0) SET(&flag)
        } else if (w == 1 && l < 16) {
            if (l == 0) WAIT(&flag)
            __syncwarp(0xffff);  //-
            o[b * 32 + l] = s[31 - l];
        }""",
    "flag_after_flag": """
        if (w == 0 && l == 0) { s[0] = 5; SET(&flag) }
        if (w == 1 && l == 0) {
            WAIT(&flag)  //-
            SET(&other)
        }
        if (w == 2 && l == 0) { WAIT(&other) o[b] = s[0]; }""",
    "leader_takes_a_lock": """
        if (l == 0) while (atomicCAS(&flag, 0, 1)) { }  //-
        if (l == 0) __threadfence_block();
        __syncwarp();  //-
        s[31 - l] += l;
        __syncwarp();  //-
        if (l == 0) { __threadfence_block(); atomicExch(&flag, 0); }""",
    "block_takes_a_lock": """
        if (threadIdx.x == 0) { while (atomicCAS(g, 0, 1)) { } __threadfence(); }
        __syncthreads();  //-
        g[threadIdx.x + 1] += 1;
        __syncthreads();  //-
        if (threadIdx.x == 0) { __threadfence(); atomicExch(g, 0); }""",
    "other_block_is_told_by_a_leader": """
        if (b == 0 && w == 0) {
            g[32 + l] = l;
            __syncwarp();  //-
            if (l == 0) { __threadfence(); atomicExch(g, 1); }
        } else if (b == 1 && w == 0) {
            if (l == 0) WAIT(g)
            __syncwarp();  //-
            o[l] = g[63 - l];
        }""",
    "last_warp_adds": """
        unsigned n = 0;
        if (w == 0) {
            g[32 + b * 32 + l] = l;
            __syncwarp();  //-
            if (l == 0) { __threadfence(); n = atomicAdd(g, 1); }
            if (__shfl_sync(~0u, n, 0) == 1) o[l] = g[63 - l] + g[95 - l];
        }""",
    "last_block_resets_the_counter": """
        if (threadIdx.x == 0) {
            __threadfence();
            if (atomicAdd(g, 1) == 1)  //-
                g[0] = 0;
        }""",
    "named_barriers_in_a_chain": """
        if (w == 0) {
            s[l] = l;
            BAR("bar.arrive", 1);
        } else if (w == 1) {
            BAR("bar.sync", 1);
            BAR("bar.arrive", 2);
        } else {
            BAR("bar.sync", 2);
            o[b * 32 + l] = s[31 - l];
        }""",
    "elected_arrival": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();  //-
            if (l == 0) arrive(&once);
        } else if (w == 1) {
            wait(&once);  //-
            o[b * 32 + l] = s[31 - l];
        }""",
    "one_lane_waits_for_two_warps": """
        if (w == 0) {
            s[l] = l;
            __syncwarp();
            if (l == 0) arrive(&once);
        } else {
            if (w == 1 && l == 0) wait(&once);
            BAR("bar.sync", 1);  //-
            o[b * 64 + threadIdx.x - 32] = s[31 - l];
        }""",
    "one_lane_waits_long_before_a_named_barrier": """
        if (w == 0) {
            s[l] = l;
            for (int k = 0; k < 40; ++k) atomicAdd(g, 1);
            __syncwarp();
            if (l == 0) arrive(&once);
        } else {
            if (w == 1 && l == 0) wait(&once);
            BAR("bar.sync", 1);  //-
            o[b * 64 + threadIdx.x - 32] = s[31 - l];
        }""",
    "arrival_after_a_wait": """
        if (w == 0) {
            s[l] = l;
            arrive(&all);
        } else if (w == 1) {
            wait(&all);  //-
            arrive(&rest);
        } else {
            wait(&rest);
            o[b * 32 + l] = s[31 - l];
        }""",
}

RACY = {
    "stored_behind_an_arrival": 'if (w == 0) { BAR("bar.arrive", 1); s[l] = l; }'
    ' else if (w == 1) { BAR("bar.sync", 1); o[b * 32 + l] = s[31 - l]; }',
    "arrived_before_the_wait": """
        if (w == 0) { s[l] = l; BAR("bar.arrive", 1); }
        else if (w == 1) { BAR("bar.arrive", 2); BAR("bar.sync", 1); }
        else { BAR("bar.sync", 2); o[b * 32 + l] = s[31 - l]; }""",
    "learned_behind_the_arrival": """
        if (w == 0) { s[l] = l; arrive(&all); }
        else if (w == 1) { arrive(&rest); wait(&all); }
        else { wait(&rest); o[b * 32 + l] = s[31 - l]; }""",
    "exchange_that_fails": """
        if (threadIdx.x == 0) { s[0] = 1; __threadfence_block(); atomicCAS(&flag, 5, 6); }
        if (threadIdx.x == 32 && atomicAdd(&flag, 0) == 0) o[b] = s[0];""",
    "flag_of_block_scope": """
        if (b == 0 && threadIdx.x == 0) { g[1] = 3; __threadfence(); atomicExch_block(g, 1); }
        if (b == 1 && threadIdx.x == 0) { while (atomicAdd_block(g, 0) == 0) { } o[0] = g[1]; }""",
    "fence_of_block_scope": """
        if (b == 0 && threadIdx.x == 0) { g[1] = 3; __threadfence_block(); atomicExch(g, 1); }
        if (b == 1 && threadIdx.x == 0) { WAIT(g) o[0] = g[1]; }""",
}


def broken(body: str) -> list[str]:
    """The body without each of its marked lines."""
    lines = body.splitlines()
    return ["\n".join(lines[:k] + lines[k + 1 :]) for k, line in enumerate(lines) if line.endswith("//-")]


def kernel(name: str, body: str) -> str:
    return f"""extern "C" __global__ void {name}(int* o, int* g) {{
    __shared__ int s[32], flag, other;
    __shared__ unsigned long long once, all, rest;
    unsigned l = threadIdx.x % 32, w = threadIdx.x / 32, b = blockIdx.x;
    if (w == 0) s[l] = 0;
    if (threadIdx.x == 0) {{ flag = other = 0; init(&once, 1); init(&all, 32); init(&rest, 32); }}
    __syncthreads();
{body}
}}
"""


ORDERED = {name: kernel(name, body) for name, body in KERNELS.items()}
UNORDERED = {
    f"{name}_{k}": kernel(f"{name}_{k}", text)
    for name, body in KERNELS.items()
    for k, text in enumerate(broken(body))
} | {name: kernel(name, body) for name, body in RACY.items()}


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "kernels.cu"
    path.write_text(text := COMMON + "".join((*ORDERED.values(), *UNORDERED.values())))
    return compile_module(
        path, text, CompileOptions(extra=("-arch=sm_90",)), Level.O0, find_toolkit(), path.parent / "cache"
    )


def outcome(module, entry):
    arguments = tuple(Argument(n, bytes(8), ((0, Buffer(n, np.zeros(1024, np.uint8))),)) for n in ("o", "g"))
    launch = LaunchConfig((96, 1, 1), (2, 1, 1), 0)
    run = KernelRun(module.ptx, entry, launch, arguments, sites_of(module, entry), deadline=60.0)
    return EmulatorEngine().run(run, lambda stage: None)


@pytest.mark.parametrize("entry", ORDERED)
def test_what_orders_threads_is_followed(module, entry):
    result = outcome(module, entry)
    assert result.failure is None and result.races == ()


@pytest.mark.parametrize("entry", UNORDERED)
def test_what_does_not_is_not(module, entry):
    result = outcome(module, entry)
    assert result.failure is None and result.races
