"""Pointers of a launch that come from one thing in ways that are not followed: race-free, and told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void move(const float* from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) to[i] = from[i + 1];
}
struct Two { float* p; float* q; float* view(); const float* cview() const; };
union Any { float* f; int* i; };
float* shown;
void show(float* d) { shown = d; }
float* same(float* p);
float* allocated(int n);
void pick(float*& e, float* d);
void choose(float** e, float* d);
struct Set { void hold(float* d); float* held(); float* get(int i); };
void run(const float* a, float* b, int n) { move<<<n / 256 + 1, 256>>>(a, b, n); }
"""
LAUNCH = "move<<<n / 256 + 1, 256>>>"
TOLD = "`from` and `to`, which the host may take from one buffer, do not overlap"

MAY_BE_ONE = {
    "a copied object": f"void go(Two t, int n) {{ Two u = t; {LAUNCH}(t.p, u.p, n); }}",
    "a copy by a constructor": f"void go(Two t, int n) {{ Two u(t); {LAUNCH}(t.p, u.p, n); }}",
    "a shared owner": "void go(int n) { auto a = std::make_shared<Two>(); cudaMalloc(&a->p, n * 4);"
    f" auto b = a; {LAUNCH}(a->p, b->p, n); }}",
    "a reference": f"void go(float* d, int n) {{ float*& r = d; {LAUNCH}(d, r, n); }}",
    "a pointer to it": f"void go(float* d, int n) {{ float** r = &d; {LAUNCH}(d, *r, n); }}",
    "a pair": "void go(float* d, int n) { std::pair<float*, float*> q(d, d);"
    f" {LAUNCH}(q.first, q.second, n); }}",
    "a union": f"void go(float* d, int n) {{ Any u; u.f = d; {LAUNCH}((const float*)u.i, d, n); }}",
    "an integer": "void go(float* d, int n) { unsigned long long a = (unsigned long long)d;"
    f" {LAUNCH}((float*)a, d, n); }}",
    "a list": "void go(float* d, int n) { for (float* p : {d, d + n}) run(p, d, n); }",
    "an element and another": "void go(float** p, int n, int m) { for (int i = 0; i < m; i++)"
    f" {LAUNCH}(p[0], p[i], n); }}",
    "two elements": f"void go(float** p, int n, int a, int b) {{ {LAUNCH}(p[a], p[b], n); }}",
    "equal pointers that are swapped": "void go(float* d, float* e, int n) { e = d; std::swap(d, e);"
    f" {LAUNCH}(d, e, n); }}",
    "a global": f"void go(float* d, int n) {{ show(d); {LAUNCH}(shown, d, n); }}",
    "a function without a body": f"void go(float* d, int n) {{ {LAUNCH}(same(d), d, n); }}",
    "a reference that is set": f"void go(float* d, int n) {{ float* e; pick(e, d); {LAUNCH}(e, d, n); }}",
    "a pointer that is lent": f"void go(float* d, int n) {{ float* e; choose(&e, d); {LAUNCH}(e, d, n); }}",
    "bytes": f"void go(float* d, int n) {{ float* e; memcpy(&e, &d, sizeof e); {LAUNCH}(e, d, n); }}",
    "the device's name for it": "void go(float* h, int n) { float* d;"
    f" cudaHostGetDevicePointer((void**)&d, h, 0); {LAUNCH}(h, d, n); }}",
    "an object that holds it": f"void go(Set& s, float* d, int n) {{ s.hold(d); {LAUNCH}(s.held(), d, n); }}",
    "a getter's numbers": f"void go(Set& s, int a, int b, int n) {{ {LAUNCH}(s.get(a), s.get(b), n); }}",
    "a container of one value": "void go(float* d, int n) { std::vector<float*> v(2, d);"
    f" {LAUNCH}(v[0], v[1], n); }}",
    "both ends": f"void go(std::vector<float*>& v, int n) {{ {LAUNCH}(v.front(), v.back(), n); }}",
    "behind a comma": f"void go(float* d, int n) {{ float* e; e = (n++, d); {LAUNCH}(e, d, n); }}",
    "two getters": f"void go(Two& t, int n) {{ {LAUNCH}(t.cview(), t.view(), n); }}",
}

