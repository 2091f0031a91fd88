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
            " __syncthreads(); s[threadIdx.x] = p[threadIdx.x]; b.arrive_and_wait();",
            "cuda::barrier::arrive_and_wait",
        ),
        (
            f"auto pipe = cuda::make_pipeline(); pipe.producer_acquire(); {COPY} pipe.producer_commit();"
            " pipe.consumer_wait(); __syncthreads();",
            "cuda::pipeline::consumer_wait",
        ),
        (
            f"auto pipe = cuda::make_pipeline(); {COPY} cuda::pipeline_consumer_wait_prior<0>(pipe);"
            " __syncthreads();",
            "cuda::pipeline_consumer_wait_prior",
        ),
        (
            "auto g = cg::this_thread_block(); cg::memcpy_async(g, s, p, sizeof(int) * 64); cg::wait(g);",
            "cooperative_groups::memcpy_async",
        ),
        ("if (threadIdx.x == 0) child<<<1, 32>>>(p);", "kernel launch in device code"),
    ],
)
def test_what_is_not_modelled_is_named(body: str, name: str) -> None:
    reports = check_text(Path("k.cu"), HEAD + body + TAIL).kernels
    (kernel,) = (report for report in reports if report.name == "k")
    assert kernel.verdict is Verdict.UNDECIDED
    assert any(reason.startswith(name) for reason in kernel.reasons), kernel.reasons
