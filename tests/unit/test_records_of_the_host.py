"""Pointers in records whose launch does not tell where each leads: that they lead apart is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <cstring>
#include <utility>
struct P { float* in; float* out; int n; };
__global__ void k(P p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p.out[i] = p.in[i + 2];
}
"""
LAUNCH = "k<<<n / 256, 256>>>(p); "
SAID = "the pointers in `p` point to objects of their own"


def kernel(host: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), KERNEL + host).kernels
    return report


@pytest.mark.parametrize(
    "host",
    [
        f"void f(float* a, int n) {{ P q{{a, a, n}}; P p = q; {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ P p{{a, b, n}}; P& q = p; q.out = a; {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ P p{{a, b, n}}, q{{b, b, n}}; memcpy(&p, &q, 24); {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ P p{{a, b, n}}; float* c = a; std::swap(p.out, c);"
        f" {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ P p{{a, b, n}}; for (;;) {{ {LAUNCH} p.in = p.out; }} }}",
        f"void run(P p, int n) {{ {LAUNCH} }} void f(float* a, int n) {{ run({{a, a, n}}, n); }}",
        "void f(float* a, int n) { P* p = new P{a, a, n}; k<<<n / 256, 256>>>(*p); }",
    ],
)
def test_what_is_not_followed_is_said(host: str) -> None:
    report = kernel(host)
    assert report.verdict is not Verdict.RACE_FREE or SAID in report.assumptions


@pytest.mark.parametrize(
    "host",
    [
        f"void f(float* a, float* b, int n) {{ P p{{a, b, n}}; {LAUNCH} }}",
        f"void f(float* a, float* b, int n) {{ P p; p.in = a; p.out = b; {LAUNCH} }}",
        "void f(float* a, float* b, int n) { k<<<n / 256, 256>>>(P{a, b, n}); }",
    ],
)
def test_of_what_is_followed_nothing_is_said(host: str) -> None:
    report = kernel(host)
    assert report.verdict is Verdict.RACE_FREE and SAID not in report.assumptions


@pytest.mark.parametrize(
    "host",
    [
        f"void f(float* a, int n) {{ P p{{a, a, n}}; {LAUNCH} }}",
        f"void f(float* a, float* b, int n, bool c) {{ P p; p.in = a; p.out = b; if (c) p.out = a;"
        f" {LAUNCH} }}",
    ],
)
def test_what_leads_to_one_buffer_is_not_cleared(host: str) -> None:
    assert kernel(host).verdict is not Verdict.RACE_FREE
