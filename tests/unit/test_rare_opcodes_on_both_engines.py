"""Opcodes that programs write as inline assembler: both engines see the same meetings, fences and costs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from both_engines import ENGINES, outcome_on
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level, RunOutcome
from cuda_lsp.model import LaunchConfig

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]

# Name: what threads ``t`` of blocks ``b`` do, and whether they race. Two blocks of 64 threads.
KERNELS = {
    "lanes_meet_where_one_is_elected": (
        """s[t] = t;
        asm volatile("{ .reg .pred p; elect.sync _|p, -1; }" ::: "memory");
        out[64 * b + t] = s[t ^ 1];""",
        False,
    ),
    "half_the_lanes_meet": (
        """s[t] = t;
        if (t % 32 < 16) asm volatile("{ .reg .pred p; elect.sync _|p, 0xffff; }" ::: "memory");
        out[64 * b + t] = s[t ^ 16];""",
        True,
    ),
    "a_fence_of_the_cluster": (
        """if (t == 0) { s[0] = 1; CLUSTER_FENCE; atomicExch(f, 1u); }
        if (t == 32) { while (!atomicAdd(f, 0u)) { } CLUSTER_FENCE; out[64 * b] = s[0]; }""",
        False,
    ),
    "a_fence_of_barrier_objects_only": (
        """if (t == 0) { s[0] = 1; INIT_FENCE; atomicExch(f, 1u); }
        if (t == 32) { while (!atomicAdd(f, 0u)) { } INIT_FENCE; out[64 * b] = s[0]; }""",
        True,
    ),
    "an_update_that_orders_the_whole_device": (
        """unsigned old;
        if (t == 0 && b == 0) {
            out[1] = 1;
            asm volatile("atom.acq_rel.global.exch.b32 %0, [%1], 1;" : "=r"(old) : "l"(out) : "memory");
        }
        if (t == 0 && b == 1) {
            do asm volatile("atom.acq_rel.global.or.b32 %0, [%1], 0;" : "=r"(old) : "l"(out) : "memory");
            while (!old);
            out[2] = out[1];
        }""",
        False,
    ),
}
KERNEL = """extern "C" __global__ void %s(unsigned* out) {
    __shared__ unsigned s[64], f[1];
    unsigned t = threadIdx.x, b = blockIdx.x;
    if (t == 0) f[0] = 0;
    __syncthreads();
    %s
}
"""
SOURCE = """#define CLUSTER_FENCE asm volatile("fence.acq_rel.cluster;" ::: "memory")
#define INIT_FENCE asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
extern "C" __global__ void atomic_pairs(unsigned* out) {
    __shared__ unsigned long long s[32];
    unsigned long long seen;
    unsigned t = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(s + t / 2);
    if (t < 32) {
        s[t] = t;
        __syncwarp();
        asm volatile("ld.relaxed.cta.shared.b64 %0, [%1];" : "=l"(seen) : "r"(at) : "memory");
        out[t] = (unsigned)seen;
    }
}
""" + "".join(KERNEL % (name, body) for name, (body, _) in KERNELS.items())


SOURCE += """extern "C" __global__ void hinted(unsigned* out) {
    unsigned t = threadIdx.x + 64 * blockIdx.x, value;
    unsigned long long keep, near;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(keep));
    asm volatile("createpolicy.range.global.L2::evict_last.b64 %0, [%1], 64, 128;" : "=l"(near) : "l"(out));
    asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;"
                 :: "l"(out + t), "r"(t + 1), "l"(keep) : "memory");
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(value) : "l"(out + t), "l"(near) : "memory");
    out[t] = 2 * value;
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    folder = tmp_path_factory.mktemp("rare_opcodes")
    path = folder / "kernel.cu"
    path.write_text(SOURCE)
    options = CompileOptions(extra=("-arch=sm_90",))
    return compile_module(path, SOURCE, options, Level.O0, find_toolkit(), folder / "cache")


def outcome_of(compiled: CompiledModule, on: str, kernel: str, **changes: bool) -> RunOutcome:
    out = Buffer("out", np.zeros(1024, np.uint8))
    launch, argument = LaunchConfig((64, 1, 1), (2, 1, 1), 0), Argument("out", bytes(8), ((0, out),))
    run = KernelRun(compiled.ptx, kernel, launch, (argument,), sites_of(compiled, kernel), deadline=60.0)
    return outcome_on(on, evolve(run, **changes))


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_with(compiled: CompiledModule, on: str, kernel: str) -> None:
    assert bool(outcome_of(compiled, on, kernel).races) == KERNELS[kernel][1]


def test_accesses_with_a_cache_policy_are_accesses(compiled: CompiledModule) -> None:
    """How long the cache keeps what they touch is nothing that a program can see."""
    outcome = outcome_of(compiled, "emulator", "hinted")
    assert outcome.races == ()
    assert list(outcome.results["out"].view(np.uint32)[:128]) == [2 * k + 2 for k in range(128)]


@pytest.mark.parametrize("on", ENGINES)
def test_an_atomic_load_costs_what_a_load_costs(compiled: CompiledModule, on: str) -> None:
    """Pairs of lanes that read the same eight bytes share a wavefront."""
    outcome = outcome_of(compiled, on, "atomic_pairs", races=False, banks=True)
    (load,) = (
        number
        for number, site in enumerate(sites_of(compiled, "atomic_pairs"))
        if site.bytes == 8 and site.opcode.startswith("ld")
    )
    (seen,) = (bank for bank in outcome.banks if bank.site == load)
    assert (seen.worst_wavefronts, seen.worst_ideal) == (1, 1)
