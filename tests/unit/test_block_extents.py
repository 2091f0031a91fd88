"""A parameter by which every launch passes the block's extent is that extent, whatever it is."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void halves(const float* in, int width) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = in[t];
    s[t + width] = in[t + width];
}
"""


def verdict(host: str) -> Verdict:
    (kernel,) = check_text(Path("halves.cu"), KERNEL + host).kernels
    return kernel.verdict


def test_a_width_that_is_always_the_blocks_cannot_make_threads_meet() -> None:
    launch = "halves<<<4, block, 8 * n>>>(p, block.x);"
    assert verdict(f"void run(float* p, int n) {{ dim3 block(n); {launch} }}") is Verdict.RACE_FREE


def test_a_width_that_one_launch_chooses_freely_may() -> None:
    launches = "halves<<<4, block, 8 * n>>>(p, block.x); halves<<<4, block, 8 * n>>>(p, n / 2);"
    assert verdict(f"void run(float* p, int n) {{ dim3 block(n); {launches} }}") is Verdict.RACY
