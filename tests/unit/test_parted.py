"""Which two threads are said to part at a barrier, and for what sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, Finding, Severity, Status
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
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    (found,) = [f for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]
    return found


def test_a_warp_parts_from_the_one_before_where_sizes_are_round():
    found = told("", "// cuda-lsp: launch block=256 grid=4\n")
    assert "thread 31 reaches" in found.message and "thread 32 has returned" in found.message
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


RETURNS = {
    "before it": "if (t >= 100) return; s[t] = 1; __syncthreads(); out[t] = s[t ^ 1];",
    "in a function": "if (late(t)) return; s[t] = 1; __syncthreads(); out[t] = s[t ^ 1];",
    "in a round": "for (int i = 0; i < 4; i++) { if (t >= 100) return; s[t] = i; __syncthreads(); }",
    "under what all agree on": "if (t >= 100) return; if (n > 3) __syncthreads();",
}
PARTS = {
    "a branch": "if (t < 64) __syncthreads();",
    "a branch behind a return": "if (t == 7) return; if (t < 64) __syncthreads();",
    "a break": "for (int i = 0; i < 4; i++) { if (t >= 100 + i) break; __syncthreads(); }",
    "a break or a return": "for (int i = 0; i < 4; i++) { if (t > 99) break; if (t == 7) return;"
    " __syncthreads(); }",
    "rounds": "for (int i = 0; i < t; i++) __syncthreads();",
    "the grid's": "if (t >= 100) return; cooperative_groups::this_grid().sync();",
}


def parting(body: str) -> list[Finding]:
    text = f"""#include <cooperative_groups.h>
__device__ bool late(int t) {{ if (t > 90) return true; return false; }}
__global__ void k(int* out, int n) {{ __shared__ int s[128]; int t = threadIdx.x; {body} }}
void run(int* out) {{ k<<<1, 128>>>(out, 5); }}
"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    return [f for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]


@pytest.mark.parametrize("way", RETURNS)
def test_threads_that_have_returned_are_a_warning(way: str) -> None:
    found = parting(RETURNS[way])
    assert found and {f.effective_severity for f in found} == {Severity.WARNING}
    assert all("has returned before it" in f.message and len(f.message) < 160 for f in found)


@pytest.mark.parametrize("way", PARTS)
def test_threads_that_go_elsewhere_are_an_error(way: str) -> None:
    found = parting(PARTS[way])
    assert found and {f.effective_severity for f in found} == {Severity.ERROR}
