# ruff: noqa: E501 (one topic, one line)
"""The shim knows CUDA's words: each snippet must parse without an error inside its kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.toolchain import SHIM, FrontendOptions, index
from cuda_lsp.frontend.translation import Translation

BODIES = {
    "built-in variables": "a[blockIdx.x * blockDim.x + threadIdx.x + gridDim.y * warpSize] = 0;",
    "vectors": "float4 v = make_float4(1, 2, 3, 4); a[0] = reinterpret_cast<float4*>(a)[1].w + v.x;",
    "barriers": "__syncthreads(); a[0] = __syncthreads_count(1); __syncwarp(); __syncwarp(0xff); __threadfence();",
    "votes": "a[0] = __ballot_sync(~0u, 1) + __all_sync(~0u, 1) + __activemask() + __match_any_sync(~0u, 1);",
    "shuffles": "a[0] = __shfl_down_sync(~0u, a[0], 1) + __shfl_xor_sync(~0u, 2, 1, 16);",
    "atomics": "atomicAdd(a, 1.0f); atomicAdd_block((int*)a, 1); atomicCAS_system((unsigned*)a, 1u, 2u);",
    "double and half atomics": "atomicAdd((double*)a, 1.0); atomicAdd((__half*)a, __float2half(1.f));",
    "mathematics": "a[0] = sinf(a[1]) + rsqrtf(2.f) + fmaxf(1.f, 2.f) + __expf(1.f) + min(1, 2) + __fdividef(1.f, 2.f);",
    "bits": "a[0] = __popc(3) + __clz(3) + __ffs(3) + __brev(3u) + __byte_perm(1, 2, 3) + __mul24(1, 2);",
    "half": "__half2 h = __floats2half2_rn(1.f, 2.f); a[0] = __low2float(__hadd2(h, h)); half x = __float2half(1.f); x = x + x;",
    "bfloat16": "__nv_bfloat16 b = __float2bfloat16(1.f); a[0] = __bfloat162float(b * b);",
    "comparisons of halves": "__half2 h = __float2half2_rn(a[0]); h = __hmul2(__hlt2(h, h), __hfma2_relu(h, h, h)); if (__hbge2(h, h) && __hltu(h.x, h.y))"
    " a[0] = __low2float(__hmax2_nan(h, h)) + __heq2_mask(h, h) + __hisnan(h.x); __nv_bfloat162 b = __float2bfloat162_rn(a[1]); a[1] = __low2float(__lows2bfloat162(__heq2(b, b), b));",
    "warps of cub": "using R = cub::WarpReduce<float, CUB_PTX_WARP_THREADS, 800>; __shared__ typename R::TempStorage s; a[0] = R(s).Sum(a[1]);"
    " typedef cub::BlockReduce<float, 128, cub::BLOCK_REDUCE_RAKING, 1, 1, CUB_PTX_ARCH> B; a[1] = sizeof(typename B::TempStorage);",
    "types of libraries": "cudaDataType_t t = CUDA_R_16BF; cudaDataType u = CUDA_C_64F; cusparseIndexType_t i = CUSPARSE_INDEX_64I; a[0] = int(t) + int(u) + int(i);",
    "owners": "std::shared_ptr<float> p; std::unique_ptr<float> q; if (p == nullptr || q != nullptr) a[0] = 0;",
    "fp8": "__nv_fp8_e4m3 q(1.f); a[0] = float(q);",
    "cooperative groups": "auto b = cooperative_groups::this_thread_block(); b.sync();"
    " auto t = cooperative_groups::tiled_partition<32>(b); a[0] = t.shfl_down(a[0], 1) + t.thread_rank();"
    " a[1] = cooperative_groups::reduce(t, a[0], cooperative_groups::plus<float>());",
    "grid and cluster": "cooperative_groups::this_grid().sync(); auto c = cooperative_groups::this_cluster();"
    " c.sync(); a[0] = *c.map_shared_rank(a, 1);",
    "cub": "using R = cub::BlockReduce<float, 128>; __shared__ typename R::TempStorage s; a[0] = R(s).Sum(a[1]);",
    "libcu++ barrier": "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 32);"
    " b.arrive_and_wait();",
    "atomic_ref": "cuda::atomic_ref<float, cuda::thread_scope_block> r(a[0]); r.fetch_add(1.f, cuda::memory_order_relaxed);",
    "pipeline": "__pipeline_memcpy_async(a, a + 4, 16); __pipeline_commit(); __pipeline_wait_prior(0);",
    "wmma": "using namespace nvcuda; wmma::fragment<wmma::accumulator, 16, 16, 16, float> f; wmma::fill_fragment(f, 0.f);"
    " wmma::store_matrix_sync(a, f, 16, wmma::mem_row_major);",
    "textures": "a[0] = tex2D<float>((cudaTextureObject_t)1, 0.f, 0.f); surf2Dwrite(a[0], (cudaSurfaceObject_t)1, 0, 0);",
    "random numbers": "curandState s; curand_init(1, 2, 3, &s); a[0] = curand_uniform(&s);",
    "limits": 'static_assert(std::numeric_limits<int>::max() == 2147483647, ""); a[0] = INFINITY + FLT_MAX;',
    "traits": 'static_assert(std::is_same<int, int>::value, ""); a[0] = std::max(1, 2);',
    "how objects are made": "struct P { float x; }; static_assert(std::is_nothrow_move_assignable<P>::value && std::is_trivially_destructible<P>::value"
    ' && std::is_constructible<int, float>::value && !std::is_assignable<int, int>::value && std::is_copy_constructible<P>::value, ""); a[0] = 0;',
    "digits and rounding": "static_assert(std::numeric_limits<int>::digits10 == 9 && std::numeric_limits<float>::digits == 24 &&"
    ' std::numeric_limits<float>::round_style == std::round_to_nearest, ""); a[0] = __hisinf(__float2half(1.f));',
    "aligned shared memory": "__shared__ alignas(16) float s[4]; __shared__ alignas(float4) float t[4]; a[0] = s[0] + t[0];",
    "memory": 'memcpy(a, a + 1, 4); a[0] = __ldg(a + 1); __stcs(a, 1.f); assert(a[0] > 0); printf("%f", a[0]);',
    "iterators": "auto i = thrust::make_counting_iterator(3); ++i; i += 2; a[0] = *thrust::lower_bound(thrust::seq, i,"
    " i + 9, 7, [](int x, int y) { return x < y; }) + (i - thrust::counting_iterator<int>(0));"
    " auto r = thrust::make_reverse_iterator(a + 8); a[1] = *r + r[2] + (r != thrust::make_reverse_iterator(a));"
    " a[2] = thrust::make_permutation_iterator(a, i)[1];",
    "words of hosts": "static_assert(std::is_same<decltype(std::tuple_cat(std::make_tuple(1), std::make_tuple(2.f))),"
    " std::tuple<int, float>>::value); cub::UnitWord<float4>::DeviceWord w; a[0] = w.x + sizeof(std::string_view);",
    "parts of tuples": "auto [i, x] = std::make_tuple(1, 2.f); const auto [j, y] = std::make_pair(3, 4.f); auto&& [k, z] = std::array<int, 2>{5, 6};"
    " static_assert(std::is_same<decltype(j), const int>::value); const auto [m, w] = std::make_tuple(7, 8.f); a[i] = x; a[j] = y; a[k] = z; a[m] = w; a[0] = std::get<0>(std::make_tuple(9));",
    "time and traps": "a[0] = clock() + clock64(); __nanosleep(10); __trap();",
}


def test_the_shim_itself_has_no_errors() -> None:
    unit = index().parse(str(SHIM), args=list(FrontendOptions().language_flags()), options=0x202)
    assert [d.spelling for d in unit.diagnostics if d.severity >= 3] == []


@pytest.mark.parametrize("topic", BODIES)
def test_the_words_of(topic: str, tmp_path: Path) -> None:
    text = f"__global__ void k(float* a) {{\n    {BODIES[topic]}\n}}\n"
    translation = Translation(tmp_path / "a.cu", text)
    assert [error.message for error in translation.diagnostics] == []
    assert [kernel.name for kernel in translation.kernels()] == ["k"]


def test_system_headers_in_angle_brackets_are_quiet(tmp_path: Path) -> None:
    includes = "".join(
        f"#include <{h}>\n" for h in ("cuda_runtime.h", "cub/cub.cuh", "vector", "cuda/barrier")
    )
    assert Translation(tmp_path / "a.cu", includes + "__global__ void k() {}\n").diagnostics == ()


def test_operators_of_the_users_own_vector_header_do_not_clash(tmp_path: Path) -> None:
    text = "inline __host__ __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, 0, 0); }\n"
    text += "__global__ void k(float3* a) { a[0] = a[1] + a[2]; }\n"
    assert Translation(tmp_path / "a.cu", text).diagnostics == ()
