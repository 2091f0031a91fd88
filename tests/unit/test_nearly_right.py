"""Kernels that are nearly right: locks, last blocks, copies, destructors that do not order what they seem to.

None may be called race-free, whether the analysis sees the race or says that it cannot tell.
"""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNELS = r"""
#include <cassert>
#include <cuda_pipeline.h>
// cuda-lsp: launch block=64 grid=4
__global__ void lock_other(int* lock, int* other, int* sum) {
    if (threadIdx.x == 0) {
        if (blockIdx.x & 1) { while (atomicCAS(lock, 0, 1)) {} sum[0] += 1; atomicExch(lock, 0); }
        else { while (atomicCAS(other, 0, 1)) {} sum[0] += 1; atomicExch(other, 0); }
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void inc_wraps(float* out, float* partial, unsigned* done) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence();
        if (atomicInc(done, 1) == 1) out[0] = partial[0];
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void two_counters(float* out, float* partial, unsigned* done) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence();
        if (atomicAdd(&done[blockIdx.x & 1], 1) == 1) out[0] = partial[0] + partial[3];
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void after_if(float* out, unsigned* done) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) { __syncthreads(); }
    if (threadIdx.x == 0) out[0] = blockIdx.x;
}
// cuda-lsp: launch block=64 grid=4
__global__ void not_last(float* out, unsigned* done) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last && threadIdx.x == 0) out[0] = blockIdx.x;
}
__device__ bool amLast(unsigned* done) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return false;
    return true;
}
// cuda-lsp: launch block=64 grid=4
__global__ void function(float* out, unsigned* done) {
    bool l = amLast(done);
    if (threadIdx.x == 0) out[0] = blockIdx.x + l;
}
// cuda-lsp: launch block=64 grid=4
__global__ void fence_after(float* out, float* partial, unsigned* done) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        unsigned k = atomicAdd(done, 1);
        __threadfence();
        if (k == gridDim.x - 1) out[0] = partial[0];
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void block_fence(float* out, float* partial, unsigned* done) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence_block();
        if (atomicAdd(done, 1) == gridDim.x - 1) out[0] = partial[0];
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void writes_after_draw(float* out, float* partial, unsigned* done) {
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned k = atomicAdd(done, 1);
        partial[blockIdx.x] = k;
        if (k == gridDim.x - 1) out[0] = partial[0];
    }
}
// cuda-lsp: launch block=64 grid=4
__global__ void cond_draw(float* out, float* partial, unsigned* done, const int* in) {
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence();
        if (in[blockIdx.x] > 0 && atomicAdd(done, 1) == gridDim.x - 1) out[0] = partial[0];
    }
}
// cuda-lsp: launch block=64 grid=1
__global__ void copy_loop(float* out, const float* in) {
    __shared__ float s[256];
    for (int i = threadIdx.x; i < 256; i += 64) __pipeline_memcpy_async(&s[i], &in[i], 4);
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[255 - threadIdx.x];
}
// cuda-lsp: launch block=64 grid=1
__global__ void copy_in_if(float* out, const float* in, const int* p) {
    __shared__ float s[64];
    if (p[0] > 3) __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
struct Guard { int* p; __device__ Guard(int* q) : p(q) {} __device__ ~Guard() { *p = 1; } };
__device__ Guard make(int* q) { return Guard(q); }
// cuda-lsp: launch block=64 grid=1
__global__ void returned_guard(int* out) {
    __shared__ int s[64];
    { auto g = make(&s[threadIdx.x]); out[threadIdx.x] = s[63 - threadIdx.x]; }
}
// cuda-lsp: launch block=64 grid=1
__global__ void guard_array(int* out) {
    __shared__ int s[64];
    { Guard g[2] = {Guard(&s[threadIdx.x]), Guard(&s[threadIdx.x])}; out[threadIdx.x] = s[63 - threadIdx.x]; }
}
// cuda-lsp: launch block=64 grid=1
__global__ void temp_in_expr(int* out) {
    __shared__ int s[64];
    int v = (Guard(&s[threadIdx.x]), 3);
    out[threadIdx.x] = s[63 - threadIdx.x] + v;
}
__device__ int use(const Guard& g) { return 1; }
// cuda-lsp: launch block=64 grid=1
__global__ void temp_argument(int* out) {
    __shared__ int s[64];
    int v = use(Guard(&s[threadIdx.x]));
    out[threadIdx.x] = s[63 - threadIdx.x] + v;
}
// cuda-lsp: launch block=64 grid=1
__global__ void extended_lifetime(int* out) {
    __shared__ int s[64];
    { const Guard& g = Guard(&s[threadIdx.x]); out[threadIdx.x] = s[63 - threadIdx.x]; }
}
// cuda-lsp: launch block=64 grid=1
__global__ void for_init(int* out) {
    __shared__ int s[64];
    for (Guard g(&s[threadIdx.x]); ; ) { break; }
    out[threadIdx.x] = s[63 - threadIdx.x];
}
// cuda-lsp: launch block=64 grid=4
__global__ void racy_slot_of_block(int* out, int* next) {
    __shared__ int slot;
    if (threadIdx.x == 0) slot = atomicAdd(next, 1);
    __syncthreads();
    out[slot] = threadIdx.x;
}

// cuda-lsp: launch block=64 grid=4
__global__ void racy_slots_of_block(int* out, int* next) {
    __shared__ int slot;
    if (threadIdx.x == 0) slot = atomicAdd(next, 32);
    __syncthreads();
    out[slot+threadIdx.x] = threadIdx.x;
}
// cuda-lsp: launch block=128 grid=1
__global__ void halves_named_racy(int* out) {
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x ^ 64];
}

// cuda-lsp: launch block=64 grid=1
__global__ void arrive_too_early(int* out) {
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        s[threadIdx.x] = threadIdx.x;
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x - 32] = s[63 - threadIdx.x];
    }
}
// cuda-lsp: launch block=64 grid=1
__global__ void swapped_ids(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) {
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.arrive 2, 64;" ::: "memory");
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
    out[threadIdx.x] = s[threadIdx.x ^ 32];
}
// cuda-lsp: launch block=96 grid=1
__global__ void wrong_count(int* out) {
    __shared__ int s[96];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 32;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x ^ 31];
}
// cuda-lsp: launch block=64 grid=1
__global__ void half_warp_arrives(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 16) asm volatile("bar.arrive 1, 64;" ::: "memory");
    if (threadIdx.x >= 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = s[threadIdx.x - 32];
    }
}
// cuda-lsp: launch block=64 grid=1
__global__ void copy_two_groups(float* out, const float* in) {
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&a[t], &in[t], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&b[t], &in[64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[t] = a[63 - t] + b[63 - t];
}
// cuda-lsp: launch block=64 grid=1
__global__ void diverging_commits(float* out, const float* in) {
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&a[t], &in[t], 4);
    __pipeline_commit();
    if (t < 32) { __pipeline_memcpy_async(&b[t], &in[t], 4); __pipeline_commit(); }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[t] = a[63 - t];
}
// cuda-lsp: launch block=64 grid=1
__global__ void many_rounds(float* out, const float* in) {
    __shared__ float s[3][64];
    int t = threadIdx.x; float sum = 0;
    __pipeline_memcpy_async(&s[0][t], &in[t], 4); __pipeline_commit();
    for (int k = 0; k < 1000; ++k) {
        __pipeline_memcpy_async(&s[(k + 1) % 3][t], &in[k * 64 + t], 4);
        __pipeline_commit();
        if (k < 900) __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[k % 3][63 - t];
    }
    out[t] = sum;
}
struct S { int a; float b; };
struct Base { __device__ virtual int f(int i) { return i; } __device__ int call(int i) { return f(i); } };
struct Der : Base { int pad; __device__ int f(int i) override { return 63 - i; } };
// cuda-lsp: launch block=64 grid=1
__global__ void virtual_inside(int* out) {
    __shared__ int s[64];
    Der d; d.pad = 1;
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[d.call(threadIdx.x)];
}
// cuda-lsp: launch block=64 grid=1
__global__ void virtual_pointer_choice(int* out, int n) {
    __shared__ int s[64];
    Der d; Base b; d.pad = 1;
    Base* p = n > 3 ? &b : &d;
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[p->f(threadIdx.x)];
}
__device__ int same(int i) { return i; }
__device__ int mirror(int i) { return 63 - i; }
// cuda-lsp: launch block=64 grid=1
__global__ void fn_choice(int* out, int n) {
    __shared__ int s[64];
    int (*f)(int) = n > 3 ? same : mirror;
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[f(threadIdx.x)];
}
// cuda-lsp: launch block=64 grid=1
__global__ void fn_reassigned(int* out, int n) {
    __shared__ int s[64];
    int (*f)(int) = same;
    if (n > 3) f = mirror;
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[f(threadIdx.x)];
}
__device__ void set(int (**f)(int)) { *f = mirror; }
// cuda-lsp: launch block=64 grid=1
__global__ void fn_by_address(int* out) {
    __shared__ int s[64];
    int (*f)(int) = same;
    set(&f);
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[f(threadIdx.x)];
}
struct Ops { int (*f)(int); };
// cuda-lsp: launch block=64 grid=1
__global__ void fn_in_struct(int* out, int n) {
    __shared__ int s[64];
    Ops o{same};
    if (n > 3) o.f = mirror;
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[o.f(threadIdx.x)];
}
__device__ int apply(int (*f)(int), int i) { f = mirror; return f(i); }
// cuda-lsp: launch block=64 grid=1
__global__ void fn_param_reassigned(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[apply(same, threadIdx.x)];
}
// cuda-lsp: launch block=64 grid=2
__global__ void slots_of_a_counter_that_is_reset(int* g, int* n, int m) {
    if (threadIdx.x == 0) atomicExch(n, 0);
    if (threadIdx.x < m) g[atomicAdd(n, 1)] = 1;
}
// cuda-lsp: launch block=64 grid=2
__global__ void slots_of_a_counter_that_wraps(int* g, unsigned* n, int m) {
    if (threadIdx.x < m) g[atomicInc(n, 15)] = threadIdx.x;
}
// cuda-lsp: launch block=64 grid=2
__global__ void slots_of_a_counter_that_goes_down_too(int* g, int* n, int m) {
    if (threadIdx.x < m) g[atomicAdd(n, 1)] = threadIdx.x;
    else atomicAdd(n, -1);
}
// cuda-lsp: launch block=64 grid=2
__global__ void slots_of_a_counter_that_another_half_lowers(int* g, int* n, int m) {
    if (threadIdx.x < 32) g[atomicAdd(n, 1)] = threadIdx.x;
    else atomicAdd(n, m);
}
// cuda-lsp: launch block=64 grid=1
__global__ void doubled_beyond_32_bits(int* out, int n) {
    __shared__ int s[65];
    s[threadIdx.x] = n;
    unsigned long long w = 1;
    for (int i = 0; i < n; i++) w *= 2;
    out[threadIdx.x] = s[threadIdx.x + (unsigned)(w >> 40 & 1)];
}
// cuda-lsp: launch block=64 grid=1
__global__ void bits_of_what_is_doubled_beyond_32_bits(int* out, int n, unsigned x) {
    __shared__ int s[65];
    s[threadIdx.x] = n;
    unsigned long long w = 1;
    for (int i = 0; i < n; i++) w *= 2;
    unsigned b = (unsigned)(w >> 40) & 1;
    out[threadIdx.x] = s[threadIdx.x + ((b ^ x) & (x ^ 1) & 1)];
}
// cuda-lsp: launch block=64 grid=1
__global__ void masked_by_a_size_of_32_bits(int* out, unsigned x, unsigned size) {
    __shared__ int s[65];
    s[threadIdx.x] = 1;
    unsigned at = x & (size - 1);
    out[threadIdx.x] = s[threadIdx.x + (at > (1u << 30))];
}
// cuda-lsp: launch block=64 grid=1
__global__ void masked_by_a_size_of_64_bits(int* out, long long x, long long size) {
    __shared__ int s[65];
    s[threadIdx.x] = 1;
    long long at = x & (size - 1);
    out[threadIdx.x] = s[threadIdx.x + (int)(at >> 40 & 1)];
}
// cuda-lsp: launch block=32 grid=33554432
__global__ void numbers_of_blocks_beyond_24_bits(unsigned* out) {
    out[__umul24(blockIdx.x, blockDim.x) + threadIdx.x] = blockIdx.x;
}
// cuda-lsp: launch block=64
__global__ void launched_against_its_assertion(float* out, int n) {
    assert(blockDim.x == 32);
    __shared__ float s[64];
    for (int i = threadIdx.x; i < n; i += 64) out[i] = s[63 - i];
}
// cuda-lsp: launch block=64
__global__ void no_thread_meets_its_assertion(float* out, int n) {
    assert(threadIdx.x % 2 == 2);
    __shared__ float s[64];
    s[n - threadIdx.x] = 2;
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
"""


def test_nearly_right_is_not_race_free():
    report = check_text(Path("nearly.cu"), KERNELS)
    assert not report.errors
    assert len(report.kernels) == KERNELS.count("__global__")
    assert [kernel.name for kernel in report.kernels if kernel.verdict is Verdict.RACE_FREE] == []


def test_products_of_24_bits_keep_ordinary_blocks_apart():
    text = """
    __global__ void k(unsigned* out, int n) {
        int i = __mul24(blockIdx.x, blockDim.x) + threadIdx.x;
        if (i < n) out[i] = blockIdx.x;
    }
    """
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is Verdict.RACE_FREE
