"""Constructs that are not modelled are named; a kernel that holds one is never called race-free."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

HEAD = """
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void child(int* p);
__global__ void k(int* p) {
    __shared__ int s[64];
"""
TAIL = """
    p[threadIdx.x + 64] = s[63 - threadIdx.x];
}
int main() { k<<<1, 64>>>(0); }
"""
COPY = "cuda::memcpy_async(&s[threadIdx.x], &p[threadIdx.x], sizeof(int), pipe);"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 64);"
            " __syncthreads(); s[threadIdx.x] = p[threadIdx.x];"
            " while (!b.try_wait(b.arrive())) ;",
            "cuda::barrier::try_wait",
        ),
        (
            f"auto pipe = cuda::make_pipeline(); pipe.producer_acquire(); {COPY} pipe.producer_commit();"
            " pipe.consumer_wait(); pipe.quit(); __syncthreads();",
            "cuda::pipeline::quit",
        ),
        (
            "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 64);"
            " __syncthreads(); cuda::device::memcpy_async_tx(s, p, cuda::aligned_size_t<16>(256), b);"
            " b.arrive_and_wait();",
            "cuda::device::memcpy_async_tx",
        ),
        ("if (threadIdx.x == 0) child<<<1, 32>>>(p);", "kernel launch in device code"),
    ],
)
def test_what_is_not_modelled_is_named(body: str, name: str) -> None:
    reports = check_text(Path("k.cu"), HEAD + body + TAIL).kernels
    (kernel,) = (report for report in reports if report.name == "k")
    assert kernel.verdict is Verdict.UNDECIDED
    assert any(reason.startswith(name) for reason in kernel.reasons), kernel.reasons
