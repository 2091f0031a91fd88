"""Whole programs without a GPU: they run to their end, print what they should; their kernels are checked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from programs import CLUSTERS, COOPERATIVE, DEVICES, GRAPH, HISTOGRAM, MANAGED
from toolkit import needs_nvcc

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.cli import main

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]


def run(folder: Path, text: str, *arguments: str, options: tuple[str, ...] = ()):
    source = folder / "program.cu"
    source.write_text(text)
    given = ["run", str(source), "--program", "--engine", "emulator", *options, "--", *arguments]
    return CliRunner().invoke(main, given)


def test_a_program_runs_to_its_end_and_its_kernel_is_clean(tmp_path):
    done = run(tmp_path, HISTOGRAM.replace("BARRIER", "__syncthreads();"), "640")
    assert done.stderr.splitlines()[:4] == [
        *["first of 10 blocks, hello"] * 3,
        "total 10560, launches 6, no error",
    ]
    assert "3 launches on CPU emulator, exit status 0" in done.stderr
    assert "shared-race" not in done.stdout
    assert done.exit_code == 0


def test_a_missing_barrier_is_confirmed_with_the_programs_own_data(tmp_path):
    done = run(tmp_path, HISTOGRAM.replace("BARRIER", ""), "640")
    assert "[confirmed]" in done.stdout
    assert "local[data[i] & 63]" in done.stdout
    assert done.exit_code == 1


LOCKED = """
#include <cuda_runtime.h>
__global__ void add(int* lock, int* sum, int* out) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        sum[0] += blockIdx.x;
        BEHIND
    }
    out[sum[1] & 63] = threadIdx.x;
}
int main() {
    int *lock, *sum, *out;
    cudaMalloc(&lock, 4);
    cudaMalloc(&sum, 8);
    cudaMalloc(&out, 256);
    cudaMemset(lock, 0, 4);
    cudaMemset(sum, 0, 8);
    add<<<8, 32>>>(lock, sum, out);
    cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("behind", "raced"), [("__threadfence(); *lock = 0;", False), ("*lock = 0;", True)], ids=("fenced", "not")
)
def test_a_lock_that_a_plain_store_gives_back_orders_behind_a_fence(tmp_path, behind, raced):
    done = run(tmp_path, LOCKED.replace("BEHIND", behind))
    assert "program.cu:10" in done.stdout  # what else races keeps all of the kernel watched
    assert ("program.cu:7" in done.stdout) is raced


def test_functions_that_are_missing_link_and_name_themselves_when_called(tmp_path):
    text = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void k(int* p) { p[threadIdx.x] = threadIdx.x; }
int main(int argc, char**) {
    int* p;
    cudaMalloc(&p, 128);
    cudaIpcMemHandle_t handle;
    if (argc > 1 && cudaIpcGetMemHandle(&handle, p) != cudaSuccess) return 3;
    k<<<1, 32>>>(p);
    return 0;
}
"""
    assert "exit status 0" in run(tmp_path, text).stderr
    refused = run(tmp_path, text, "x").stderr
    assert "cudaIpcGetMemHandle is not available without a GPU" in refused
    assert "exit status 3" in refused


def test_other_sources_are_built_and_their_kernels_checked(tmp_path):
    other = tmp_path / "other.cu"
    other.write_text(
        "__global__ void shift(int* p) { __shared__ int s[64]; s[threadIdx.x] = p[threadIdx.x];\n"
        "    p[threadIdx.x] = s[(threadIdx.x + 1) % 64]; }\n"
        "void start(int* p) { shift<<<1, 64>>>(p); }\n"
    )
    text = "void start(int*); int main() { int* p; cudaMalloc(&p, 256); start(p); return 0; }\n"
    done = run(tmp_path, text, options=("--with", str(other)))
    assert "other.cu:2" in done.stdout
    assert "[confirmed]" in done.stdout
    missing = run(tmp_path, text)
    assert "nothing defines start(int*)" in missing.stdout
    assert "name its other sources" in missing.stdout
    assert len(list((cache_folder() / "programs").glob("*/runtime.o"))) == 1  # for all programs of this cache


def test_kernels_of_several_sources_print_their_own_texts(tmp_path):
    other = tmp_path / "other.cu"
    other.write_text(
        '#include <cstdio>\n__global__ void second() { printf("the second says %d\\n", 2); }\n'
        "void start() { second<<<1, 1>>>(); }\n"
    )
    text = (
        '#include <cstdio>\nvoid start();\n__global__ void first() { printf("first says %d\\n", 1); }\n'
        "int main() { first<<<1, 1>>>(); start(); return cudaDeviceSynchronize(); }\n"
    )
    done = run(tmp_path, text, options=("--with", str(other)))
    assert done.stderr.splitlines()[:2] == ["first says 1", "the second says 2"]


def test_variables_of_one_name_in_several_sources_are_told(tmp_path):
    other = tmp_path / "other.cu"
    text = "static __device__ int count;\n__global__ void %s() { ++count; }\n"
    other.write_text(text % "second" + "void start() { second<<<1, 1>>>(); }\n")
    own = text % "first" + "void start(); int main() { first<<<1, 1>>>(); start(); return 0; }\n"
    done = run(tmp_path, own, options=("--with", str(other)))
    assert "count: several sources have their own, and only the first one's is used" in done.stdout


def test_a_program_that_crashes_or_does_not_end_is_told(tmp_path):
    crash = run(tmp_path, "int main() { volatile int* p = 0; return *p; }\n")
    assert "the program crashed (SIGSEGV)" in crash.stdout
    text = "int main() { for (;;) {} }\n"
    endless = run(tmp_path, text, options=("--deadline", "15"))
    assert "did not end before its deadline" in endless.stdout


def test_a_kernel_that_hangs_ends_with_the_runtimes_error(tmp_path):
    text = """
