"""CUDA's built-ins, cooperative groups, libraries and inline PTX in the kernel program."""

# ruff: noqa: E501  (kernels are written on one line)

from __future__ import annotations

import pytest
from extract_kernels import accesses, constructs, lowered, printed

from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Assume,
    Atomic,
    Barrier,
    BarrierPhase,
    BarrierScope,
    Copy,
    Fence,
    Load,
    Store,
)
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Scope

CG = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


def barriers(text: str) -> list[Barrier]:
    return [s for s in walk(lowered(text).body) if isinstance(s, Barrier)]


@pytest.mark.parametrize("name", ["__syncthreads()", "__syncthreads_count(n)", "__syncthreads_or(n)"])
def test_block_barriers(name: str):
    (barrier,) = barriers(f"__global__ void k(int n) {{ {name}; }}")
    assert barrier.scope is BarrierScope.BLOCK and barrier.site.text == name


def test_syncwarp_carries_its_mask():
    (barrier,) = barriers("__global__ void k() { __syncwarp(0xff); }")
    assert (
        barrier.scope is BarrierScope.WARP
        and "255" in printed("__global__ void k() { __syncwarp(0xff); }")[-1]
    )


def test_shuffle_implies_a_warp_barrier_and_keeps_its_integer_value():
    text = (
        "__global__ void k(int* a) { int v = threadIdx.x; v = __shfl_down_sync(0xffffffff, v, 1); a[v] = 0; }"
    )
    (barrier,) = barriers(text)
    assert barrier.implied and barrier.scope is BarrierScope.WARP
    assert any("__shfl_down_sync(" in line for line in printed(text))


def test_legacy_shuffle_does_not_synchronise():
    assert not barriers("__global__ void k(int* a) { a[0] = __shfl_xor(a[1], 1); }")


@pytest.mark.parametrize(
    ("call", "op", "scope"),
    [
        ("atomicAdd(&a[i], 1)", "add", Scope.DEVICE),
        ("atomicMax_block(a + i, 1)", "max", Scope.BLOCK),
        ("atomicExch_system(&a[i], 1)", "exch", Scope.SYSTEM),
        ("atomicCAS(&a[i], 0, 1)", "cas", Scope.DEVICE),
    ],
)
def test_atomics_of_every_scope(call: str, op: str, scope: Scope):
    kernel = lowered(f"__global__ void k(int* a) {{ int i = threadIdx.x; int old = {call}; a[old] = 0; }}")
    (atomic,) = [s for s in kernel.body if isinstance(s, Atomic)]
    assert (
        (atomic.op.value, atomic.scope) == (op, scope) and atomic.var is not None and atomic.site.text == call
    )


def test_users_own_atomic_function_is_inlined_not_assumed():
    text = (
        "__device__ double atomicAdd(double* p, double v) { double o = *p; *p = o + v; return o; }"
        " __global__ void k(double* a) { atomicAdd(a, 1.0); }"
    )
    assert not any(isinstance(s, Atomic) for s in walk(lowered(text).body))


def test_fences_have_scopes():
    kernel = lowered(
        "__global__ void k() { __threadfence_block(); __threadfence(); __threadfence_system(); }"
    )
    assert [s.scope for s in kernel.body if isinstance(s, Fence)] == [Scope.BLOCK, Scope.DEVICE, Scope.SYSTEM]


def test_ldg_is_a_readonly_load():
    (load,) = [
        s
        for s in lowered("__global__ void k(const int* a, int* b) { b[0] = __ldg(&a[3]); }").body
        if isinstance(s, Load)
    ]
    assert load.readonly


def test_assert_and_assume_are_facts():
    kernel = lowered(
        "#include <assert.h>\n__global__ void k(int n) { assert(n > 3); __builtin_assume(n % 2 == 0); }"
    )
    assert sum(isinstance(s, Assume) for s in kernel.body) == 2


def test_integer_intrinsics_stay_exact():
    text = "__global__ void k(int* a) { a[__popc(threadIdx.x)] = min((int)threadIdx.x, 5); }"
    assert accesses(text, "a") == ["store int32 &a + __popc(threadIdx.x) * 4 B <- min(threadIdx.x, 5)"]


