"""``extern __shared__`` arrays declared with a size: nvcc takes them, the launch says how large they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, FileReport, Verdict
from cuda_lsp.static.analyze import check_text


def checked(body: str, size: int = 4096) -> FileReport:
    kernel = f"__global__ void k(float* out) {{ int t = threadIdx.x; {body} }}\n"
    report = check_text(Path("k.cu"), f"{kernel}void f(float* o, int n) {{ k<<<n, 32, {size}>>>(o); }}\n")
    assert not report.errors
    return report


def test_no_block_sees_the_array_of_another() -> None:
    body = "extern __shared__ float s[32][32]; float* p = &s[t][24]; *p = 0; out[blockIdx.x * 32 + t] = *p;"
    assert checked(body).kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("barrier", "verdict"), [("", Verdict.RACY), ("__syncthreads();", Verdict.RACE_FREE)]
)
def test_threads_of_a_block_share_it(barrier: str, verdict: Verdict) -> None:
    body = f"extern __shared__ float s[64]; s[t] = 1; {barrier} if (blockIdx.x == 0) out[t] = s[31 - t];"
    assert checked(body).kernels[0].verdict is verdict


def test_two_of_them_are_one_memory() -> None:
    body = "extern __shared__ float a[32]; extern __shared__ int b[32]; a[t] = 1; out[t] = b[31 - t];"
    found = checked(body).kernels[0].findings
    assert any(finding.code is Code.SHARED_RACE for finding in found)


def test_the_launch_says_how_large_it_is() -> None:
    body = "extern __shared__ float s[1]; s[t] = 1; if (blockIdx.x == 0) out[t] = s[t];"
    assert not checked(body, 128).kernels[0].findings
    assert {f.code for f in checked(body, 64).kernels[0].findings} == {Code.SHARED_OUT_OF_BOUNDS}