#include <cstdio>
__global__ void wait(volatile int* p) { while (*p == 0) {} }
int main() {
    int* p;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    wait<<<1, 32>>>(p);
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
}
"""
    done = run(tmp_path, text, options=("--deadline", "15"))
    assert "wait: the kernel is stuck" in done.stdout


def test_errors_of_the_build_stand_on_the_users_lines(tmp_path):
    done = run(tmp_path, "int main() {\n    return missing;\n}\n")
    assert "program.cu:2" in done.stdout
    assert "does not build" not in done.stdout
    assert done.exit_code != 0


def test_calls_through_pointers_and_virtual_calls_are_executed(tmp_path):
    text = """
#include <cstdio>
typedef int (*Op)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ Op table[2] = {twice, square};
struct Shape { __device__ virtual int area(int x) { return x; } };
struct Box : Shape { __device__ int area(int x) override { return 3 * x; } };
__global__ void k(int* out, int which) {
    Box box;
    Shape plain;
    Shape* shape = which ? &box : &plain;
    out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x) + 1000 * shape->area(threadIdx.x);
}
int main() {
    int *out, bad = 0;
    cudaMallocManaged(&out, 128);
    for (int which = 0; which < 2; ++which) {
        k<<<1, 32>>>(out, which);
        cudaDeviceSynchronize();
        for (int i = 0; i < 32; ++i) bad += out[i] != (i & 1 ? i * i : 2 * i) + (which ? 3000 : 1000) * i;
    }
    return bad;
}
"""
    assert "2 launches on CPU emulator, exit status 0" in run(tmp_path, text).stderr


def test_blocks_of_a_cooperative_launch_meet_and_memory_of_the_devices_heap_works(tmp_path):
    text = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void reverse(int* data, int* out, int n) {
    cg::grid_group grid = cg::this_grid();
    int* own = (int*)malloc(8);
    own[0] = own[1] = n;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) data[i] = i + own[1] - n;
    free(own);
    MEET
    for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = data[n - 1 - i];
}
int main() {
    int n = 3000, *data, *out, bad = 0;
    cudaMallocManaged(&data, n * 4);
    cudaMallocManaged(&out, n * 4);
    void* given[] = {&data, &out, &n};
    cudaLaunchCooperativeKernel((void*)reverse, dim3(4), dim3(128), given, 0, 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i) bad += out[i] != n - 1 - i;
    return bad ? 9 : 0;
}
"""
    good = run(tmp_path, text.replace("MEET", "grid.sync();"))
    assert "exit status 0" in good.stderr
    assert "[confirmed]" not in good.stdout
    assert "[confirmed]" in run(tmp_path, text.replace("MEET", "")).stdout


def test_memory_comes_from_pools(tmp_path):
    text = """
#include <cstdio>
__global__ void k(int* p) { p[threadIdx.x] = threadIdx.x; }
int main() {
    cudaMemPool_t pool, own, current;
    unsigned long long keep = 1 << 20, kept = 0;
    cudaMemPoolProps props = {};
    cudaStream_t stream;
    int *p, host[32];
    cudaStreamCreate(&stream);
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
    cudaMemPoolCreate(&own, &props);
    cudaDeviceSetMemPool(0, own);
    cudaDeviceGetMemPool(&current, 0);
    cudaMallocFromPoolAsync((void**)&p, sizeof host, own, stream);
    k<<<1, 32, 0, stream>>>(p);
    cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaFreeAsync(p, stream);
    cudaMemPoolDestroy(own);
    return host[31] + (kept == keep) + 2 * (current == own);
}
"""
    assert "exit status 34" in run(tmp_path, text).stderr


def test_kernels_of_included_headers_are_checked_too(tmp_path):
    (tmp_path / "kernels.cuh").write_text(
        "__global__ void shift(int* p) { __shared__ int s[64]; s[threadIdx.x] = p[threadIdx.x];\n"
        "    p[threadIdx.x] = s[(threadIdx.x + 1) % 64]; }\n"
    )
    text = '#include "kernels.cuh"\nint main() { int* p; cudaMalloc(&p, 256); shift<<<1, 64>>>(p); }\n'
    done = run(tmp_path, text)
    assert "kernels.cuh:2" in done.stdout
    assert "[confirmed]" in done.stdout


