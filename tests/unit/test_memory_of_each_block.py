"""Shared memory is each block's own: what one block does with it tells nothing of another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
LOCKED = """if (threadIdx.x % 32 == 0) {
    while (atomicCAS(LOCK, 0, 1) != 0);
    a[0] += threadIdx.x + blockIdx.x;
    __threadfence();
    atomicExch(LOCK, 0);
}"""


def kernel_of(body: str, grid: str) -> KernelReport:
    text = (
        f"{GROUPS}__global__ void k(int* a, const int* in, int* lock) {{ __shared__ int s[64]; {body} }}\n"
        f"void f(int* p, const int* q, int* l, int n) {{ k<<<{grid}, 64>>>(p, q, l); }}\n"
    )
    (kernel,) = check_text(Path("k.cu"), text).kernels
    return kernel


@pytest.mark.parametrize("grid", ["4", "n"])
def test_a_lock_in_shared_memory_keeps_no_other_block_away(grid: str) -> None:
    begin = "if (threadIdx.x == 0) s[0] = 0; __syncthreads(); "
    assert kernel_of(begin + LOCKED.replace("LOCK", "&s[0]"), grid).verdict is Verdict.RACY
    assert kernel_of(LOCKED.replace("LOCK", "lock"), grid).verdict is Verdict.RACE_FREE


def test_a_grid_barrier_leaves_each_block_its_own_contents() -> None:
    body = "s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x]; cg::this_grid().sync(); "
    store = "if (threadIdx.x == 0 && PLACE[3] == (int)blockIdx.x) a[0] = 1 + blockIdx.x;"
    assert kernel_of(body + store.replace("PLACE", "s"), "n").verdict is not Verdict.RACE_FREE
    assert kernel_of(body + store.replace("PLACE", "in"), "n").verdict is Verdict.RACE_FREE
