"""Barriers of a warp in loops and branches that each warp goes through as a whole, though nobody knows which.

The first tier alone is asked who misses a barrier; verdicts are those of both.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, FileReport, LaunchConfig, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.barriers import barrier_findings
from cuda_lsp.static.execution.enumerate import execute

GPU = GpuModel("sm_80", (8, 0))
SUMS = "s[t] = a[i]; __syncwarp(); sum += s[t ^ 1]; __syncwarp();"
VOTES = "if (__any_sync(~0u, a[i] > sum)) { __syncwarp(); sum += 1; __syncwarp(); }"


def text(body: str) -> str:
    parameters = "const int* sizes, const float* a, float* out, int n, unsigned u"
    start = "__shared__ float s[256]; int t = threadIdx.x, b = blockIdx.x; int num = sizes[b]; float sum = 0;"
    end = "out[b * 256 + t] = sum;"
    return f"__global__ void k({parameters}) {{ {start} {body} {end} }}\n"


def missed(body: str, threads: int = 128) -> bool:
    """Whether the execution tells of a barrier that some may miss."""
    trace = execute(lowered(text(body)), LaunchConfig((threads, 1, 1), (4, 1, 1)), {}, GPU)
    return bool(barrier_findings(trace))


def checked(body: str, threads: int = 128) -> FileReport:
    launch = "void f(int* p, float* a, float* o, int n, unsigned u) "
    report = check_text(Path("k.cu"), text(body) + launch + f"{{ k<<<4, {threads}>>>(p, a, o, n, u); }}\n")
    assert not report.errors
    return report


def told(report: FileReport) -> bool:
    return any(f.code is Code.BARRIER_DIVERGENCE for f in report.findings)


def rows(limit: str, body: str = SUMS, start: str = "t", test: str = "i < limit") -> str:
    return f"int limit = {limit}; for (int i = {start}; {test}; i += blockDim.x) {{ {body} }}"


MULTIPLES = [
    "num / 32 * 32",
    "num & ~31",
    "num - num % 32",
    "num - (num & 31)",
    "num >> 5 << 5",
    "num * 64",
    "min(num & ~31, n & ~63)",
    "(num & ~31) + 32 * n",
    "(num / 96 + 1) * 96",
    "n > 0 ? num / 64 * 64 : 256",
    "(int)((u + 31) / 32 * 32)",
    "n & ~31",
]


@pytest.mark.parametrize("body", [SUMS, VOTES])
@pytest.mark.parametrize("limit", MULTIPLES)
def test_a_limit_that_is_a_multiple_of_a_warp_parts_no_warp(limit: str, body: str) -> None:
    assert not missed(rows(limit, body))


@pytest.mark.parametrize(
    ("start", "test", "limit"),
    [
        ("t", "limit > i", "num & ~31"),
        ("t", "!(i >= limit)", "num & ~31"),
        ("t", "i <= limit", "(num & ~31) - 1"),
        ("t", "i <= limit", "num | 31"),
        ("t", "limit >= i", "num | 31"),
        ("t + 32", "i < limit", "num & ~31"),
        ("t + 64 * num", "i < limit", "num & ~31"),
        ("t ^ 1", "i < limit", "num & ~31"),
        ("t >> 5", "i < limit", "num"),
    ],
)
def test_however_the_limit_is_compared(start: str, test: str, limit: str) -> None:
    assert not missed(rows(limit, SUMS, start, test))


@pytest.mark.parametrize("limit", ["num / 32 * 32", "num & ~31", "n & ~31", "n - n % 32"])
@pytest.mark.parametrize("body", [SUMS, VOTES])
def test_such_a_loop_is_race_free(limit: str, body: str) -> None:
    report = checked(rows(limit, body))
    assert not told(report) and report.kernels[0].verdict is Verdict.RACE_FREE


BROKEN = [
    (rows("num"), 128),
    (rows("num & ~15"), 128),
    (rows("num & ~31", start="t + 1"), 128),
    (rows("num & ~31", start="30 - t"), 128),
    ("int limit = num & ~31; for (int i = 2 * t; i < limit; i += 256) { " + SUMS + " }", 128),
    (rows("num & ~31"), 48),
    (rows("sizes[t / 16] & ~31"), 128),
    (rows("num & ~31", test="i <= limit"), 128),
    (rows("num & ~31", test="limit >= i"), 128),
    (rows("num & ~31", test="i != limit"), 128),
    (rows("(num & ~31) - 1"), 128),
    (rows("num % 32 * 33"), 128),
    (rows("num - num % 48"), 128),
    (rows("min(num, n & ~31)"), 128),
    (rows("(num & ~31) | n"), 128),
    (rows("num & ~31", "__syncthreads();"), 128),
    (rows("num & ~31", "if (a[i] > 0) { __syncwarp(); }"), 128),
    (rows("num & ~31", "if (t % 32 < 16) { __syncwarp(); }"), 128),
    (rows("num & ~31", "if (a[i] > sum) sum = 1; if (sum > 0) { __syncwarp(); }"), 128),
    (rows("num & ~31", "if (a[i] > 3) break; __syncwarp();"), 128),
    (rows("num & ~31", "__syncwarp(); if (a[i] > 3) break;"), 128),
    (rows("num & ~31", "__syncwarp(); if (a[i] > 3) { sum = 7; return; }"), 128),
    (rows("num & ~31", "__syncwarp(); if (t % 32 == sizes[i / 32]) i += 32;"), 128),
    (rows("num & ~31", "__syncwarp(); i += sizes[t] * 32;"), 128),
    (
        "int i = t; while (i < (num & ~31)) { __syncwarp(); if (a[i] > 3) { sum = i; continue; } i += 32; }",
        128,
    ),
    ("int i = t; while (i < (num & ~31)) { __syncwarp(); i += num; }", 128),
    ("for (int i = t, d = 32; i < (num & ~31); i += d, d /= 2) { __syncwarp(); }", 128),
    ("for (int i = t, d = 32; i < (num & ~31); i += d, d = t) { __syncwarp(); }", 128),
    ("if (t < num && __any_sync(~0u, a[t] > 0)) __syncwarp();", 128),
    ("if (t < num) { if (__any_sync(~0u, a[t] > 0)) __syncwarp(); }", 128),
    ("if (sizes[t / 16]) __syncwarp();", 128),
    ("if (__any_sync(0xffffu << (t & 16), a[t] > 0)) __syncwarp();", 128),
]


@pytest.mark.parametrize(("body", "threads"), BROKEN)
def test_what_parts_a_warp_or_a_block_is_told(body: str, threads: int) -> None:
    assert missed(body, threads)
    report = checked(body, threads)
    assert told(report) and report.kernels[0].verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize(
    "body",
    [
        "if (__any_sync(~0u, a[t] > 0)) __syncwarp();",
        "if (__ballot_sync(~0u, a[t] > 0) == 5) __syncwarp();",
        "if (__reduce_add_sync(~0u, sizes[t]) > 9) { sum = 1; __syncwarp(); } else __syncwarp();",
        "if (sizes[t / 32]) { if (__all_sync(~0u, a[t] > 0)) __syncwarp(); }",
        "for (int i = t / 32; i < num; ++i) { if (!__any_sync(~0u, a[i + t] > 0)) continue; __syncwarp(); }",
        "for (int i = t / 32; i < num; ++i) { if (__any_sync(~0u, a[i + t] > 0)) break; __syncwarp(); }",
        "if (__any_sync(~0u, a[t] > 0)) return; if (__any_sync(~0u, a[t] < -1)) return; __syncwarp();",
    ],
)  # fmt: skip
def test_what_a_whole_warp_votes_is_alike_in_it(body: str, threads: int) -> None:
    assert not missed(body, threads)
