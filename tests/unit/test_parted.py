"""Which two threads are said to part at a barrier, and for what sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.static.analyze import check_text

TAIL = """
__global__ void tail(float* a, int n, int rounds) {{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < rounds; ++k) {{
        s[threadIdx.x] = a[i];
        __syncthreads();
    }}
}}
{host}
"""


def told(host: str, directive: str = "") -> Finding:
    text = directive + TAIL.format(host=host)
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=20_000)).kernels
    (found,) = [f for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]
    return found


def test_a_warp_parts_from_the_one_before_where_sizes_are_round():
    found = told("", "// cuda-lsp: launch block=256 grid=4\n")
    assert "thread 31 reaches" in found.message and "thread 32 of the same block does not" in found.message
    assert "`n` == 32" in found.message and found.status is Status.CONDITIONAL


@pytest.mark.parametrize("factor", ["64", "PER_ROW"])
def test_sizes_are_multiples_as_the_host_makes_them(factor: str):
    host = f"""
#define PER_ROW 64
void run(float* a, int rows, int rounds) {{
    const int n = rows * {factor};
    tail<<<(n + 255) / 256, 256>>>(a, n, rounds);
}}
"""
    found = told(host)
    assert (
        "thread 63 reaches" in found.message
        or "thread 127 reaches" in found.message
        or ("thread 191 reaches" in found.message)
    )


def test_blocks_of_one_warp_part_within_it():
    found = told("", "// cuda-lsp: launch block=32 grid=4\n")
    assert "thread 0 reaches" in found.message and "`n` == 1" in found.message
