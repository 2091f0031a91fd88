"""Lambdas that the host makes and a kernel is passed: what they hold by copy are parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
template <typename F> __global__ void each(int n, F f) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}}
template <typename F, typename... A> __global__ void with(F f, A... a) {{
    f(blockIdx.x * blockDim.x + threadIdx.x, a...);
}}
template <typename F> struct Later {{
    F f;
    template <typename... A> void go(A... a) const {{ with<<<4, 64>>>(f, a...); }}
}};
template <typename F> Later<F> later(F f) {{ return Later<F>{{f}}; }}
template <typename T> struct Span {{
    T* data; long size;
    __device__ T& operator[](long i) const {{ return data[i]; }}
}};
void host(float* p, const float* q, const int& c, int n, Span<float> s) {{
    int twice = 2 * n;
    {body}
}}
"""


def kernel_of(body: str) -> KernelReport:
    report = check_text(Path("k.cu"), TEXT.format(body=body))
    (kernel,) = (kernel for kernel in report.kernels if "lambda" in kernel.name)
    return kernel


@pytest.mark.parametrize(
    "body",
    [
        "each<<<4, 64>>>(n, [=] __device__ (int i) { p[i] = q[i + c]; });",
        "each<<<4, 64>>>(n, [p, q, c] __device__ (int i) { p[i] = q[i + c]; });",
        "auto f = [=] __device__ (int i) { p[i] = twice; }; each<<<4, 64>>>(n, f);",
        "with<<<4, 64>>>([=] __device__ (int i, const float* from) { if (i < n) p[i] = from[i]; }, q);",
        "later([=] __device__ (int i, float* to) { for (int j = 0; j < 4; j++) to[4 * i + j] = c; }).go(p);",
        "each<<<4, 64>>>(n, [=] __device__ (int i) { if (i < s.size) s[i] = 1; });",
        "each<<<4, 64>>>(n, [=] __device__ (int n) { p[n] = 1; });",
    ],
)
def test_a_lambda_that_writes_apart_is_race_free(body: str) -> None:
    assert kernel_of(body).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("each<<<4, 64>>>(n, [=] __device__ (int i) { p[i % c] = i; });", "`c`"),
        (
            "each<<<4, 64>>>(n, [=] __device__ (int i) { p[i / twice] = i; });",
            "`n`",
        ),  # which `twice` is made of
        ("each<<<4, 64>>>(n, [s] __device__ (int i) { s[0] = i; });", ""),
        # A number of the lambda's is none of the kernel's of that name.
        ("{ int n = c; each<<<4, 64>>>(256, [=] __device__ (int i) { p[i % n] = i; }); }", "`captured n`"),
    ],
)
def test_a_lambda_that_races_is_found(body: str, named: str) -> None:
    kernel = kernel_of(body)
    assert kernel.verdict is Verdict.RACY
    assert any(named in (finding.condition or "") for finding in kernel.findings)


def test_what_a_lambda_holds_is_taken_to_have_buffers_of_its_own() -> None:
    kernel = kernel_of("each<<<4, 64>>>(n, [=] __device__ (int i) { p[i] = q[i + 1]; });")
    assert kernel.assumptions == ("no other pointer leads to the buffers of `q`, `p`, which a lambda holds",)
    alone = kernel_of("each<<<4, 64>>>(n, [=] __device__ (int i) { p[i] = 1; });")
    assert alone.assumptions == ()


@pytest.mark.parametrize("captured", ["&", "=, &c", "p, &c"])
def test_what_a_lambda_only_refers_to_is_not_known(captured: str) -> None:
    kernel = kernel_of(f"each<<<4, 64>>>(n, [{captured}] __device__ (int i) {{ p[i % c] = 1; }});")
    assert kernel.verdict is Verdict.UNDECIDED
