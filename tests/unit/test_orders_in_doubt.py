"""What a barrier of a warp orders that the warp may pass by: nothing, where its lanes go on together."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

START = "__shared__ int s[256]; int t = threadIdx.x, num = sizes[0]; s[t] = t;"
END = "out[blockIdx.x * 256 + t] = s[t ^ 1];"


@pytest.mark.parametrize("threads", [32, 128])
@pytest.mark.parametrize(
    "body",
    [
        "if (sizes[t / 32]) { __syncwarp(); }",
        "if (sizes[t / 32] & 1) { } else { __syncwarp(); }",
        "if (sizes[t]) { num = __shfl_xor_sync(~0u, num, 1); }",
        "for (int i = t; i < (num & ~31); i += blockDim.x) __syncwarp();",
        "for (int i = t; i < (num & ~31); i += blockDim.x) { if (sizes[i / 32]) continue; __syncwarp(); }",
    ],
)
def test_a_barrier_that_a_warp_may_pass_by_orders_nothing_behind_it(body: str, threads: int) -> None:
    kernel = f"__global__ void k(const int* sizes, int* out) {{ {START} {body} {END} }}\n"
    launch = f"void f(int* p, int* o) {{ k<<<1, {threads}>>>(p, o); }}\n"
    report = check_text(Path("k.cu"), kernel + launch)
    assert not report.errors and report.kernels[0].verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "if (sizes[t / 32]) return; __syncwarp();",
        "if (sizes[t / 32]) { __syncwarp(); } else { __syncwarp(); }",
        "if (__any_sync(~0u, sizes[t])) { __syncwarp(); }",
    ],
)
def test_those_that_stay_are_ordered(body: str) -> None:
    kernel = f"__global__ void k(const int* sizes, int* out) {{ {START} {body} {END} }}\n"
    report = check_text(Path("k.cu"), kernel + "void f(int* p, int* o) { k<<<1, 128>>>(p, o); }\n")
    assert not report.errors and report.kernels[0].verdict is Verdict.RACE_FREE