def test_printf_does_not_hide_anything():
    kernel = lowered('#include <stdio.h>\n__global__ void k(int* a) { printf("%d", a[0]); }')
    assert not constructs(kernel) and any(isinstance(s, Load) for s in kernel.body)


def test_curand_reads_and_writes_its_state():
    text = "#include <curand_kernel.h>\n__global__ void k(curandState* s, float* o) { o[0] = curand_uniform(&s[threadIdx.x]); }"
    assert [line.split()[0] for line in accesses(text, "s")] == ["_", "store"]


@pytest.mark.parametrize(
    "call",
    [
        "skipahead(n, s + threadIdx.x)",
        "skipahead_sequence(n, s + threadIdx.x)",
        "o[0] = curand_normal2_double(s + threadIdx.x).y",
        "o[0] = curand_uniform4_double(s + threadIdx.x).w",
        "o[0] = curand_log_normal4(s + threadIdx.x, 0.f, 1.f).w",
    ],
)
def test_what_moves_a_generator_on_reads_and_writes_its_state(call: str):
    kernel = (
        f"__global__ void k(curandStatePhilox4_32_10_t* s, double* o, unsigned long long n) {{ {call}; }}"
    )
    assert [line.split()[0] for line in accesses(f"#include <curand_kernel.h>\n{kernel}", "s")] == [
        "_",
        "store",
    ]


def test_block_group_sync_and_rank():
    text = (
        CG
        + "__global__ void k(int* a) { cg::thread_block b = cg::this_thread_block(); a[b.thread_rank()] = 0; b.sync(); cg::sync(b); }"
    )
    assert [b.scope for b in barriers(text)] == [BarrierScope.BLOCK, BarrierScope.BLOCK]
    assert "threadIdx.x" in accesses(text, "a")[0]


def test_tiled_partition_syncs_its_tile():
    text = CG + (
        "__global__ void k(int* a) { auto t = cg::tiled_partition<16>(cg::this_thread_block());"
        " int v = t.shfl_down(a[0], 1); t.sync(); a[t.thread_rank()] = v; }"
    )
    shuffle, sync = barriers(text)
    assert shuffle.implied and sync.size == 16 and sync.scope is BarrierScope.TILE


def test_group_passed_to_a_function_keeps_its_extent():
    text = CG + (
        "template <class G> __device__ void all(G g) { g.sync(); }"
        " __global__ void k() { all(cg::tiled_partition<8>(cg::this_thread_block())); }"
    )
    (barrier,) = barriers(text)
    assert barrier.size == 8


def test_dynamic_group_keeps_the_size_it_was_made_with():
    text = CG + (
        "__device__ void all(cg::thread_group g) { g.sync(); }"
        " __global__ void k() { cg::thread_group t = cg::tiled_partition(cg::this_thread_block(), 4); all(t); }"
    )
    (barrier,) = barriers(text)
    assert barrier.size == 4


def test_grid_sync():
    (barrier,) = barriers(CG + "__global__ void k() { cg::this_grid().sync(); }")
    assert barrier.scope is BarrierScope.GRID


@pytest.mark.parametrize("barrier", ["BAR", "BAR()", 'asm volatile(TEXT ::: "memory")', 'asm("bar." REST)'])
def test_assembly_that_a_macro_writes_is_read(barrier: str) -> None:
    macro = "#define BAR() asm" if barrier.endswith("()") else "#define BAR asm"
    text = (
        f'{macro} volatile("bar.sync 0;" ::: "memory")\n#define TEXT "bar.sync 0;"\n#define REST "sync 0;"\n'
    )
    (found,) = walk(lowered(f"{text}__global__ void k() {{ {barrier}; }}").body)
    assert isinstance(found, Barrier)


def test_assembly_in_a_raw_string():
    (found,) = walk(lowered('__global__ void k() { asm volatile(R"x(bar.sync 0;)x" ::: "memory"); }').body)
    assert isinstance(found, Barrier)


