"""Barriers that threads miss because of what memory holds: shown by a run, refuted, or in doubt."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cuda_lsp.model import Code, FileReport, Status, Verdict
from cuda_lsp.report.terminal import render
from cuda_lsp.static.analyze import check_text


def checked(body: str, threads: int = 256) -> FileReport:
    kernel = f"__global__ void k(const int* p, int* out) {{ int t = threadIdx.x, b = blockIdx.x; {body} }}\n"
    launch = f"void f(int* p, int* o) {{ k<<<8, {threads}>>>(p, o); }}\n"
    report = check_text(Path("k.cu"), kernel + launch)
    assert not report.errors
    return report


def told(report: FileReport) -> dict[Status, str]:
    return {f.status: f.message for f in report.findings if f.code is Code.BARRIER_DIVERGENCE}


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < p[b * 256 + t]; ++i) { out[b * 256 + t] = i; __syncthreads(); }",
        "int n = p[t]; while (n > 0) { __syncthreads(); --n; }",
        "for (int i = p[t]; i < p[t + 1]; ++i) __syncthreads();",
        "if (__any_sync(0xffffffff, p[b * 256 + t])) __syncthreads();",
        "bool some = __ballot_sync(~0u, p[t] > 3) != 0; if (some) { out[b * 256 + t] = 1; __syncthreads(); }",
        "if (p[t] > 0) __syncthreads();",
        "if (p[t] > 0) return; __syncthreads(); out[b * 256 + t] = 1;",
        "int i = p[t] & 1; if (i) __syncthreads(); else out[b * 256 + t] = 1;",
        "for (int i = 0; i < 16; ++i) { __syncthreads(); if (p[i * 256 + t] > 3) break; }",
        "for (int i = 0; i < 16; ++i) { __syncthreads(); if (p[t] > i) return; out[b * 256 + t] = i; }",
        "int i = 0; do { __syncthreads(); if (p[t] == i) break; } while (++i < 9); out[b * 256 + t] = i;",
    ],
)
def test_contents_that_part_the_threads_of_a_block_are_the_condition(body: str) -> None:
    report = checked(body)
    (status,) = told(report)
    assert status is Status.CONDITIONAL and "`p" in told(report)[status].rsplit("when", 1)[1]


@pytest.mark.parametrize(
    ("body", "threads"),
    [
        ("if (__any_sync(0xffffffff, p[t])) __syncthreads();", 32),
        ("if (__syncthreads_or(p[t])) __syncthreads();", 256),
        ("for (int i = 0; i < p[b]; ++i) __syncthreads();", 256),
        ("for (int i = p[b]; i < p[b + 1]; ++i) { if (p[i]) __syncthreads(); }", 256),
        ("int i = 0; while (p[i] != 0) { switch (p[i]) { case 1: __syncthreads(); break; } ++i; }", 256),
        ("int i = 0; while (true) { int op = p[i]; if (!op) break; if (op == 3) { i = p[i + 1]; continue; }"
         " if (op == 1) __syncthreads(); ++i; }", 256),
        ("if (__any_sync(0xffffffff, p[t])) __syncwarp();", 256),
        ("for (int i = 0; i < 16; ++i) { __syncthreads(); if (p[i] > 3) break; }", 256),
        ("for (int i = 0; i < 16; ++i) { if (__syncthreads_or(p[i * 256 + t] > 3)) break; }", 256),
    ],
)  # fmt: skip
def test_what_all_threads_of_the_block_read_alike_parts_nobody(body: str, threads: int) -> None:
    report = checked(body, threads)
    assert not told(report) and report.kernels[0].verdict is Verdict.RACE_FREE


def rendered(report: FileReport) -> list[str]:
    console = Console(width=200, record=True, file=StringIO())
    render(console, [report], lambda path: [], verbose=True)
    return console.export_text().splitlines()


def totals(report: FileReport) -> str:
    return rendered(report)[-1]


@pytest.mark.parametrize("body", ["if (t < 7) __syncthreads();", "if (p[t]) __syncthreads();"])
def test_a_kernel_with_a_missed_barrier_is_not_counted_as_race_free(body: str) -> None:
    lines = rendered(checked(body))
    assert "0 race-free" in lines[-1] and "1 free of races but for" in lines[-1]
    assert not any("is race-free" in line for line in lines)
    assert any("k is free of races but for threads that miss a barrier" in line for line in lines)


def test_the_others_are() -> None:
    assert "1 race-free" in totals(checked("__syncthreads();"))


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 16; ++i) { __syncthreads(); if (x[i * 256 + t] > .5f) break; }",
        "float sum = 0; for (int i = 0; i < 16; ++i) { __syncthreads(); sum += x[t]; if (sum > 1) return; }",
        "while (true) { __syncthreads(); x[b * 256 + t] *= .5f; if (x[b * 256 + t] < 1e-3f) break; }",
    ],
)
def test_a_break_that_floats_decide_behind_the_barrier_parts_threads(body: str) -> None:
    """The next round's barrier is missed: it was called race-free, with nothing told."""
    kernel = f"__global__ void k(float* x) {{ int t = threadIdx.x, b = blockIdx.x; {body} }}\n"
    report = check_text(Path("k.cu"), kernel + "void f(float* x) { k<<<8, 256>>>(x); }\n")
    assert [*told(report)] == [Status.CONDITIONAL]


