"""Locks of which each guards what its number says: ``lock[b & 7]`` for ``bins[b]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

FUNCTIONS = """
__device__ void take(int* l) { while (atomicCAS(l, 0, 1) != 0) {} __threadfence(); }
__device__ void give(int* l) { __threadfence(); atomicExch(l, 0); }
"""
ONE_A_BLOCK = (
    "if (threadIdx.x == 0) {{ int b = data[blockIdx.x]; take(&locks[{0}]); {1} give(&locks[{0}]); }}"
)
EVERY_THREAD = """
    int b = data[blockIdx.x * blockDim.x + threadIdx.x];
    bool done = false;
    while (!done) {{
        if (atomicCAS(&locks[{0}], 0, 1) == 0) {{
            __threadfence(); {1} __threadfence();
            atomicExch(&locks[{0}], 0);
            done = true;
        }}
    }}
"""


def kernel_of(body: str) -> KernelReport:
    kernel = f"__global__ void k(int* locks, int* bins, const int* data) {{ {body} }}\n"
    launch = "void f(int* l, int* b, int* d) { k<<<64, 256>>>(l, b, d); }\n"
    report = check_text(Path("k.cu"), FUNCTIONS + kernel + launch)
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize("way", [ONE_A_BLOCK, EVERY_THREAD])
@pytest.mark.parametrize(
    ("lock", "update"),
    [
        ("b & 7", "bins[b] += 1;"),
        ("b % 8", "bins[b] = bins[b] * 2;"),
        ("b", "bins[b] += b;"),
        ("(b & 63) / 8", "bins[b & 63]++;"),
    ],
)
def test_threads_that_meet_have_one_lock(way: str, lock: str, update: str) -> None:
    kernel = kernel_of(way.format(lock, update))
    assert not any(f.kind and f.status is not Status.POSSIBLE for f in kernel.findings)


@pytest.mark.parametrize("way", [ONE_A_BLOCK, EVERY_THREAD])
def test_the_usual_stripes_are_race_free(way: str) -> None:
    assert kernel_of(way.format("b & 7", "bins[b] += 1;")).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize("way", [ONE_A_BLOCK, EVERY_THREAD])
@pytest.mark.parametrize(
    ("lock", "update"),
    [("b & 7", "bins[b >> 1] += 1;"), ("b & 7", "bins[b & 3] += 1;"), ("b & 7", "bins[0] += b;")],
)
def test_stripes_that_are_not_those_of_the_bins_are_no_guard(way: str, lock: str, update: str) -> None:
    assert kernel_of(way.format(lock, update)).verdict is not Verdict.RACE_FREE


def test_where_threads_of_two_locks_meet_in_an_ordinary_run_it_is_told() -> None:
    kernel = kernel_of(EVERY_THREAD.format("b & 7", "bins[b & 3] += 1;"))
    assert any(f.kind and f.status is Status.CONDITIONAL for f in kernel.findings)
