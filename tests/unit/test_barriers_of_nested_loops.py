"""Accesses that barriers of nested loops order, whichever of these make a round, and those that none does."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
NESTED = """
__global__ void k(const float* in, const int* sizes, float* out, int images, int rows, int parts) {{
    __shared__ float sums[64];
    int t = threadIdx.x;
    for (int image = 0; image < images; image++) {{
        float scale = in[image];
        for (int row = 0; row < rows; row++) {{
            float weight = in[images + row] + sizes[row];
            for (int part = 0; part < parts; part++) {{
                sums[63 - t] = scale * weight * in[part];
                {first}
                for (int half = 32; half > 0; half /= 2) {{
                    if (t < half) sums[t] += sums[t + half];
                    {inner}
                }}
                if (t == 0) out[((blockIdx.x * images + image) * rows + row) * parts + part] = sums[0];
                {last}
            }}
        }}
    }}
}}
"""
SYNC = "__syncthreads();"


def decided(source: str, budget: float = 2.0) -> SolverResult:
    return refine_kernel(lowered(source), [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=budget))


def test_barriers_of_nested_loops_cost_little() -> None:
    result = decided(NESTED.format(first=SYNC, inner=SYNC, last=SYNC), 0.5)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize("missing", ["first", "inner", "last"])
def test_each_of_them_is_needed(missing: str) -> None:
    result = decided(NESTED.format(**({"first": SYNC, "inner": SYNC, "last": SYNC} | {missing: ""})))
    assert result.verdict is Verdict.RACY, result.reasons
    assert any(f.array == "sums" and f.certain for f in result.findings)


@pytest.mark.parametrize("last", ["if (part % 2) __syncthreads();", "if (row > 0) __syncthreads();"])
def test_a_barrier_of_some_rounds_is_not_enough(last: str) -> None:
    assert decided(NESTED.format(first=SYNC, inner=SYNC, last=last)).verdict is Verdict.RACY


ONE_AFTER_THE_OTHER = """
__global__ void k(float* out, int n) {{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = t;
    {loop}
    out[blockIdx.x * 64 + t] = s[63 - t];
}}
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < 3; i++) { __syncthreads(); }",
        "for (int i = 0; i < 1; i++) { __syncthreads(); }",
        "for (int i = 0; i < 2; i++) for (int j = 0; j < 1; j++) { __syncthreads(); }",
        "for (int i = 0; i < 2; i++) { if (i == 1) __syncthreads(); }",
        "for (int i = 0; i < 4; i++) { if (n == i) break; __syncthreads(); } __syncthreads();",
    ],
)
def test_a_loop_that_surely_passes_a_barrier_orders_what_is_around_it(loop: str) -> None:
    result = decided(ONE_AFTER_THE_OTHER.format(loop=loop))
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < n; i++) { __syncthreads(); }",  # may make no round
        "for (int i = 0; i < 1; i++) { if (n == 3) __syncthreads(); }",
        "for (int i = 0; i < 1; i++) { if (n == 3) break; __syncthreads(); }",
        "for (int i = 0; i < 4; i++) { if (n == i) break; __syncthreads(); }",
        "for (int i = n; i < 1; i++) { __syncthreads(); }",
        "for (int i = 0; i < n; i++) for (int j = 0; j < 1; j++) { __syncthreads(); }",
        "for (int i = 0; i < 1; i++) for (int j = 0; j < n; j++) { __syncthreads(); }",
        "for (int i = 0; i < 1; i++) { __syncthreads(); s[t] = n; }",
        "for (int i = 0; i < 2; i++) { if (i < n) __syncthreads(); }",
    ],
)
def test_one_that_may_pass_none_does_not(loop: str) -> None:
    assert decided(ONE_AFTER_THE_OTHER.format(loop=loop)).verdict is Verdict.RACY


LEFT = """
__global__ void k(float* out, int n) {{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = t;
    if (t >= 32) return;
    for (int i = 0; i < {rounds}; i++) {{ {before} __syncthreads(); }}
    out[blockIdx.x * 64 + t] = s[{read}];
}}
"""