@pytest.mark.parametrize(
    ("body", "parted"),
    [
        ("for (int i = 0; i < n; ++i) { if (p[b] < 3) break; grid.sync(); }", True),
        ("for (int i = 0; i < n; ++i) { if (x[b] < .5f) break; grid.sync(); }", True),
        ("if (x[b] < .5f) return; grid.sync();", True),
        ("if (p[b]) grid.sync();", True),
        ("for (int i = 0; i < p[b]; ++i) grid.sync();", True),
        ("for (int i = 0; i < n; ++i) { if (p[0] < 3) break; grid.sync(); }", False),
        ("for (int i = 0; i < p[n]; ++i) grid.sync();", False),
        ("__shared__ int go; if (t == 0) go = *p; __syncthreads(); if (go) grid.sync();", False),
        ("if (p[b]) { __syncthreads(); } grid.sync();", False),
    ],
)
def test_blocks_that_decide_by_data_of_theirs_miss_a_barrier_of_the_grid(body: str, parted: bool) -> None:
    text = f"""#include <cooperative_groups.h>
__global__ void k(const float* x, const int* p, int n) {{
  auto grid = cooperative_groups::this_grid();
  int t = threadIdx.x, b = blockIdx.x;
  {body}
}}
void f(float* x, int* p, int n) {{
  void* a[] = {{&x, &p, &n}};
  cudaLaunchCooperativeKernel((void*)k, dim3(16), dim3(64), a, 0, 0);
}}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors and [*told(report)] == [Status.CONDITIONAL] * parted


_LANES = """#include <cooperative_groups.h>
#define ALL 0xffffffffu
__global__ void k(const int* p, const float* x, int* out, int n) {
  __shared__ int s[128]; __shared__ float f[4];
  int t = threadIdx.x, i = blockIdx.x * 128 + t, lane = t & 31, w = t >> 5, v = p[i];
  BODY
  __syncthreads();
  out[i] = v;
}
void g(const int* p, const float* x, int* out, int n) { k<<<8, 128>>>(p, x, out, n); }
"""


def checked_lanes(body: str) -> FileReport:
    report = check_text(Path("k.cu"), _LANES.replace("BODY", body))
    assert not report.errors
    return report


@pytest.mark.parametrize(
    "body",
    [
        "if (v != 0) __syncwarp();",
        "if (v != 0) { s[t] = v; __syncwarp(); v += s[t]; }",
        "if (v > 3) __syncwarp(ALL);",
        "unsigned m = lane < 16 ? 0xffffu : 0xffff0000u; if (v > 3) __syncwarp(m);",
        "for (int j = 0; j < v; ++j) __syncwarp();",
        "for (int j = 0; j < 8; ++j) { if (p[i] == j) break; __syncwarp(); }",
        "if (p[w] > 0 && v > 0) __syncwarp();",
        "if (p[i / 16]) __syncwarp();",
        "if (v > 3) { if (i < n) s[t] = 1; __syncwarp(); }",
        "if (__shfl_xor_sync(ALL, v, 1) > 2) __syncwarp();",
        "if (v == 7) return; if (p[i + 128] > 3) __syncwarp();",
    ],
)
def test_contents_that_part_the_lanes_of_a_warp_are_the_condition(body: str) -> None:
    """Nothing was told, and the kernel was called race-free."""
    report = checked_lanes(body)
    assert report.kernels[0].verdict is not Verdict.RACE_FREE
    (status,) = told(report)
    assert status is Status.CONDITIONAL and "`p" in told(report)[status].rsplit("when", 1)[1]


@pytest.mark.parametrize(
    "body", ["if (t < n) __syncwarp();", "for (int j = t; j < n; j += 128) __syncwarp();"]
)
def test_sizes_that_part_the_lanes_of_a_warp_are_the_condition(body: str) -> None:
    found = told(checked_lanes(body))
    assert [*found] == [Status.CONDITIONAL] and "`n`" in found[Status.CONDITIONAL]


@pytest.mark.parametrize(
    "body",
    [
        "if (x[i] > .5f) __syncwarp();",
        "if (v != 0) { __syncwarp(); return; }",
        "int j = __shfl_xor_sync(ALL, lane, 1) + 32 * w; s[j] = v; __syncwarp(); if (s[j]) __syncwarp();",
        "float a = x[w]; if (a > x[i]) __syncwarp();",
    ],
)
def test_lanes_that_may_miss_their_warps_barrier_are_told(body: str) -> None:
    report = checked_lanes(body)
    assert told(report) and report.kernels[0].verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "if (p[w] > 0) __syncwarp();",
        "for (int j = p[w]; j < p[w + 1]; ++j) __syncwarp();",
        "if (__any_sync(ALL, v > 0)) __syncwarp();",
        "while (__any_sync(ALL, v > 0)) { --v; __syncwarp(); }",
        "if (__shfl_sync(ALL, v, 0) > 0) __syncwarp();",
        "if (__reduce_add_sync(ALL, v) > 0) __syncwarp();",
        "if (v > 0) __syncwarp(__activemask());",
        "unsigned m = __ballot_sync(ALL, v > 0); if (v > 0) __syncwarp(m);",
        "if (lane == 0) s[w] = v; __syncwarp(); if (s[w] > 0) __syncwarp();",
        "if (x[w] > .5f) __syncwarp();",
        "if (lane < 16) __syncwarp(0xffffu);",
        "if (p[i / 16]) __syncwarp(lane < 16 ? 0xffffu : 0xffff0000u);",
    ],
)
def test_what_the_lanes_of_a_warp_have_in_common_parts_none_of_them(body: str) -> None:
    report = checked_lanes(body)
    assert not told(report) and report.kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "if (i >= n) return; __syncwarp(); out[i] = 1;",
        "if (v == 3) return; __syncwarp(); out[i] = 1;",
        "if (x[i] > .5f) return; __syncwarp(); out[i] = 1;",
        "if (i >= n) return; if (p[w]) __syncwarp(); out[i] = 1;",
        "for (int j = 0; j < 8; ++j) { __syncwarp(); if (v == j) return; }",
        "if (v) v = __shfl_sync(ALL, v, 0); out[i] = v;",
    ],
)
def test_no_barrier_of_a_warp_waits_for_lanes_that_have_returned(body: str) -> None:
    """Of lane exchanges nothing is said that hangs on data."""
    report = check_text(Path("k.cu"), _LANES.replace("BODY\n  __syncthreads();\n  out[i] = v;", body))
    assert not report.errors and not told(report)
    assert report.kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("body", "lane"),
    [
        ("unsigned m = (1u << (t & 31)) - 1; out[t] = __ballot_sync(m, p[t] > 0);", 0),
        ("if (t < 16) __syncwarp(0xff); out[t] = 1;", 8),
        ("unsigned m = __ballot_sync(~0u, t & 1); out[t] = __shfl_sync(m, t, 1);", 0),
        ("out[t] = __shfl_down_sync(0xffffu, p[t], 8);", 16),
    ],
)
def test_a_lane_that_its_own_mask_leaves_out_is_told(body: str, lane: int) -> None:
    message = told(checked(body, 32))[Status.PROVED]
    assert message.startswith(f"lane {lane} calls ") and "leaves it out" in message


@pytest.mark.parametrize(
    "body",
    [
        "unsigned m = (2u << (t & 31)) - 1; if (t == 31) out[t] = __ballot_sync(m, p[t] > 0);",
        "if (t < 8) __syncwarp(0xff); out[t] = 1;",
        "unsigned m = __ballot_sync(~0u, p[t]); if (p[t]) out[t] = __shfl_sync(m, t, __ffs(m) - 1);",
        "unsigned m = __ballot_sync(~0u, t & 1); out[t] = __shfl_sync(t & 1 ? m : ~m, t, 0);",
        "out[t] = __shfl_xor_sync(0xffffu << (t & 16), p[t], 8);",
        "unsigned m = (1u << 32 % 64) - 1; out[t] = __shfl_down_sync(m, p[t], 1);",
    ],
)
def test_a_lane_that_its_mask_names_is_not(body: str) -> None:
    assert not any("leaves it out" in message for message in told(checked(body, 32)).values())
