"""What real bugs and real sources taught: conditions that nobody decides, launches, constants, bounds."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text


def checked(text: str, *, solver: bool = False) -> FileReport:
    return check_text(Path("history.cu"), text, Settings(solver=solver, solver_budget=100))


def kernel(report: FileReport, name: str) -> KernelReport:
    return next(k for k in report.kernels if k.name == name)


def test_bounds_beyond_a_word_stop_nobody() -> None:
    text = """
__global__ void spread(unsigned long long* out, const unsigned long long* in) {
    unsigned long long x = in[threadIdx.x] % 0xfffffffffffffffeull;
    x = x + threadIdx.x;
    if (in[5] > 3) x = threadIdx.x;
    out[x & 31] = 1;
}
void go(unsigned long long* p) { spread<<<1, 32>>>(p, p + 64); }
"""
    report = checked(text)
    assert not report.errors
    assert kernel(report, "spread").verdict is Verdict.UNDECIDED


def test_a_launch_with_a_constant_argument_is_of_that_instantiation_only() -> None:
    text = """
#define LANES 32
template <int threads> __global__ void ring(float* out) {
    extern __shared__ float s[];
    if (threads > LANES) {
        s[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = s[threads - 1 - threadIdx.x];
    }
}
void go(float* p) {
    ring<LANES><<<1, LANES>>>(p);
    ring<256><<<1, 256, 256 * sizeof(float)>>>(p);
}
"""
    report = checked(text)
    assert [launch.block for launch in kernel(report, "ring<256>").launches] == [(256, 1, 1)]
    assert not any(k.findings for k in report.kernels)


def test_rows_of_warps_are_assumed_where_threads_are_numbered_so() -> None:
    text = """
__global__ void __launch_bounds__(128) numbered(float* out, const float* in) {
    __shared__ float s[128];
    int t = 32 * threadIdx.y + threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[blockIdx.x * 128 + t] = s[127 - t];
}
"""
    report = kernel(checked(text), "numbered")
    assert report.launches[0].block == (32, 4, 1)
    assert not report.findings


HARD = """
__global__ void fix(float* out, const float* in, const int* rows, int nx, int ny, int per, int steps) {
    __shared__ int table[16];
    long tiles = (long)((nx + 15) / 16) * ((ny + 15) / 16) * (per / steps);
    long first = blockIdx.x * tiles / gridDim.x, last = (blockIdx.x + 1) * tiles / gridDim.x;
    first -= (first % (per / steps)) % steps;
    last -= (last % (per / steps)) % steps;
    if (first == last || first % (per / steps) == 0) return;
    int low = rows[first / (per / steps)];
    for (int j = threadIdx.y * 32 + threadIdx.x; j < 16; j += 256) table[j] = rows[low + j];
    BETWEEN
    for (int j = threadIdx.y; j < 16; j += 8)
        out[table[j] * nx + threadIdx.x] += in[blockIdx.x * 512 + j * 32 + threadIdx.x];
}
void go(float* o, float* i, int* r, int a, int b, int c, int d) {
    fix<<<132, dim3(32, 8)>>>(o, i, r, a, b, c, d);
}
"""


def on_table(report: KernelReport) -> list[Status]:
    return [f.status for f in report.findings if f.kind and "race on table" in f.message]


def test_a_pair_behind_conditions_too_hard_to_decide_is_told() -> None:
    """Nothing between the accesses orders them; only conditions that all threads share are open."""
    broken = kernel(checked(HARD.replace("BETWEEN", ""), solver=True), "fix")
    assert broken.verdict is not Verdict.RACE_FREE
    assert on_table(broken)


def test_a_barrier_decides_such_a_pair() -> None:
    repaired = kernel(checked(HARD.replace("BETWEEN", "__syncthreads();"), solver=True), "fix")
    assert not on_table(repaired)


def test_narrow_floats_do_not_take_any_object() -> None:
    text = """
#include <cuda_fp16.h>
struct Element { float* p; __device__ operator float&() { return *p; } };
struct To {
    static __device__ float to(float v) { return v; }
    static __device__ float to(half v) { return v; }
};
__global__ void doubled(float* out) {
    Element e{out + threadIdx.x};
    out[threadIdx.x] = 2 * To::to(e);
}
void go(float* p) { doubled<<<1, 32>>>(p); }
"""
    report = checked(text)
    assert not report.errors
    assert kernel(report, "doubled").verdict is Verdict.RACE_FREE
