"""How far pieces lie apart that classes, lambdas and functions of the host hand out, and what leaves it open.

Each host takes a piece of ``n`` floats and one behind it; broken twins take less, go back, or leave it open.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

HOST = """
struct Arena {
  float* base_; size_t off_ = 0;
  Arena(float* b) : base_(b) {}
  float* take(size_t n) { float* p = base_ + off_; off_ += n; return p; }
  float* checked(size_t n) {
    if (off_ + n > 999) return nullptr;
    float* p = base_ + off_; off_ += n; return p;
  }
  Arena& reset() { off_ = 0; return *this; }
  size_t& used() { return off_; }
  void elsewhere();
  bool operator<<(int n) { off_ = n; return true; }
};
struct Bytes {
  char* base; size_t used;
  void* take(size_t bytes) { void* p = base + used; used += bytes; return p; }
};
struct Pool {
  char* base; size_t off;
  template <typename T> T* get(size_t n) {
    off = (off + 255) / 256 * 256; T* p = reinterpret_cast<T*>(base + off); off += n * sizeof(T); return p;
  }
};
struct View {
  float* p; int n;
  float* ptr() const { return p; }
  View sub(int o) const { return View{p + o, n - o}; }
  View from(int o) const { View r = *this; r.p += o; return r; }
};
template <typename T> struct Typed { T* p; Typed(T* q) : p(q) {} T* behind(int o) { return p + o; } };
struct Ring {
  float* b; size_t at, cap;
  float* take(size_t n) { if (at + n > cap) at = 0; float* p = b + at; at += n; return p; }
};
struct Scope { Arena& a; size_t o; Scope(Arena& x) : a(x), o(x.off_) {} ~Scope() { a.off_ = o; } };
struct Base {
  float* cur;
  virtual float* next(int n) { float* r = cur; cur += n; return r; }
  void back() { cur -= 1; }
};
struct Derived : Base { float* take(int n) { float* r = cur; cur += n; return r; } };
float* carve(float*& p, size_t n) { float* r = p; p += n; return r; }
float* drawn(float** p, size_t n) { float* r = *p; *p = r + n; return r; }
void skips(float*& p, int n, int m) { if (m) return; p += n; }
float* by_value(Arena a, int n) { return a.take(n); }
float* again(float*& p, int n) { if (n > 5) return again(p, n - 1); float* r = p; p += n; return r; }
void resets(Arena& a) { a.reset(); }
void nobody(Arena& a);
"""


def apart(body: str, arguments: str = "a, b") -> object:
    """What is told of the second pointer: its distance; "" for two buffers."""
    launch = f"k<<<(n + 255) / 256, 256>>>({arguments}, n, m);"
    parameters = "float* w, float* v, Arena& x, View u, Derived& d, Base& e, int n, int m"
    text = f"{HOST} void f({parameters}) {{ {body} {launch} }}"
    shared = find_launches(Path("/x/a.cu"), text)[-1].leads.shared
    return (shared[1].offset, shared[1].unit) if 1 in shared else ""


FLOATS = ("#2", 4)


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("float* a = x.take(n); float* b = x.take(m);", FLOATS),
        ("float* a = x.take(m); float* b = x.take(n);", ("#3", 4)),
        ("float* a = x.take(n - 1); float* b = x.take(n);", (("+", -1, "#2"), 4)),
        ("float* a = x.checked(n); float* b = x.checked(n);", FLOATS),
        ("Arena y(w); y.take(m); y.reset(); float* a = y.take(n); float* b = y.take(n);", FLOATS),
        ("Arena y(w); float* a = y.take(n); y.reset(); float* b = y.take(n);", (0, 4)),
        ("Arena y(w); float* a = y.take(n); float* b = y.reset().take(n);", (0, 4)),
        ("Arena y(w), z(w); float* a = y.take(n); float* b = z.take(n);", (0, 4)),
        ("Arena y(w), z(v); float* a = y.take(n); float* b = z.take(n);", ""),
        ("Arena y(w); Arena z = y; float* a = y.take(n); float* b = z.take(n);", (0, 4)),
        ("Arena y(w); float* a = by_value(y, n); float* b = by_value(y, n);", (0, 4)),
        ("Arena y(w); float* a = y.take(n); resets(y); float* b = y.take(n);", (0, 4)),
        ("Arena y(w); float* a = y.take(n); y.used() = 0; float* b = y.take(n);", (0, 4)),
        ("auto y = std::make_unique<Arena>(w); float* a = y->take(n); float* b = y->take(n);", FLOATS),
        ("if (m) x.take(m); float* a = x.take(n); float* b = x.take(n);", FLOATS),
        ("for (int i = 0; i < m; i++) x.take(1); float* a = x.take(n); float* b = x.take(n);", FLOATS),
        ("int s = n; n = 2 * n; float* a = x.take(s); float* b = x.take(s);", (("*", "#2", 2), 1)),
        ("Bytes y{(char*)w, 0}; auto a = (float*)y.take(n * 4); auto b = (float*)y.take(n);", FLOATS),
        ("Bytes y{(char*)w, 0}; auto a = (float*)y.take(n); auto b = (float*)y.take(n);", ("#2", 1)),
        ("float* a = w; float* b = (float*)((char*)w + n * sizeof(float));", FLOATS),
        ("float* a = w; float* b = (float*)((char*)w + n);", ("#2", 1)),
        ("float* p = w; float* a = carve(p, n); float* b = carve(p, n);", FLOATS),
        ("float* p = w; float* a = drawn(&p, n); float* b = drawn(&p, n);", FLOATS),
        ("float* p = w; float* a = drawn(&p, n); p = w; float* b = drawn(&p, n);", (0, 4)),
        ("size_t o = 0; auto t = [&](int s) { float* r = w + o; o += s; return r; };"
         "float* a = t(n); float* b = t(n);", FLOATS),
        ("size_t o = 0; auto t = [=](int s) { return w + o + s; }; o = n; float* a = t(0); float* b = t(n);",
         ("#2", None)),
        ("size_t o = 0; auto t = [&o, w](int s) { float* r = w + o; o += s; return r; };"
         "float* a = t(n); o = 0; float* b = t(n);", (0, 4)),
        ("float* p = w; float** c = &p; float* a = p; p += n; *c = w; float* b = p;", (0, 4)),
        ("Pool y{(char*)w, 0}; float* a = y.get<float>(n); float* b = y.get<float>(n);",
         (("*", ("/", ("+", 255, ("*", 4, "#2")), 256), 64), 4)),
        ("Pool y{(char*)w, 0}; float* a = y.get<float>(900); float* b = y.get<float>(n);", (960, 4)),
        ("Typed<double> y((double*)w); Typed<float> z(w); float* a = (float*)y.behind(n);"
         "float* b = z.behind(2 * n);", (0, 4)),
        ("float* a = u.ptr(); float* b = u.sub(500).ptr();", (500, 4)),
        ("float* a = d.take(n); d.back(); float* b = d.take(n);", (("+", -1, "#2"), 4)),
    ],
)  # fmt: skip
def test_how_far_apart_pieces_are(body: str, offset: object) -> None:
    assert apart(body) == offset


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        ("u.ptr(), u.sub(500).ptr()", (500, 4)),
        ("u.p, u.sub(500).p", (500, 4)),
        ("u.sub(n).ptr(), u.sub(1).sub(n).ptr()", (1, 4)),
        ("u.ptr(), u.from(n).ptr()", FLOATS),
        ("x.take(n), x.take(n)", (None, None)),  # nobody knows which is called first
    ],
)
def test_pieces_that_a_launch_takes_itself(arguments: str, offset: object) -> None:
    assert apart("", arguments) == offset


@pytest.mark.parametrize(
    "between",
    [
        "if (m) y.reset();",
        "for (int i = 0; i < m; i++) { y.reset(); }",
        "for (int i = 0; i < m; i++) { if (i == 3) { y.reset(); break; } }",
        "for (int i = 0; i < m; i++, y.reset()) { }",
        "switch (m) { case 1: y.reset(); }",
        "try { g(m); } catch (...) { y.reset(); }",
        "bool ok = m && (y << 0);",
        "y << 0;",
        "y.elsewhere();",
        "nobody(y);",
        "std::thread t([&] { y.reset(); }); t.join();",
        "std::for_each(v, v + 1, [&](float f) { y.reset(); });",
        "memcpy(&y, v, sizeof(y));",
        "*(size_t*)((char*)&y + 8) = 0;",
    ],
)
def test_what_may_move_a_cursor_leaves_the_distance_open(between: str) -> None:
    body = f"Arena y(w); float* a = y.take(n); {between} float* b = y.take(n);"
    assert apart(body) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        "float* p = w; float* a = p; skips(p, n, m); float* b = p;",
        "float* p = w; float* a = again(p, n); float* b = again(p, n);",
        "Ring y{w, 0, (size_t)m}; float* a = y.take(n); float* b = y.take(n);",
        "Arena y(w); float* a; { Scope s(y); a = y.take(n); } float* b = y.take(n);",
        "Arena y(w); float* a; { Guard s(y); a = y.take(n); } float* b = y.take(n);",
        "float* a = e.next(n); float* b = e.next(n);",
        "Arena y(w); float* a = y.take(n); float* b = m ? y.take(n) : a;",
        "Arena y(w); float* t[2]; t[0] = y.take(n); t[1] = y.take(n); t[m] = w; float *a = t[0], *b = t[1];",
        "Arena y(w); float *a, *b; a = y.take(n), y << 0, b = y.take(n);",
        "unsigned char s = n; Arena y(w); float* a = y.take(s); float* b = y.take(n);",
    ],
)
def test_what_is_not_followed_is_one_buffer_however_far(body: str) -> None:
    assert apart(body) == (None, None)


KERNEL = """
__global__ void k(const float* a, float* b, int n, int m) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) b[i] = a[n - 1 - i] + a[i];
}
"""


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ("y.take(n)", Verdict.RACE_FREE),
        ("y.take(n - 1)", Verdict.RACY),
        ("y.take(m)", Verdict.RACY),
    ],
)
def test_what_a_kernel_on_pieces_is_called(arguments: str, verdict: Verdict) -> None:
    body = f"Arena y(w); float* a = {arguments}; float* b = y.take(n);"
    launch = "k<<<(n + 255) / 256, 256>>>(a, b, n, m);"
    text = f"{KERNEL}{HOST} void f(float* w, int n, int m) {{ {body} {launch} }}"
    (kernel,) = check_text(Path("/x/a.cu"), text).kernels
    assert kernel.verdict is verdict


MIXED = "".join(f"s ^= s << {k % 7 + 1}; s ^= s >> 5; " for k in range(20))
"""Each step has what is unknown twice in it."""


@pytest.mark.parametrize(
    ("first", "second", "offset"),
    [("m", "m", FLOATS), ("m", "n", (None, None)), ("m", "m + 1", (None, None))],
)
def test_numbers_that_are_mixed_keep_short_names_which_say_what_they_are(
    first: str, second: str, offset: object
) -> None:
    body = f"unsigned s = {first}, t; {MIXED} t = s; s = {second}; {MIXED}"
    assert (
        apart(f"{body} Arena y(w); Arena z(w); float* a = y.take(0) + t; float* b = z.take(n) + n + s;")
        == offset
    )
