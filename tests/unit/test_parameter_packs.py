"""Kernels whose parameters are a pack: all of it have one name, and are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

GENERIC = """
template <class F, class... A> __global__ void each(int n, A... a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) F::at(i, a...);
}
"""
AT = "struct F { static __device__ void at"
SHIFT = f"{AT}(int i, float* out, const float* in, int by) {{ out[i] = in[i + by]; }} }}; "
SCALE = f"{AT}(int i, int w, int h, float* out) {{ out[i * w + h] = 1; }} }}; "
THREE = "void f(int n, float* x, float* y) "


def kernel(host: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), GENERIC + host).kernels
    return report


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        (SHIFT + THREE + "{ each<F><<<n / 64, 64>>>(n, x, y, 1); }", Verdict.RACE_FREE),
        (SHIFT + THREE + "{ each<F><<<n / 64, 64>>>(n, x, x, 1); }", Verdict.RACY),
        (SHIFT + THREE + "{ each<F><<<n / 64, 64>>>(n, x, x, 0); }", Verdict.RACE_FREE),
        (SHIFT + THREE + "{ each<F><<<n / 64, 64>>>(n, x, x + 1, -1); }", Verdict.RACE_FREE),
        (SCALE + "void f(float* x, int n) { each<F><<<n / 64, 64>>>(n, 2, 0, x); }", Verdict.RACE_FREE),
        (SCALE + "void f(float* x, int n) { each<F><<<n / 64, 64>>>(n, 0, 2, x); }", Verdict.RACY),
    ],
)
def test_what_a_pack_stands_for_is_told_apart(host: str, verdict: Verdict) -> None:
    assert kernel(host).verdict is verdict
