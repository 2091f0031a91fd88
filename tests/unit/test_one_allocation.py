"""Buffers that the host cuts out of one allocation, in classes, records, lists and functions elsewhere.

Each program stands three times: cut too short, where the distance (or that nobody knows it) must be told; cut
long enough; and made of two allocations, which are never one buffer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

LAUNCH = "k<<<8, 128>>>"
CLASSES = """
class Arena {
 public:
  explicit Arena(size_t bytes) { cudaMalloc(&base_, bytes); }
  float* take(int n) { float* p = base_ + offset_; offset_ += n; return p; }
  template <typename T> T* alloc(int n) {
    T* p = reinterpret_cast<T*>((char*)base_ + offset_); offset_ += n * sizeof(T); return p;
  }
  float* base_ = nullptr;
  int offset_ = 0;
};
class Buffer {
 public:
  explicit Buffer(int n) { cudaMalloc(&data_, n * sizeof(float)); }
  float* data() { return data_; }
  float* tail(int n) const { return data_ + n; }
  float* operator+(int n) const { return data_ + n; }
  float* operator[](int n) { return data_ + n; }
 private:
  float* data_;
};
struct Pair {
  float *a, *b;
  Pair(float* base, int n) : a(base), b(base + n) {}
  Pair(float* x, float* y) : a(x), b(y) {}
};
struct Ws {
  float *a, *b;
  void carve(float* base, int n) { a = base; b = base + n; }
  void set(float* x, float* y) { a = x; b = y; }
};
struct Acts { float *a, *b; };
struct Model { Acts acts; float* mem; };
"""


@frozen
class Program:
    """``@`` stands for what differs. ``known``: whether the distance is told."""

    name: str
    text: str
    cut: str
    longer: str
    apart: str | None = None
    known: bool = True


def _arguments(pair: str) -> str:
    return f"void f(float* d, float* e, Arena& ar, Buffer& b, Buffer& c) {{ {LAUNCH}({pair}, 1000); }}"


def _body(body: str, pair: str = "p, q") -> str:
    return f"void f(float* d, float* e, Arena& ar, Arena* ws) {{ {body} {LAUNCH}({pair}, 1000); }}"


_METHOD = f"void step() {{ {LAUNCH}(a, b, 1000); }}"
_RUN = f"void run(Acts* w) {{ {LAUNCH}(w->a, w->b, 1000); }}"
_POOL = "cudaMalloc(&base, 1 << 20);"
PROGRAMS = [
    Program("getter",
            _arguments("@"), "b.data(), b.data() + 500", "b.data(), b.data() + 1000", "b.data(), c.data()"),
    Program("tail",
            _arguments("@"), "b.data(), b.tail(500)", "b.data(), b.tail(1000)", "b.data(), c.tail(500)"),
    Program("plus", _arguments("@"), "b.data(), b + 500", "b.data(), b + 1000", "b.data(), c + 500"),
    Program("index", _arguments("@"), "b[0], b[500]", "b[0], b[1000]", "b[0], c[500]"),
    Program("held", _body("Buffer b(9), c(9); float* p = b.data(); float* q = @;"),
            "b.tail(500)", "b.tail(1000)", "c.data()"),
    Program("take", _body("float* p = ar.take(@); float* q = ar.take(1000);"), "500", "1000"),
    Program("alloc", _body("float* p = ws->alloc<float>(@); float* q = ws->alloc<float>(1000);"),
            "500", "1000"),
    Program("constructor", _body("Pair w(@);", "w.a, w.b"), "d, 500", "d, 1000", "d, e"),
    Program("two objects", _body("Pair x(d, 9), y(@, 9);", "x.a, y.a"), "d + 500", "d + 1000", "e"),
    Program("method", _body("Ws w; w.@;", "w.a, w.b"), "carve(d, 500)", "carve(d, 1000)", "set(d, e)"),
    Program("members", f"struct S {{ float *a, *b; void init() {{ float* base; @ }} {_METHOD} }};",
            f"{_POOL} a = base; b = base + 500;", f"{_POOL} a = base; b = base + 1000;",
            "cudaMalloc(&a, 4000); cudaMalloc(&b, 4000);"),
    Program("begun and stored",
            f"struct S {{ float *a, *b; S(float* d, float* e) : a(d) {{ b = @; }} {_METHOD} }};",
            "a + 500", "a + 1000", "e"),
    Program("another function", f"void fill(Acts* w) {{ float* base; @ }} {_RUN}",
            f"{_POOL} w->a = base; w->b = base + 500;", f"{_POOL} w->a = base; w->b = base + 1000;",
            "cudaMalloc(&w->a, 4000); cudaMalloc(&w->b, 4000);"),
    Program("one name, twice allocated",
            f"void fill(Acts* w) {{ float* t; cudaMalloc(&t, 4000); w->a = t; @ }} {_RUN}",
            "w->b = t + 500;", "w->b = t + 1000;", "cudaMalloc(&t, 4000); w->b = t;"),
    Program("nested", "void build(Model* m) { cudaMalloc(&m->mem, 1 << 20); m->acts.a = m->mem; @ }"
            f"void run(Model* m) {{ {LAUNCH}(m->acts.a, m->acts.b, 1000); }}",
            "m->acts.b = m->mem + 500;", "m->acts.b = m->mem + 1000;", "cudaMalloc(&m->acts.b, 4000);"),
    Program("a cursor", "void build(Model* m) { float* it; cudaMalloc(&it, 1 << 20); m->acts.a = it; @ }"
            f"void run(Model* m) {{ Acts acts = m->acts; {LAUNCH}(acts.a, acts.b, 1000); }}",
            "it += 500; m->acts.b = it;", "it += 1000; m->acts.b = it;", "m->acts.b = fresh();", known=False),
    Program("through a pointer",
            _body("Ws* w = new Ws; w->a = d; w->b = @;", "w->a, w->b"), "d + 500", "d + 1000", "e"),
    Program("of the file",
            f"float *pool, *a_, *b_; void init() {{ @ }} void run() {{ {LAUNCH}(a_, b_, 1000); }}",
            "cudaMalloc(&pool, 9999); a_ = pool; b_ = pool + 500;",
            "cudaMalloc(&pool, 9999); a_ = pool; b_ = pool + 1000;",
            "cudaMalloc(&a_, 9); cudaMalloc(&b_, 9);"),
    Program("static",
            "float* pool() { static float* p; return p; } float* other() { static float* p; return p; }"
            + _arguments("@"), "pool(), pool() + 500", "pool(), pool() + 1000", "pool(), other()"),
    Program("array", _body("float* t[2] = {d, @};", "t[0], t[1]"), "d + 500", "d + 1000", "e"),
    Program("vector", _body("std::vector<float*> t = {d, @};", "t[0], t.at(1)"), "d + 500", "d + 1000", "e"),
    Program("pushed", _body("std::vector<float*> t; t.push_back(d); t.push_back(@);", "t[0], t[1]"),
            "d + 500", "d + 1000", "e"),
    Program("filled by a loop", _body("float* t[4]; for (int i = 0; i < 4; i++) @;", "t[0], t[1]"),
            "t[i] = d + i * 500", "t[i] = d + i * 1000", "cudaMalloc(&t[i], 4000)"),
    Program("bound",
            "auto cut(float* d, int n) { return std::make_pair(d, d + n); }" + _body("auto [p, q] = @;"),
            "cut(d, 500)", "cut(d, 1000)", "std::make_pair(d, e)"),
    Program("tied", "auto cut(float* d, int n) { return std::make_tuple(d, d + n); }"
            + _body("float *p, *q; std::tie(p, q) = @;"),
            "cut(d, 500)", "cut(d, 1000)", "std::make_tuple(d, e)"),
    Program("lambda", _body("auto part = [&](int i) { return d + i; }; float *p = @, *q = part(500 + 4);"),
            "part(4)", "d - 496", "e"),
    Program("lambda that stores",
            _body("float *p, *q, *it = d; auto to = [&](float*& x, int n) { x = it; it += n; };"
            "to(p, @); to(q, 9);"), "500", "1000"),
    Program("macro",
            "#define PART(i) (d + (i) * 500)\n" + _body("float *p = d, *q = @;"), "PART(1)", "PART(2)", "e"),
    Program("Thrust",
            _arguments("@"), "thrust::raw_pointer_cast(&v[0]), thrust::raw_pointer_cast(v.data()) + 500",
            "thrust::raw_pointer_cast(&v[0]), thrust::raw_pointer_cast(v.data()) + 1000",
            "thrust::raw_pointer_cast(&v[0]), thrust::raw_pointer_cast(&w[0])"),
    Program("as callers say, and further", "void run(float* p, float* q) { for (int i = 0; i < 9; i++)"
            f"{LAUNCH}(p + i, q, 9); }}"
            "void f(float* d, float* e) { run(@); run(d, e); }",
            "d, d + 500", "d, d + 1000", "e, d", known=False),
    Program("as callers say", f"void run(float* p, float* q) {{ {LAUNCH}(p, q, 1000); }}"
            "void f(float* d, float* e) { run(@); run(d, e); }", "d, d + 500", "d, d + 1000", "e, d"),
]  # fmt: skip


def told(program: Program, what: str) -> dict[int, SharedBuffer]:
    (site,) = find_launches(Path("a.cu"), CLASSES + program.text.replace("@", what))
    return dict(site.leads.shared)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_cuts_of_one_allocation_are_told(program: Program) -> None:
    distances = [told(program, what)[1].offset for what in (program.cut, program.longer)]
    assert distances == ([500, 1000] if program.known else [None, None])


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.apart], ids=lambda program: program.name)
def test_two_allocations_are_not_one_buffer(program: Program) -> None:
    assert not told(program, program.apart or "")


@pytest.mark.parametrize(
    "text",
    [
        f"struct S {{ float *a, *b; void init() {{ cudaMalloc(&a, 9); cudaMalloc(&b, 9); }} void step() {{"
        f"{LAUNCH}(a, b, 9); std::swap(a, b); }} }};",
        "float* fresh(int n) { float* p; cudaMalloc(&p, n); return p; } struct S { float *a, *b;"
        f"S() {{ a = fresh(9); b = fresh(9); }} void step() {{ {LAUNCH}(a, b, 9);"
        "float* t = a; a = b; b = t; } };",
        "float *a, *b; void init() { cudaMalloc(&a, 9); cudaMalloc(&b, 9); }"
        f"void run() {{ {LAUNCH}(a, b, 9);"
        "float* t = a; a = b; b = t; }",
        "struct S { float* to[3]; void init() { for (int i = 0; i < 3; i++) { float* t; cudaMalloc(&t, 9);"
        "to[i] = t; } } float* at(int i) { return to[i]; } };"
        f"void f(S& s) {{ {LAUNCH}(s.at(0), s.at(1), 9); }}",
        "struct S { std::vector<float*> all; float* get(int n) {"
        "float* p; cudaMalloc(&p, n); all.push_back(p);"
        f"return p; }} }}; void f(S& s) {{ float* p = s.get(9); float* q = s.get(9); {LAUNCH}(p, q, 9); }}",
        "struct A { float* data; }; struct B { float* data; };"
        "void a(A* a, float* d, int n) { a->data = d + n; }"
        "void b(B* b) { cudaMalloc(&b->data, 9); }"
        f"void f(B* x, B* y) {{ {LAUNCH}(x->data, y->data, 9); }}",
        "void init(Acts* s) { float** all[] = {&s->a, &s->b};"
        "for (int i = 0; i < 2; i++) cudaMalloc(all[i], 9); }"
        f"void run(Acts* s) {{ {LAUNCH}(s->a, s->b, 9); }}",
        f"void f(Blob& x) {{ {LAUNCH}(x.weights(), x.bias(), 9); }}",
        f'void f(Blobs& x) {{ {LAUNCH}(x.at("w").data(), x.at("b").data(), 9); }}',
        f'void f(Blobs& x) {{ {LAUNCH}(x["w"], x["b"], 9); }}',
        f'void f(Blobs& x) {{ {LAUNCH}(x.get<float>("w"), x.get<float>("b"), 9); }}',
        f"void f(Pool& pool) {{ {LAUNCH}(pool.take(), pool.take(), 9); }}",
        "void f(float* d, float* e, int i) { float* in = i ? d : e; float* to = i ? e : d;"
        f"{LAUNCH}(in, to, 9); }}",
        f"void run(float* p, float* q) {{ p = fresh(); {LAUNCH}(p, q, 9); }}"
        "void f(float* d) { run(d, d + 5); }",
    ],
)  # fmt: skip
def test_allocations_that_take_turns_or_are_kept_alike_stay_apart(text: str) -> None:
    (site,) = find_launches(Path("a.cu"), CLASSES + text)
    assert not site.leads.shared


@pytest.mark.parametrize("moved", ["", "o->b = o->b + 1;", "w->b += n;", "std::swap(w->a, w->b);"])
def test_a_distance_that_another_function_changes_is_not_told(moved: str) -> None:
    text = "void fill(Acts* w, float* d, int n) { w->a = d; w->b = d + 500; }"
    text += f"void more(Acts* w, int n) {{ {moved} }}"
    (site,) = find_launches(Path("a.cu"), f"{CLASSES}{text}{_RUN}")
    assert site.leads.shared[1].offset == (None if moved else 500)


def test_pieces_that_a_table_lists_are_taken_to_be_long_enough() -> None:
    text = """
    float* point(float** to[], const size_t* sizes) {
        float *all, *it; cudaMalloc(&all, sizes[0] + sizes[1]); it = all;
        for (int i = 0; i < 2; i++) { *(to[i]) = it; it += sizes[i]; }
        return all;
    }
    float* fill(Acts* acts, const size_t* n) { float** to[] = {&acts->a, &acts->b}; return point(to, n); }
    """
    (site,) = find_launches(Path("a.cu"), f"{CLASSES}{text} void run(Acts t) {{ {LAUNCH}(t.a, t.b, 9); }}")
    assert site.leads.shared == {1: SharedBuffer(0, None, pieces=True)}


KERNEL = """
__global__ void k(float* a, float* b, int n) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < n) { a[g] = 1.f; b[g] = 2.f; }
}
"""
_AT = "struct B { float* p; float* at(int n) { return p + n; } };"
_ALLOCATOR = (
    "struct A { float* base; int used; float* take(int n) { float* p = base + used; used += n; return p; } };"
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (_AT + "void f(B& b) { @(b.at(0), b.at(500), 1000); }",
         Verdict.RACY),
        (_AT + "void f(B& b) { @(b.at(0), b.at(1000), 1000); }",
         Verdict.RACE_FREE),
        (_ALLOCATOR + "void f(A& a) { auto p = a.take(500); auto q = a.take(1000); @(p, q, 1000); }",
         Verdict.RACY),
        ("void f(Matrix& a, Matrix& b) { @(a.data(), b.data(), 1000); }", Verdict.RACE_FREE),
    ],
)  # fmt: skip
def test_what_the_kernel_is_called(tmp_path: Path, text: str, verdict: Verdict) -> None:
    text = f"struct Matrix {{ float* data(); }};{KERNEL}{text.replace('@', LAUNCH)}"
    (kernel,) = check_text(tmp_path / "k.cu", text).kernels
    assert kernel.verdict is verdict


TABLE = """struct A { float *a, *b, *c; };
void point(A *acts, size_t *sizes, float *memory) {
  float **ptrs[] = {&acts->a, &acts->b, &acts->c};
  float *it = memory;
  for (int i = 0; i < 3; i++) { *(ptrs[i]) = it; it += sizes[i]; }
}
void f(A acts, int n) { BODY }
"""


@pytest.mark.parametrize(
    ("body", "offset", "pieces"),
    [
        ("k<<<8, 256>>>(acts.a, acts.b, n);", None, True),
        ("float *r = n ? acts.b : acts.c; k<<<8, 256>>>(acts.a, r, n);", None, True),
        ("float *r = acts.a; if (n) r = acts.b; k<<<8, 256>>>(acts.c, r, n);", None, True),
        ("k<<<8, 256>>>(acts.a, acts.a + 1, n);", 1, False),
        ("float *q = acts.a + n; k<<<8, 256>>>(acts.a, q, n);", "#2", False),
        ("float *r = n ? acts.b : acts.a; k<<<8, 256>>>(acts.a, r, n);", None, False),
        ("float *r = n ? acts.b : acts.a + 1; k<<<8, 256>>>(acts.a, r, n);", None, False),
    ],
)
def test_places_of_a_table_lie_apart_but_each_is_one(body: str, offset: object, pieces: bool) -> None:
    site = find_launches(Path("/x/a.cu"), TABLE.replace("BODY", body))[-1]
    assert (site.leads.shared[1].offset, site.leads.shared[1].pieces) == (offset, pieces)
