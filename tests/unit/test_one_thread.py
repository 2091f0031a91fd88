"""A kernel that tells no threads apart may be meant for blocks of one, where nothing launches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import RACES, Status
from cuda_lsp.static.analyze import check_text

HEAD = "#include <cooperative_groups.h>\n"
OF_ONE = [
    "__global__ void k(long long* a) { a[blockIdx.x] = clock64(); }",
    "__global__ void k(int* a, int n) { for (int i = 0; i < n; i++) a[blockIdx.x * n + i] += 1; }",
    "__global__ void k(int* a) { a[blockIdx.x + blockIdx.y * gridDim.x]++; }",
]
OF_SEVERAL = [
    "__global__ void k(int* a) { a[0] += 1; }",  # blocks meet there as well
    "__global__ void k(int* a) { a[blockIdx.x / 2] += 1; }",
    "__global__ void k(int* a) { int t = threadIdx.x; a[blockIdx.x] = t; }",
    "__global__ void k(int* a) { a[blockIdx.x] = cooperative_groups::this_thread_block().thread_rank(); }",
    "__global__ void k(long long* a) { a[blockIdx.x] = clock64(); __syncthreads(); a[9999] = 1; }",
    "__global__ void k(long* a) { a[blockIdx.x] = clock64(); } void f(long* a) { k<<<9, 64>>>(a); }",
]


def accused(text: str) -> bool:
    report = check_text(Path("k.cu"), HEAD + text, Settings())
    races = [f for kernel in report.kernels for f in kernel.findings if f.code in RACES]
    return any(race.status in (Status.PROVED, Status.CONDITIONAL) for race in races)


@pytest.mark.parametrize("text", OF_ONE)
def test_it_is_accused_of_no_race_within_its_block(text: str) -> None:
    assert not accused(text)


@pytest.mark.parametrize("text", OF_SEVERAL)
def test_who_tells_threads_apart_or_meets_other_blocks_is_accused(text: str) -> None:
    assert accused(text)