ARE_TWO = {
    "allocations": "void go(int n) { float *a, *b; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4);"
    f" {LAUNCH}(a, b, n); }}",
    "parameters": f"void go(float* d, float* e, int n) {{ {LAUNCH}(d, e, n); }}",
    "fields": f"void go(Two t, int n) {{ Two u = t; {LAUNCH}(t.p, u.q, n); }}",
    "parts of a pair": "void go(float* d, float* e, int n) { std::pair<float*, float*> q(d, e);"
    f" {LAUNCH}(q.first, q.second, n); }}",
    "a container of two": "void go(float* d, float* e, int n) { std::vector<float*> v{d, e};"
    f" {LAUNCH}(v[0], v[1], n); }}",
    "getters by number": f"void go(Set& s, int n) {{ {LAUNCH}(s.get(0), s.get(1), n); }}",
    "copies": "void go(float* a, int n) { float *d, *e; cudaMalloc(&d, n); cudaMalloc(&e, n);"
    f" cudaMemcpy(d, a, n, cudaMemcpyHostToDevice); cudaMemcpy(e, d, n, cudaMemcpyDeviceToDevice);"
    f" {LAUNCH}(d, e, n); }}",
    "elements": f"void go(float** p, int n) {{ {LAUNCH}(p[0], p[1], n); }}",
    "that take turns": "void go(float* d, float* e, int n) { for (int i = 0; i < 8; i++) {"
    f" {LAUNCH}(d, e, n); float* t = d; d = e; e = t; }} }}",
    "that take turns by number": "void go(float* d, float* e, int n) { float* b[2] = {d, e};"
    f" for (int i = 0; i < 8; i++) {LAUNCH}(b[i & 1], b[(i + 1) & 1], n); }}",
    "sizes that both are moved by": "void go(Two t, Two u, int n) { int m = n / 2;"
    f" {LAUNCH}(t.p + m, u.p + m, n); }}",
    "names of two blocks": "void go(float* d, float* e, float* f, int n) {"
    f" {{ float* a = d; float* b = e; {LAUNCH}(a, b, n); }}"
    f" {{ float* a = e; float* b = f; {LAUNCH}(a, b, n); }} }}",
    "what a function makes": f"void go(float* d, int n) {{ float* e = allocated(n); {LAUNCH}(d, e, n); }}",
}


def _verdict(host: str) -> tuple[Verdict, bool]:
    report = check_text(Path("perhaps.cu"), KERNEL + host, Settings())
    kernel = next(k for k in report.kernels if k.name == "move")
    return kernel.verdict, TOLD in kernel.assumptions


@pytest.mark.parametrize("host", MAY_BE_ONE.values(), ids=MAY_BE_ONE)
def test_what_is_not_followed_is_told(host: str) -> None:
    assert _verdict(host) == (Verdict.RACE_FREE, True)


@pytest.mark.parametrize("host", ARE_TWO.values(), ids=ARE_TWO)
def test_of_what_comes_from_two_things_nothing_is_told(host: str) -> None:
    assert _verdict(host) == (Verdict.RACE_FREE, False)


def test_what_is_followed_makes_one_buffer() -> None:
    verdict, told = _verdict(f"void go(float* d, int n) {{ float* p = d; {LAUNCH}(p, d, n); }}")
    assert verdict is Verdict.RACY
    assert not told


def test_what_one_launch_is_sure_of_counts_for_all() -> None:
    host = f"void go(Two t, float* d, int n) {{ Two u = t; {LAUNCH}(t.p, u.p, n); {LAUNCH}(d, d, n); }}"
    assert _verdict(host)[0] is Verdict.RACY


def test_a_function_is_called_through_a_pointer() -> None:
    host = "void go(float* d, int n) { void (*f)(const float*, float*, int) = &run; (*f)(d, d, n); }"
    assert _verdict(host)[0] is Verdict.RACY