def test_who_has_left_is_behind_no_barrier_before_the_first() -> None:
    raced = decided(LEFT.format(rounds=1, before="out[t] = s[t + 32];", read="t"))
    assert raced.verdict is Verdict.RACY


ATOMICS = """
__global__ void k(int* bins, const int* in, int* out, int rounds) {{
    __shared__ int s[64];
    for (int r = 0; r < rounds; r++) {{
        {update}
        s[threadIdx.x] = in[r];
        __syncthreads();
        out[(blockIdx.x * rounds + r) * 64 + threadIdx.x] = s[63 - threadIdx.x];
        __syncthreads();
    }}
}}
"""


def test_atomics_alone_meet_without_a_race() -> None:
    update = "atomicAdd(&bins[in[r] & 15], 1);"
    assert decided(ATOMICS.format(update=update)).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "update",
    [
        "atomicAdd(&bins[in[r] & 15], 1); s[threadIdx.x] = bins[0];",  # a plain read beside them
        "atomicAdd((unsigned long long*)bins + (threadIdx.x & 3), 1ull); atomicAdd(&bins[r & 7], 1);",
        "atomicAdd_block(&bins[in[r] & 15], 1);",  # of one block alone
    ],
)
def test_other_updates_beside_them_do(update: str) -> None:
    assert decided(ATOMICS.format(update=update)).verdict is not Verdict.RACE_FREE


SKIPPED = """
__global__ void k(const int* skip, const float* in, float* out, int rows) {{
    __shared__ float s[64];
    int t = threadIdx.x;
    for (int r = 0; r < rows; r++) {{
        int row = (blockIdx.x * rows + r) * 64;
        if (skip[r]) {{
            {skipped}
        }} else {{
            s[63 - t] = in[row + t];
            __syncthreads();
            for (int half = 32; half > 0; half /= 2) {{
                if (t < half) s[t] += s[t + half];
                __syncthreads();
            }}
            for (int i = 0; i < 3; i++) out[row + t] = s[i];
            {last}
        }}
    }}
}}
"""


def test_who_goes_another_way_makes_no_round() -> None:
    result = decided(SKIPPED.format(skipped="out[row + t] = 0;", last=SYNC), 0.5)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    ("skipped", "last"),
    [
        ("out[row + t] = 0;", ""),
        ("out[row + t / 2] = t;", SYNC),
        ("s[t] = 0;", "if (r == 3) s[63 - t] = 1;"),
        ("out[row + 64 + t / 2] = t;", SYNC),
    ],
)
def test_what_races_on_either_way_is_told(skipped: str, last: str) -> None:
    assert decided(SKIPPED.format(skipped=skipped, last=last)).verdict is Verdict.RACY


WARPS = """
__global__ void k(const float* in, float* out, float* sums, int rows, int n) {{
    __shared__ float s[64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int row = 2 * blockIdx.x + warp; row < rows; row += 2 * gridDim.x) {{
        float sum = in[row];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        for (int i = lane; i < n; i += 32) {{
            s[{write}] = in[row * n + i] + sum;
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
            __syncwarp();
            out[row * n + i] = s[{read}];
            __syncwarp();
        }}
        {last}
    }}
}}
"""


@pytest.mark.parametrize(
    ("write", "read"), [("threadIdx.x", "threadIdx.x"), ("32 * warp + lane", "threadIdx.x")]
)
def test_warps_that_make_as_many_rounds_as_they_like(write: str, read: str) -> None:
    result = decided(WARPS.format(write=write, read=read, last="if (lane == 0) sums[row] = s[32 * warp];"))
    assert not any(f.array == "s" and f.certain for f in result.findings), result.findings


@pytest.mark.parametrize(
    ("write", "last"),
    [
        ("lane", ""),  # of both warps
        ("threadIdx.x", "sums[row] = s[63 - threadIdx.x];"),  # of the other warp
        ("threadIdx.x", "s[threadIdx.x ^ 32] = 0;"),
    ],
)
def test_what_two_warps_do_in_different_rounds_is_told(write: str, last: str) -> None:
    result = decided(WARPS.format(write=write, read="threadIdx.x", last=last))
    assert any(f.array == "s" and f.certain for f in result.findings), result.reasons