def test_a_failed_assertion_is_printed_and_is_the_runtimes_error(tmp_path):
    text = """
#include <cassert>
#include <cstdio>
__global__ void k(int n) { assert(threadIdx.x < n); }
int main() {
    k<<<2, 64>>>(60);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
    printf(" and %s\\n", cudaGetErrorName(cudaStreamSynchronize(0)));
}
"""
    done = run(tmp_path, text)
    assert "Assertion `threadIdx.x < n` failed." in done.stderr
    assert "cudaErrorAssert and cudaErrorAssert" in done.stderr
    assert "an assertion failed: threadIdx.x < n (thread 60)" in done.stdout


def test_accesses_outside_the_programs_allocations_are_told(tmp_path):
    text = """
__global__ void guarded(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
__global__ void one_too_many(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = in[i];
}
__global__ void quads_from_an_odd_place(const int* in, int* out) {
    int4 quad = *(const int4*)(in + 4 * threadIdx.x + 1);
    out[threadIdx.x] = quad.x + quad.w;
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 96 * sizeof(int));
    cudaMalloc(&out, 96 * sizeof(int));
    guarded<<<2, 64>>>(in, out, 96);
    one_too_many<<<2, 64>>>(in, out, 96);
    quads_from_an_odd_place<<<1, 8>>>(in, out);
    return cudaDeviceSynchronize();
}
"""
    done = run(tmp_path, text)
    told = [line for line in done.stdout.splitlines() if "global-out-of-bounds" in line]
    assert [line.split(":")[1] for line in told] == ["8", "8", "11"]
    assert "out[i] is outside out: thread (32,0,0) of block (1,0,0) reaches byte 384" in told[0]
    assert "not aligned in in" in told[2]
    assert done.exit_code == 1


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_graphs_run_and_their_kernels_are_checked(tmp_path, barrier, racy):
    done = run(tmp_path, GRAPH.replace("BARRIER", barrier))
    assert done.stderr.count("host: captured") == 3
    assert racy or "as it should be, no error" in done.stderr
    assert "10 launches on CPU emulator" in done.stderr
    assert ("[confirmed]" in done.stdout) == racy


@pytest.mark.parametrize(("barrier", "racy"), [("cluster.sync();", False), ("__syncthreads();", True)])
def test_launches_as_clusters_run_and_are_checked(tmp_path, barrier, racy):
    """The launch says how many blocks a cluster has."""
    done = run(tmp_path, CLUSTERS.replace("BARRIER", barrier), options=("--arch", "sm_90"))
    assert "as it should be, no error" in done.stderr
    assert ("shared-race" in done.stdout) == racy
    assert done.exit_code == racy


def test_managed_variables_are_the_programs_own(tmp_path):
    done = run(tmp_path, MANAGED)
    assert "total 20, last 6, no error" in done.stderr
    assert "5 launches on CPU emulator" in done.stderr


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_a_program_of_several_gpus_has_those_that_its_environment_shows(tmp_path, monkeypatch, barrier, racy):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    done = run(tmp_path, DEVICES.replace("BARRIER", barrier))
    told = "2 and 4 of 6, device 1, memory of 1, invalid device ordinal"
    assert told in done.stderr
    assert racy or f"as it should be, {told}" in done.stderr
    assert "6 launches on CPU emulator" in done.stderr
    assert ("[confirmed]" in done.stdout) == racy


def test_one_gpu_is_shown_to_a_program_whose_environment_names_none(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert "only 1 device" in run(tmp_path, DEVICES.replace("BARRIER", "")).stderr


def test_a_default_stream_for_each_thread_is_one_more_stream(tmp_path):
    source, makefile = tmp_path / "program.cu", tmp_path / "Makefile"
    source.write_text(GRAPH.replace("BARRIER", ""))
    makefile.write_text("app: program.cu\n\tnvcc --default-stream per-thread program.cu -o app\n")
    given = ["--engine", "emulator", "--build", f"make -C {tmp_path}", "--run", str(tmp_path / "app")]
    done = CliRunner().invoke(main, ["run", str(source), *given])
    assert "10 launches on CPU emulator" in done.stderr
    assert "[confirmed]" in done.stdout


@pytest.mark.parametrize(("barrier", "racy"), [("grid.sync();", False), ("", True)])
def test_cooperative_grids_are_checked_and_who_only_asks_for_the_grid_runs_like_any_kernel(
    tmp_path, barrier, racy
):
    done = run(tmp_path, COOPERATIVE.replace("BARRIER", barrier))
    assert racy or done.stderr.count("as it should be, no error") == 4
    assert ("[confirmed]" in done.stdout) == racy
    assert "sized was launched once by the program, 1 checked" in done.stdout
    assert "30 of 16384 blocks were checked" in done.stdout
