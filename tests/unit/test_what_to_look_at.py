"""Messages name what to look at next: lanes, blocks, values, expressions, calls."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, Finding
from cuda_lsp.report.defects import defects
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.findings.words import LONGEST, fitted


def findings(text: str, code: Code) -> list[Finding]:
    report = check_text(Path("k.cu"), text, Settings(solver_budget=0))
    return [f for f in defects(f for k in report.kernels for f in k.findings) if f.code is code]


TRANSPOSED = """
BLOCK
__global__ void k(float* d) {
    __shared__ float tile[32][32];
    tile[threadIdx.x][threadIdx.y] = d[threadIdx.x];
}
"""


def test_a_conflict_names_two_lanes_of_one_bank():
    (found,) = findings(TRANSPOSED.replace("BLOCK", "// cuda-lsp: launch block=(32,32)"), Code.BANK_CONFLICT)
    assert found.message.endswith("; lanes 0 and 1 share bank 0, 32 words apart")


def test_costs_of_an_assumed_block_name_it():
    (found,) = findings(TRANSPOSED.replace("BLOCK", ""), Code.BANK_CONFLICT)
    assert "blocks of 32x32 are assumed" in found.message or "blocks of 16x16 are assumed" in found.message


SWAPS = """
__device__ void swap_if(int& a, int& b) { if (a > b) { int t = a; a = b; b = t; } }
// cuda-lsp: launch block=256 grid=1
__global__ void k(int* d) {
    __shared__ int keys[512];
    keys[threadIdx.x] = d[threadIdx.x];
    keys[threadIdx.x + 256] = d[threadIdx.x + 256];
    __syncthreads();
    swap_if(keys[2 * threadIdx.x], keys[2 * threadIdx.x + 1]);
}
"""


def test_an_access_of_a_helper_names_the_array_and_the_call_that_leads_there():
    found = findings(SWAPS, Code.BANK_CONFLICT)
    assert found and all("(in keys)" in f.message for f in found)
    assert all([r.site.range.start.line for r in f.related] == [9] for f in found)


def test_rows_of_lanes_are_counted():
    text = """
    // cuda-lsp: launch block=(2,16) grid=1
    __global__ void k(float* out, const float* in) {
        if (in[threadIdx.y * 100 + threadIdx.x] > 0) out[0] = 1;
    }
    """
    (found,) = findings(text, Code.UNCOALESCED_ACCESS)
    assert found.message.endswith("; its lanes lie in 16 rows")


def test_a_comparison_of_floats_is_named():
    text = """
    // cuda-lsp: launch block=64 grid=1
    __global__ void k(int* out, const float* in) {
        if (in[threadIdx.x] < 0.5f) __syncthreads();
        out[threadIdx.x] = 1;
    }
    """
    (found,) = findings(text, Code.BARRIER_DIVERGENCE)
    assert "in[threadIdx.x] < 0.5f" in found.message


def test_a_race_in_a_later_round_names_that_round():
    text = """
    // cuda-lsp: launch block=(32,1,2) grid=1
    __global__ void k(int* out) {
        __shared__ int s[256];
        for (int c = threadIdx.x + threadIdx.z; c < 256; c += 32) s[c] = threadIdx.z + 2 * threadIdx.x;
    }
    """
    (found,) = findings(text, Code.SHARED_RACE)
    assert found.witness is not None and f"s[{found.witness.values['c']}]" in found.message


def test_an_example_of_many_values_says_how_many_more():
    values = " and ".join(f"`parameter_{i}` == {i}" for i in range(12))
    message = fitted(
        f"WAW race on out[1]: thread 1 and thread 0 both write out[i], when for example {values}", ()
    )
    assert len(message) <= LONGEST and message.endswith(" more") and "`parameter_0` == 0" in message


def test_a_loop_of_which_only_some_rounds_are_seen_names_one():
    text = """
    __global__ void k(int* d, unsigned n) {
        __shared__ int s[1024];
        for (unsigned stride = 1; stride < n; stride <<= 1) {
            __syncthreads();
            d[threadIdx.x] = s[2 * threadIdx.x - (threadIdx.x & (stride - 1))];
        }
    }
    void run(int* d, int n) { k<<<1, 512>>>(d, n); }
    """
    (found,) = findings(text, Code.BANK_CONFLICT)
    assert "in rounds like `stride` == 1" in found.message


def test_an_index_out_of_bounds_under_made_up_sizes_names_them():
    text = """
    __global__ void k(int* d, int n, int m) {
        __shared__ int s[64];
        for (int i = 0; i < m; ++i) {
            if (threadIdx.x < n) s[threadIdx.x] = d[i];
            __syncthreads();
        }
    }
    void run(int* d, int n, int m) { k<<<1, 128>>>(d, n, m); }
    """
    found = findings(text, Code.SHARED_OUT_OF_BOUNDS)
    assert found and all("for example when n = " in f.message for f in found)


def test_conditions_of_unknown_floats_are_among_those_that_decide():
    text = """
    // cuda-lsp: launch block=64
    __global__ void k(int* out, const float* in, int n) {
        if (threadIdx.x >= n) return;
        int count = 0;
        if (in[threadIdx.x] < 0.5f) count = 1;
        if (!count) return;
        __syncthreads();
        out[threadIdx.x] = 1;
    }
    """
    (found,) = findings(text, Code.BARRIER_DIVERGENCE)
    assert "as lines 4 and 7 decide" in found.message


PUTS = """
__device__ void put(int* place, int v) { *place = v; }
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* d) {
    __shared__ int keys[256];
    put(keys + threadIdx.x, 0);
    __syncthreads();
    put(keys + 4 * threadIdx.x, 1);
    __syncthreads();
    d[threadIdx.x] = keys[threadIdx.x];
}
"""


def test_a_conflict_of_one_call_of_a_helper_leads_to_that_call():
    (found,) = findings(PUTS, Code.BANK_CONFLICT)
    assert "4-way" in found.message
    assert [r.site.range.start.line for r in found.related] == [8]


def test_lanes_that_go_backwards_lie_in_one_row():
    text = """
    // cuda-lsp: launch block=8 grid=1
    __global__ void k(float* out, const float* in) { out[threadIdx.x] = in[12 - threadIdx.x]; }
    """
    (found,) = findings(text, Code.UNCOALESCED_ACCESS)
    assert found.message.endswith("instead of 1; it begins 20 bytes into a sector")


def test_a_place_in_one_large_object_is_told_by_its_field():
    text = """
    struct Buffer { float head[64]; float tail[64]; };
    // cuda-lsp: launch block=64 grid=1
    __global__ void k(float* out) {
        __shared__ Buffer buffer;
        buffer.head[threadIdx.x] = 1;
        __syncthreads();
        out[threadIdx.x] = buffer.tail[threadIdx.x];
    }
    """
    (found,) = findings(text, Code.SHARED_UNINITIALISED)
    assert "no thread has written buffer.tail[0] before" in found.message