def test_named_barrier_in_assembly():
    text = '__global__ void k() { asm volatile("bar.sync 1, 64;"); asm volatile("bar.arrive %0, %1;" :: "r"(2), "r"(64)); }'
    sync, arrive = barriers(text)
    assert sync.scope is BarrierScope.NAMED and arrive.phase is BarrierPhase.ARRIVE


def test_assembly_loads_and_stores_touch_memory():
    text = (
        '__global__ void k(float* a) { float v; asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(a + threadIdx.x));'
        ' asm volatile("st.global.f32 [%0+4], %1;" :: "l"(a), "f"(v) : "memory"); }'
    )
    assert accesses(text, "a") == ["_ = load float32 &a + threadIdx.x * 4 B", "store float32 &a + 4 B <- ?"]


def test_cp_async_is_an_asynchronous_copy():
    text = (
        "__global__ void k(float* a) { __shared__ float s[4]; unsigned d = __cvta_generic_to_shared(s);"
        ' asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(d), "l"(a)); }'
    )
    (copy,) = [s for s in lowered(text).body if isinstance(s, Copy)]
    assert copy.asynchronous and copy.mechanism == "cp.async"


def test_special_registers_are_builtins():
    text = '__global__ void k(int* a) { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); a[l] = 0; }'
    assert "l = laneid" in printed(text)


def test_arithmetic_assembly_only_loses_its_value():
    assert not constructs(
        lowered(
            '__global__ void k(int* a) { int x; asm("add.s32 %0, %1, 1;" : "=r"(x) : "r"(3)); a[0] = x; }'
        )
    )


def test_cub_collective_of_parts_of_a_warp_is_named():
    text = (
        "#include <cub/cub.cuh>\n__global__ void k(int* a) { typedef cub::WarpReduce<int, 9> R;"
        " __shared__ typename R::TempStorage t; a[0] = R(t).Sum(a[1]); }"
    )
    assert any("cub::WarpReduce" in c for c in constructs(lowered(text)))


def test_cub_collective_with_private_storage_is_named():
    text = (
        "#include <cub/cub.cuh>\n__global__ void k(int* a) { a[0] = cub::BlockReduce<int, 64>().Sum(a[1]); }"
    )
    assert any("cub::BlockReduce" in c for c in constructs(lowered(text)))


def test_results_of_a_collective_are_new_values():
    text = (
        "#include <cub/cub.cuh>\n__global__ void k(int* a) { typedef cub::BlockScan<int, 64> S;"
        " __shared__ typename S::TempStorage t; int v = 1; int w[2] = {2, 2};"
        " S(t).ExclusiveSum(a[threadIdx.x], v); S(t).InclusiveSum(w, w); a[v] = 1; a[w[1]] = 1; }"
    )
    assert constructs(lowered(text)) == []
    stores = accesses(text, "a")[-2:]
    assert "1 * 4" not in stores[0]
    assert any("w" in line and "store" in line for line in printed(text))


def test_atomic_ref_is_atomic():
    text = (
        "#include <cuda/atomic>\n__global__ void k(int* a) {"
        " cuda::atomic_ref<int, cuda::thread_scope_block> r(a[0]); r.fetch_add(1); }"
    )
    (atomic,) = [s for s in walk(lowered(text).body) if isinstance(s, Atomic)]
    assert atomic.scope is Scope.BLOCK and atomic.op is AtomicOp.ADD


def test_pointer_read_from_memory_points_to_an_object_of_its_own():
    text = "__global__ void k(float** rows) { rows[threadIdx.x][3] = 1.f; }"
    kernel = lowered(text)
    (store,) = [s for s in kernel.body if isinstance(s, Store)]
    assert any(a.may_alias for a in kernel.arrays) and store.type.size == 4


def test_texture_fetch_is_no_access():
    text = "__global__ void k(cudaTextureObject_t t, float* o) { o[0] = tex2D<float>(t, 0.f, 1.f); }"
    assert not constructs(lowered(text))
