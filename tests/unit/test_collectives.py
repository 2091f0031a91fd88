"""cub's collectives: one use of temporary storage is free of races, two need a barrier of the program."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.config import Settings
from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.launches.candidates import launches_of
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

REDUCE = (
    "typedef cub::BlockReduce<int, 64> R; __shared__ typename R::TempStorage t; int v = in[threadIdx.x]; "
)
OUT = "if (threadIdx.x == 0) out[blockIdx.x] = v; "
LAUNCH = LaunchConfig((64, 1, 1), (4, 1, 1), source=LaunchSource.FILE)


def kernel(body: str) -> Kernel:
    return lowered("#include <cub/cub.cuh>\n__global__ void k(int* out, const int* in) { " + body + "}")


def answer(body: str) -> SolverResult:
    return refine_kernel(kernel(body), [LAUNCH], GpuModel("test", (9, 0)))


VECTORS = (
    "typedef cub::BlockLoad<int, 64, 2, cub::BLOCK_LOAD_VECTORIZE> L; typedef cub::BlockStore<int, 64, 2> S;"
    " __shared__ typename L::TempStorage t; __shared__ typename S::TempStorage u; int x[2] = {}, y[2] = {};"
)

RACE_FREE = {
    "one use": REDUCE + "v = R(t).Sum(v); " + OUT,
    "barrier between two uses": REDUCE + "v = R(t).Sum(v); __syncthreads(); v = R(t).Sum(v); " + OUT,
    "barrier in the loop": REDUCE + "for (int i = 0; i < 9; i++) { v += R(t).Sum(i); __syncthreads(); }",
    "two storages": REDUCE + "__shared__ typename R::TempStorage u; v = R(t).Sum(v) + R(u).Sum(v); " + OUT,
    "a storage for each warp": "typedef cub::WarpReduce<int> R; __shared__ typename R::TempStorage t[2];"
    " int v = R(t[threadIdx.x / 32]).Sum(in[threadIdx.x]);" + OUT,
    "tiles of their own": "typedef cub::BlockLoad<int, 64, 4> L; typedef cub::BlockStore<int, 64, 4> S;"
    " __shared__ typename L::TempStorage t; __shared__ typename S::TempStorage u; int x[4];"
    " L(t).Load(in + blockIdx.x * 256, x); S(u).Store(out + blockIdx.x * 256, x);",
    "vectors use no storage": VECTORS
    + "L(t).Load(out + blockIdx.x * 128, x); L(t).Load(in + blockIdx.x * 128, y);"
    " x[0] += y[0]; x[1] += y[1]; S(u).Store(out + blockIdx.x * 128, x);",
    "items that are valid": VECTORS + "int n = in[0] & 127; L(t).Load(out + blockIdx.x * 128, x, n, 0);"
    " S(u).Store(out + blockIdx.x * 128, x, n);",
    "one's own items": VECTORS
    + "S(u).Store(out + blockIdx.x * 128, x); out[blockIdx.x * 128 + 2 * threadIdx.x] = 1;",
}

NOT_PROVED = {
    "items of others": VECTORS
    + "S(u).Store(out + blockIdx.x * 128, x); out[blockIdx.x * 128 + threadIdx.x] = 1;",
    "items in another order": VECTORS + "typedef cub::BlockStore<int, 64, 2, cub::BLOCK_STORE_STRIPED> P;"
    " __shared__ typename P::TempStorage w; L(t).Load(out + blockIdx.x * 128, x);"
    " P(w).Store(out + blockIdx.x * 128, x);",
    "valid items of two blocks": VECTORS + "S(u).Store(out + blockIdx.x * 64, x, 66);",
    "transposed ones use storage": VECTORS
    + "typedef cub::BlockLoad<int, 64, 2, cub::BLOCK_LOAD_TRANSPOSE> P;"
    " __shared__ typename P::TempStorage w; P(w).Load(in, x); P(w).Load(in + 128, y);",
    "two uses": REDUCE + "v = R(t).Sum(v); v = R(t).Sum(v); " + OUT,
    "a loop without barrier": REDUCE + "for (int i = 0; i < 9; i++) v += R(t).Sum(i);",
    "a loop of each thread": REDUCE + "for (int i = 0; i < v; i++) v += R(t).Sum(i);",
    "a barrier of some": REDUCE + "v = R(t).Sum(v); if (v) __syncthreads(); v = R(t).Sum(v); " + OUT,
    "storage of two kinds": "typedef cub::BlockReduce<int, 64> R; typedef cub::BlockScan<int, 64> S;"
    " __shared__ union { typename R::TempStorage r; typename S::TempStorage s; } t; int v, w;"
    " v = R(t.r).Sum(in[0]); S(t.s).ExclusiveSum(v, w);",
    "storage that is also an array": "typedef cub::BlockReduce<int, 64> R;"
    " __shared__ union { typename R::TempStorage r; int a[64]; } t;"
    " int v = R(t.r).Sum(in[0]); t.a[threadIdx.x] = v;",
    "a group that is no power of two uses its storage": "typedef cub::WarpReduce<int, 24> R;"
    " __shared__ typename R::TempStorage t; int v = R(t).Sum(in[threadIdx.x]);" + OUT,
    "two words of a warp's reduction": "typedef cub::WarpReduce<int> R; __shared__ typename R::TempStorage t;"
    " __shared__ int a[64]; a[threadIdx.x] = 1; int v = R(t).Sum(in[threadIdx.x]);"
    " out[threadIdx.x + blockIdx.x * 64] = a[threadIdx.x ^ 1];",
    "what each lane has of a warp's reduction": "typedef cub::WarpReduce<int, 16> R;"
    " __shared__ typename R::TempStorage t; int v = R(t).Sum(in[threadIdx.x]); out[blockIdx.x] = v;",
    "an input in shared memory": "typedef cub::WarpReduce<int, 16> R; __shared__ int a[64];"
    " __shared__ typename R::TempStorage t; a[threadIdx.x] = 1; int v = R(t).Sum(a[63 - threadIdx.x]);" + OUT,
    "a result in shared memory": "typedef cub::WarpScan<int, 16> R; __shared__ int a[64];"
    " __shared__ typename R::TempStorage t; R(t).InclusiveSum(in[threadIdx.x], a[threadIdx.x / 2]);",
    "two words of a collective's own barrier": REDUCE + "__shared__ int a[64]; a[threadIdx.x] = v;"
    " v = R(t).Sum(v); out[threadIdx.x + blockIdx.x * 64] = a[63 - threadIdx.x];",
    "one tile for all blocks": "typedef cub::BlockStore<int, 64, 4> S; __shared__ typename S::TempStorage u;"
    " int x[4] = {}; S(u).Store(out, x);",
    "overlapping tiles": "typedef cub::BlockStore<int, 64, 4> S; __shared__ typename S::TempStorage u;"
    " int x[4] = {}; S(u).Store(out + blockIdx.x * 255, x);",
    "a store into another thread's tile": "typedef cub::BlockStore<int, 64, 4> S;"
    " __shared__ typename S::TempStorage u; int x[4] = {};"
    " S(u).Store(out + blockIdx.x * 256, x); out[blockIdx.x * 256 + threadIdx.x] = 1;",
}

BY_SHUFFLES = {
    "one storage for two warps": "typedef cub::WarpReduce<int> R; __shared__ typename R::TempStorage t;"
    " int v = R(t).Sum(in[threadIdx.x]);" + OUT,
    "groups of some lanes": "typedef cub::WarpReduce<int, 16> R; __shared__ typename R::TempStorage t[4];"
    " int v = R(t[threadIdx.x / 16]).Reduce(in[threadIdx.x], cub::Max());" + OUT,
    "a storage that a warp uses again": "typedef cub::WarpScan<int> R;"
    " __shared__ typename R::TempStorage t[2]; int v = in[threadIdx.x], w;"
    " for (int i = 0; i < 9; i++) R(t[threadIdx.x / 32]).InclusiveSum(v, w);" + OUT,
}

BLOCK_2D = LaunchConfig((8, 8, 1), (4, 1, 1), source=LaunchSource.FILE)


def test_a_block_of_two_dimensions_has_one_elected_thread():
    text = (
        "#include <cub/cub.cuh>\n__global__ void k(int* out) {"
        " typedef cub::BlockReduce<int, 8, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 8> R;"
        " __shared__ typename R::TempStorage t; int v = R(t).Sum(1);"
        " if (threadIdx.x + threadIdx.y == 0) out[blockIdx.x] = v; }"
    )
    result = refine_kernel(lowered(text), [BLOCK_2D], GpuModel("test", (9, 0)))
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("name", RACE_FREE)
def test_race_free(name: str):
    result = answer(RACE_FREE[name])
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("name", BY_SHUFFLES)
def test_a_warps_reduction_leaves_its_storage_alone_which_is_told(name: str):
    result = answer(BY_SHUFFLES[name])
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "by shuffles" in " ".join(kernel(BY_SHUFFLES[name]).granted)


@pytest.mark.parametrize("name", NOT_PROVED)
def test_not_proved_and_not_accused_across_the_library(name: str):
    result = answer(NOT_PROVED[name])
    assert result.verdict is not Verdict.RACE_FREE


def test_nobody_is_accused_across_a_barrier_that_is_up_to_the_library():
    result = answer(NOT_PROVED["two words of a collective's own barrier"])
    assert result.verdict is Verdict.UNDECIDED
    assert "up to the library" in " ".join(result.reasons)


def test_the_block_is_the_one_that_the_collectives_are_made_for():
    text = (
        "#include <cub/cub.cuh>\n__global__ void k(int* out) {"
        " typedef cub::BlockReduce<int, 8, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4> R;"
        " __shared__ typename R::TempStorage t; out[threadIdx.x] = R(t).Sum(1); }"
    )
    (launch,) = launches_of(lowered(text), Settings())
    assert (launch.block, launch.source) == ((8, 4, 1), LaunchSource.BOUNDS)
