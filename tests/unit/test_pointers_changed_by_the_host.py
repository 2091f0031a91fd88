"""Pointers of the host that hold another one's place where a launch stands: surely, perhaps, or not now."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <utility>
__global__ void k(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + 2];
}
float* alloc(int n);
"""
MADE = "float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n); "
LAUNCH = "k<<<n / 256, 256>>>(a, b); "
TENSOR = """
struct Tensor { float* data(); Tensor view(int); Tensor narrow(int, int, int); Tensor contiguous(); };
"""


def kernel(host: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), KERNEL + host).kernels
    return report


@pytest.mark.parametrize(
    "host",
    [
        f"void f(int n) {{ {MADE} b = a; {LAUNCH} }}",
        f"void f(int n) {{ float *a, *b, *c; cudaMalloc(&a, 4 * n); c = b = a; {LAUNCH} }}",
        f"void f(int n, float* b) {{ float* a; cudaMalloc(&a, 4 * n); b = a; {LAUNCH} }}",
    ],
)
def test_what_was_assigned_last_is_what_is_passed(host: str) -> None:
    assert kernel(host).verdict is Verdict.RACY


@pytest.mark.parametrize(
    "host",
    [
        f"void f(int n, bool c) {{ {MADE} if (c) b = a; {LAUNCH} }}",
        f"void f(int n, bool c) {{ {MADE} if (c) {{ b = a; }} {LAUNCH} }}",
        f"void f(int n, int c) {{ {MADE} switch (c) {{ case 1: b = a; }} {LAUNCH} }}",
        f"void g(); void f(int n) {{ {MADE} try {{ g(); }} catch (...) {{ b = a; }} {LAUNCH} }}",
        f"void f(int n) {{ {MADE} if (n > 5) goto same; back: {LAUNCH} return; same: b = a; goto back; }}",
        f"void f(int n) {{ {MADE} auto g = [&] {{ b = a; }}; g(); {LAUNCH} }}",
        f"void f(int n) {{ {MADE} for (int i = 0; i < 2; ++i) {{ {LAUNCH} a = b; }} }}",
        f"void f(float* a, int n, bool c) {{ float* b = a; if (c) cudaMalloc(&b, 4 * n); {LAUNCH} }}",
        f"void f(float* a, int n, bool c) {{ float* b; if (c) cudaMalloc(&b, 4 * n); else b = a; {LAUNCH} }}",
        f"void f(float* a, int n) {{ float* b = 0; cudaMalloc(&b, 4 * n); if (!b) b = a; {LAUNCH} }}",
        f"void f(int n, bool c) {{ float *a = alloc(n), *b = alloc(n); if (c) b = a; {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ float*& r = b; r = a; {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ float** r = &b; *r = a; {LAUNCH} }}",
        f"void f(int n) {{ {MADE} float* c = a; std::swap(b, c); {LAUNCH} }}",
        f"void f(int n, float* c) {{ {MADE} float* t = a; c = t; t = b; b = c; {LAUNCH} }}",
        f"void f(int n, bool c) {{ {MADE} float* t = b; if (c) t = a; b = t; {LAUNCH} }}",
        "void run(float* a, float* b, int n) { k<<<n / 256, 256>>>(a, b); }"
        " void f(int n, bool c) { float* a = alloc(n); float* b = c ? a : alloc(n); run(a, b, n); }",
        TENSOR + "void f(Tensor x, int n) { auto y = x.narrow(0, 1, n); k<<<n, 64>>>(x.data(), y.data()); }",
        TENSOR + "void f(Tensor x, int n) { auto y = x.contiguous(); k<<<n, 64>>>(x.data(), y.data()); }",
    ],
)
def test_what_may_hold_the_other_one_is_not_cleared(host: str) -> None:
    assert kernel(host).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "host",
    [
        TENSOR + "void f(Tensor x, int n) { auto y = x.view(n); k<<<n, 64>>>(x.data(), y.data()); }",
        TENSOR + "void f(Tensor& x, int n) { auto& y = x; k<<<n, 64>>>(x.data(), y.data()); }",
        f"void f(float* d, int n) {{ auto g = [&](float* a, float* b) {{ {LAUNCH} }}; g(d, d); }}",
    ],
)
def test_a_view_is_where_its_tensor_is_and_a_lambdas_parameter_what_is_passed(host: str) -> None:
    assert kernel(host).verdict is Verdict.RACY


@pytest.mark.parametrize(
    "host",
    [
        f"void f(int n) {{ {MADE} {LAUNCH} }}",
        f"void f(int n) {{ {MADE} {LAUNCH} cudaFree(a); a = nullptr; }}",
        f"void f(float* a, int n) {{ float* b = a; cudaMalloc(&b, 4 * n); {LAUNCH} }}",
        f"void f(float* a, int n) {{ float* b = a; if (cudaMalloc((void**)&b, 4 * n)) return; {LAUNCH} }}",
        f"void f(int n) {{ {MADE} for (;;) {{ {LAUNCH} float* t = a; a = b; b = t; }} }}",
        f"void f(int n) {{ {MADE} for (;;) {{ {LAUNCH} std::swap(a, b); }} }}",
        f"void f(int n, float* c, float* d) {{ {MADE} for (;;) {{ {LAUNCH} float* t = a; a = b; b = t;"
        " t = c; c = d; d = t; } }",
        TENSOR
        + "void f(Tensor x, Tensor z, int n) { auto y = z.view(n); k<<<n, 64>>>(x.data(), y.data()); }",
    ],
)
def test_what_has_memory_of_its_own_or_takes_turns_is_apart(host: str) -> None:
    assert kernel(host).verdict is Verdict.RACE_FREE
