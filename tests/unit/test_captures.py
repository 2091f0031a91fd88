"""What lambdas hold by copy is what variables held when they were made; and who writes them by a macro."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
#define COPY [=]
#define ALL [&]
#define GIVE(x) [x] {{ return x; }}
#define BIND(x) auto& [a, b] = x
struct P {{ int u, v; }};
struct Q {{ int u; __device__ int then(int t) {{ auto f = [*this] {{ return u; }}; u = t; return f(); }} }};
__global__ void k(int* out, P given, int n) {{
  int t = threadIdx.x, s = 0;
  __shared__ int m[64];
  {body}
}}
void f(int* o, P p, int n) {{ k<<<1, 64>>>(o, p, n); }}
"""


def verdict(body: str) -> Verdict:
    (kernel,) = check_text(Path("a.cu"), TEXT.format(body=body)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "s = t; auto f = [=] { return s; }; s = 0; out[f()] = t;",
        "P p{t, 0}; auto f = [=] { return p.u; }; p.u = 0; out[f()] = t;",
        "P p{t, 0}; auto f = [p]() mutable { p.u = 0; return p.u; }; f(); out[p.u] = t;",
        "P p{0, 0}; auto f = [&] { return p.u; }; p.u = t; out[f()] = t;",
        "P p{0, 0}; auto f = [&p] { p.u = threadIdx.x; }; f(); out[p.u] = t;",
        "int ts = 0; auto f = [&ts, t] { ts = t; }; f(); out[ts] = t;",
        "auto f = [=] { return given.u + threadIdx.x; }; out[f()] = t;",
        "auto f = COPY { return t + n; }; out[f()] = t;",
        "P p{t, 0}; auto& [a, b] = p; b = 0; out[p.u] = t;",
        "m[t] = t; int& r = m[t]; auto f = [=] { return r; }; m[t] = 0; out[t] = f();",
    ],
)
def test_threads_that_keep_apart(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "auto f = [=] { return s; }; s = t; out[f()] = t;",
        "P p{0, 0}; auto f = [=] { return p.u; }; p.u = t; out[f()] = t;",
        "P p{0, 0}; auto f = [p] { return p.u; }; p.u = t; out[f()] = t;",
        "P p{t, 0}; auto f = [&] { p.u = 0; }; f(); out[p.u] = t;",
        "int ts = t; auto f = [&ts, s] { ts = s; }; f(); out[ts] = t;",
        "Q q{0}; out[q.then(t)] = t;",
        "P p{t, 0}; auto& [a, b] = p; a = 0; out[p.u] = t;",
    ],
)
def test_threads_that_meet(body: str) -> None:
    assert verdict(body) is Verdict.RACY


@pytest.mark.parametrize(
    "body",
    [
        "int a[2] = {0, 0}; auto f = [=] { return a[0]; }; a[0] = t; out[f()] = t;",
        "auto f = COPY { return s; }; s = t; out[f()] = t;",
        "auto f = GIVE(s); s = t; out[f()] = t;",
        "s = t; auto f = ALL { s = 0; }; f(); out[s] = t;",
        "s = t; auto f = COPY() mutable { s = 0; }; f(); out[s] = t;",
        "P p{t, t}; BIND(p); a = 0; out[p.u] = t;",
    ],
)
def test_nobody_calls_free_what_is_not_known(body: str) -> None:
    assert verdict(body) is Verdict.UNDECIDED
