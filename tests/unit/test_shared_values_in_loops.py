"""Shared memory that a loop reads, between its barriers, and does not write: its threads read alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(const int* in, float* out, int n) {{
    __shared__ int limits[256];
    __shared__ float part[256];
    int t = threadIdx.x;
    limits[t] = in[t];
    {before}
    {loop}
}}
void go(const int* in, float* out, int n) {{ k<<<1, 256>>>(in, out, n); }}
"""
SWAP = "part[t] = n; __syncthreads(); out[t] = part[255 - t]; __syncthreads();"
UP_TO = "for (int at = 0, i = 0; at < n; i++) {{ int next = limits[{index}]; {changed} {swap} at = next; }}"
WHERE = "for (int i = 0; i < 200; i++) {{ {changed} if (limits[{index}] > 0) {{ {swap} }} {behind} }}"
FOUND = (
    "int low = 0; while (low < n && limits[low] < n) low++; for (; low < 250; low = limits[low]) {{ {swap} }}"
)


def report(loop: str, before: str = "__syncthreads();", **parts: str) -> KernelReport:
    words = {"index": "i", "changed": "", "behind": "", "swap": SWAP} | parts
    text = KERNEL.format(before=before, loop=loop.format(**words))
    (found,) = check_text(Path("a.cu"), text, PATIENT).kernels
    return found


def diverges(found: KernelReport) -> bool:
    return any(f.code is Code.BARRIER_DIVERGENCE for f in found.findings)


@pytest.mark.parametrize("loop", [UP_TO, WHERE, FOUND])
def test_what_no_round_writes_is_read_alike(loop: str) -> None:
    found = report(loop)
    assert (found.verdict, diverges(found)) == (Verdict.RACE_FREE, False), found.reasons


@pytest.mark.parametrize("loop", [UP_TO, WHERE])
@pytest.mark.parametrize(
    "parts",
    [
        {"index": "i + t % 2"},  # each reads its own
        {"before": ""},  # not all of it is there
        {"changed": "if (i == 3) limits[(t + i) % 256] = t;"},  # a round changes it before it is read
    ],
)
def test_what_threads_may_read_differently_parts_them(loop: str, parts: dict[str, str]) -> None:
    found = report(loop, **parts)
    assert found.verdict is not Verdict.RACE_FREE
    assert diverges(found) or found.verdict is Verdict.RACY


def test_a_branch_that_threads_take_for_themselves_leaves_nothing_alike() -> None:
    own = "if (in[t] > 3) { limits[(t + 1) % 256] = i; }"
    found = report(WHERE, behind=own.replace("{", "{{").replace("}", "}}"))
    assert found.verdict is not Verdict.RACE_FREE
