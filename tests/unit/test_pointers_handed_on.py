"""Launches of functions that are handed one buffer twice: through packs, values of functions, objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <functional>
#include <memory>
#include <thread>
#include <utility>
__global__ void k(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + 2];
}
"""
LAUNCH = "k<<<n / 256, 256>>>"
RUN = f"void run(const float* x, float* y, int n) {{ {LAUNCH}(x, y); }} "
PACK = f"template <class... A> void run(int n, A... p) {{ {LAUNCH}(p...); }} "
FORWARD = f"template <class... A> void run(int n, A&&... p) {{ {LAUNCH}(std::forward<A>(p)...); }} "
TWO = "void f(float* a, float* b, int n) "
FIELDS = "const float* x; float* y; "
GO = f"void go(int n) {{ {LAUNCH}(x, y); }} "
MADE = f"struct S {{ {FIELDS} S(const float* p, float* q) : x(p), y(q) {{}} {GO} }}; "
SET = f"struct S {{ {FIELDS} void set(const float* p, float* q) {{ x = p; y = q; }} {GO} }}; "
BARE = f"struct S {{ {FIELDS} }}; void go(S* s, int n) {{ {LAUNCH}(s->x, s->y); }} "
INIT = "void init(S* s, const float* p, float* q) { s->x = p; s->y = q; } "
GLOBAL = "static float *x, *y; void init(int n) { cudaMalloc(&x, 4 * n); cudaMalloc(&y, 4 * n); } "

HANDED_ON = [
    PACK + TWO + "{ run(n, PASSED); }",
    FORWARD + TWO + "{ run(n, PASSED); }",
    RUN + "typedef void (*F)(const float*, float*, int); " + TWO + "{ F g = run; g(PASSED, n); }",
    RUN + TWO + "{ void (*g)(const float*, float*, int) = &run; g(PASSED, n); }",
    RUN + TWO + "{ std::function<void(const float*, float*, int)> g = run; g(PASSED, n); }",
    RUN + TWO + "{ std::thread t(run, PASSED, n); t.join(); }",
    MADE + TWO + "{ S s(PASSED); s.go(n); }",
    MADE + TWO + "{ S(PASSED).go(n); }",
    MADE + TWO + "{ auto s = std::make_unique<S>(PASSED); s->go(n); }",
    SET + TWO + "{ S s; s.set(PASSED); s.go(n); }",
    BARE + INIT + TWO + "{ S s; init(&s, PASSED); go(&s, n); }",
]


def kernel(host: str) -> KernelReport:
    (report,) = check_text(Path("k.cu"), KERNEL + host).kernels
    return report


@pytest.mark.parametrize("host", HANDED_ON)
def test_what_callers_hand_on_is_one_buffer_where_it_is(host: str) -> None:
    assert kernel(host.replace("PASSED", "a, a")).verdict is Verdict.RACY
    assert kernel(host.replace("PASSED", "a, b")).verdict is Verdict.RACE_FREE


def test_pieces_that_callers_hand_on_lie_as_far_apart_as_there() -> None:
    host = RUN + "void f(float* a, int n) { std::thread t(run, a, a + 64, n); t.join(); }"
    (launch,) = find_launches(Path("/x/k.cu"), KERNEL + host)
    assert launch.leads.shared[1].offset == 64


@pytest.mark.parametrize(
    "host",
    [
        GLOBAL + f"void same() {{ y = x; }} void f(int n) {{ {LAUNCH}(x, y); }}",
        f"struct S {{ float *x, *y; void init(int n); {GO} }}; "
        "void S::init(int n) { cudaMalloc(&x, n); cudaMalloc(&y, n); if (n > 9) y = x; }",
        "__device__ float d[1024]; void f(int n) { float *a, *b; cudaGetSymbolAddress((void**)&a, d);"
        f"cudaGetSymbolAddress((void**)&b, d); {LAUNCH}(a, b); }}",
    ],
)
def test_what_another_function_may_have_made_one_buffer_is_open(host: str) -> None:
    assert kernel(host).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    "host",
    [
        GLOBAL + f"void turn() {{ float* t = x; x = y; y = t; }} void f(int n) {{ {LAUNCH}(x, y); }}",
        GLOBAL + f"void turn() {{ std::swap(x, y); }} void f(int n) {{ {LAUNCH}(x, y); }}",
        GLOBAL + f"void grow(int n) {{ y = x; cudaMalloc(&x, n); }} void f(int n) {{ {LAUNCH}(x, y); }}",
        MADE + f"struct T {{ {FIELDS} T(const float* p, float* q) : x(p), y(q) {{}} }}; "
        "void f(float* a, float* b, int n) { T t(a, a); S s(a, b); s.go(n); }",
        "__device__ float d[8], e[8]; void f(int n) { float *a, *b; cudaGetSymbolAddress((void**)&a, d);"
        f"cudaGetSymbolAddress((void**)&b, e); {LAUNCH}(a, b); }}",
    ],
)
def test_what_takes_turns_or_is_of_another_class_stays_apart(host: str) -> None:
    assert kernel(host).verdict is Verdict.RACE_FREE


VIEW = """
template <class T> struct View {
    T* at; int size; void* stream;
    View(T* p, int n, void* s = nullptr) : at(p), size(n), stream(s) {}
    View<T> first(int m) const { return View<T>(at, m, stream); }
};
"""
VIEWS = f"void run(View<float> x, View<float> y, int n) {{ {LAUNCH}(x.at, y.at); }} "
BY_ADDRESS = f"void run(const View<float>& x, View<float>* y, int n) {{ {LAUNCH}(x.at, y->at); }} "
PYRAMID = """
void each(View<float>* v, int n) { for (int i = 0; i < 2; i++) run(HERE, n); }
struct S { View<float> levels[3]; void f(int n) { each(&levels[0], n); } };
"""
REFERENCES = f"void run(const View<float>& x, View<float>& y, int n) {{ {LAUNCH}(x.at, y.at); }} "


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        (f"void f(View<float> x, View<float>* y, int n) {{ {LAUNCH}(x.at, y->at); }}", Verdict.RACE_FREE),
        (TWO + f"{{ View<float> x(a, n), y(b, n); {LAUNCH}(x.at, y.at); }}", Verdict.RACE_FREE),
        (TWO + f"{{ View<float> x(a, n); View<float> y(a, n); {LAUNCH}(x.at, y.at); }}", Verdict.RACY),
        (VIEWS + TWO + "{ View<float> v(a, n), w(b, n); run(v, w, n); }", Verdict.RACE_FREE),
        (VIEWS + TWO + "{ View<float> v(a, n); run(v, v, n); }", Verdict.RACY),
        (BY_ADDRESS + TWO + "{ View<float> v(a, n), w(b, n); run(v, &w, n); }", Verdict.RACE_FREE),
        (BY_ADDRESS + TWO + "{ View<float> v(a, n); run(v, &v, n); }", Verdict.RACY),
        (REFERENCES + "void f(View<float>* v, View<float>* w, int n) { run(*v, *w, n); }", Verdict.RACE_FREE),
        (REFERENCES + "void f(View<float>* v, int n) { run(*v, *v, n); }", Verdict.RACY),
        (REFERENCES + PYRAMID.replace("HERE", "v[i], v[i + 1]"), Verdict.RACE_FREE),
        (REFERENCES + PYRAMID.replace("HERE", "v[i], v[i]"), Verdict.RACY),
    ],
)
def test_objects_of_one_class_hold_buffers_of_their_own(host: str, verdict: Verdict) -> None:
    assert kernel(VIEW + host).verdict is verdict
