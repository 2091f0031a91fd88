"""Buffers that objects of the host hand out: which are one, and how far places in them lie apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

HOST = """
struct View {
  virtual const void* raw() const = 0;
  virtual void* mut_raw() = 0;
  template <typename T> const T* ptr() const { check<T>(); return reinterpret_cast<const T*>(raw()); }
  template <typename T> T* mut_ptr() { check<T>(); return reinterpret_cast<T*>(mut_raw()); }
  template <typename T> void check() const { LOG_IF(FATAL, type() != kind<T>::value) << "types " << type(); }
  T* odd() { return reinterpret_cast<T*>(next_raw()); }
  void* next_raw();
};
template <typename T>
void f(Context* ctx, int n, int rows) {
  View* in = ctx->view("in", 0);
  View* out = ctx->view("out", 0);
  View* work = ctx->view("work", 0);
  BODY
}
"""


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("const T* a = in->ptr<T>(); T* b = out->mut_ptr<T>(); k<<<1, 32>>>(a, b);", "apart"),
        ('k<<<1, 32>>>(ctx->view("in", 0)->ptr<T>(), ctx->view("out", 0)->mut_ptr<T>());', "apart"),
        ("const T* a = in->ptr<T>(); T* b = in->mut_ptr<T>(); k<<<1, 32>>>(a, b);", 0),
        ("T* a = work->mut_ptr<T>(); T* b = work->mut_ptr<T>() + n; k<<<1, 32>>>(a, b, n);", "#2"),
    ],
)
def test_what_an_object_hands_out_is_the_objects(body: str, offset: object) -> None:
    (site,) = find_launches(Path("a.cu"), HOST.replace("BODY", body))
    shared = site.leads.shared.get(1)
    assert (shared.offset if shared is not None else "apart") == offset


TAKEN = """
template <typename T>
__global__ void k(T* a, T* b, int n) {
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) {
    a[blockIdx.y * n + i] = 1;
    b[blockIdx.y * n + i] = 2;
  }
}
"""
CALL = "dim3 grid(8, rows); k<T><<<grid, 64>>>(a, b, n); template void f<float>(Context*, int, int);"


@pytest.mark.parametrize(
    ("size", "verdict"),
    [
        ("size_t size = rows * n * sizeof(T);", Verdict.RACE_FREE),
        ("size_t size = 2 * rows * n * sizeof(T);", Verdict.RACE_FREE),
        ("size_t size = (rows - 1) * n * sizeof(T);", Verdict.RACY),
        ("size_t size = rows * n;", None),  # bytes
        ("size_t size = rows * n * sizeof(T); rows++;", None),
    ],
)
def test_bytes_behind_what_an_object_hands_out_are_counted(size: str, verdict: Verdict | None) -> None:
    made = f"{size} T* a = work->mut_ptr<T>(); T* b = reinterpret_cast<T*>(work->mut_ptr<char>() + size);"
    call, instance = CALL.split(" template ")
    text = f"{TAKEN} class Context; {HOST.replace('BODY', f'{made} {call}')} template {instance}"
    (kernel,) = check_text(Path("a.cu"), text).kernels
    assert kernel.verdict is verdict if verdict else kernel.verdict is not Verdict.RACE_FREE, kernel.reasons


TAIL = """
__global__ void k(int n, int rest, float* d, float* tail) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4 < n - rest) for (int j = 0; j < 4; j++) d[i * 4 + j] = 1;
  if (i < rest) tail[i] = 2;
}
void f(float* d, int n, int pack) {
  HOST
  k<<<n / 64 + 1, 64>>>(n, rest, d, d + whole);
}
"""


@pytest.mark.parametrize(
    ("host", "offset"),
    [
        ("const int whole = n / pack * pack; const int rest = n - whole;", ("-", "#0", "#1")),
        ("int packs = n / pack; int whole = packs * pack; int rest = n - whole;", ("-", "#0", "#1")),
        ("const int whole = n / pack * pack; const int rest = whole - n;", ("-", "#1", ("*", "#0", -1))),
        ("const int whole = n / pack * pack; const int rest = n - 2 * whole;", None),
        ("const int whole = n / pack * pack; const int rest = pack;", None),
    ],
)
def test_where_a_tail_begins_follows_from_how_long_it_is(host: str, offset: object) -> None:
    (site,) = find_launches(Path("a.cu"), TAIL.replace("HOST", host))
    assert site.leads.shared[3].offset == offset


COPIED = """
template <typename T> struct Grid { T* ptr; int width; };
template <typename T> struct Owner { T* get(); };
__global__ void k(Grid<float> out, Grid<float> in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out.ptr[i] = in.ptr[i] + in.ptr[i + 1];
}
void launch(Grid<float> out, Grid<float> in, int blocks) { k<<<blocks, 64>>>(out, in); }
void f(Grid<float> out, Grid<float> in, int blocks) {
  Grid<float> part = out;
  Owner<float> owner;
  HOST
}
"""
GIVEN = "owner = allocate<float>(blocks); part.ptr = owner.get();"


@pytest.mark.parametrize(
    ("host", "apart"),
    [
        (
            f"if (blocks > 1) {{ {GIVEN} }} launch(part, in, blocks); if (blocks > 1) launch(out, part, 1);",
            True,
        ),
        (f"{GIVEN} launch(part, in, blocks); launch(out, part, 1);", True),
        ("float* own = memAlloc(blocks); part.ptr = own; launch(out, part, 1);", True),
        ("part.width = 4; launch(part, in, blocks); launch(out, part, 1);", False),
        (f"if (blocks > 1) {{ {GIVEN} }} launch(part, in, blocks); launch(out, part, 1);", False),
        (
            f"if (blocks > 1) {{ {GIVEN} }} launch(part, in, blocks); if (blocks > 0) launch(out, part, 1);",
            False,
        ),
        (f"if (blocks > 1) {{ {GIVEN} }} blocks++; if (blocks > 1) launch(out, part, 1);", False),
        ("float* own = out.ptr + 1; part.ptr = own; launch(out, part, 1);", False),
        ("part.ptr = out.ptr; launch(out, part, 1);", False),
        (f"{GIVEN} part.ptr = out.ptr; launch(out, part, 1);", False),
    ],
)
def test_a_copied_record_that_is_given_another_pointer_has_its_own_buffer(host: str, apart: bool) -> None:
    (kernel,) = check_text(Path("a.cu"), COPIED.replace("HOST", host)).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is apart, kernel.reasons


FILLED = """
__global__ void k(int* out) {{
  __shared__ int s[2];
  s[threadIdx.x % 2] = threadIdx.x;
  out[blockIdx.x] = s[0];
}}
{declared}
void f(int* out, int n) {{ dim3 block; dim3 grid; {call} k<<<grid, block>>>(out); }}
"""


@pytest.mark.parametrize(
    ("declared", "call", "free"),
    [
        ("", "", True),  # one thread
        ("", "choose(n, block, grid);", False),  # by whom nobody knows, and so not what
        ("void choose(int n, dim3& block, dim3& grid);", "choose(n, block, grid);", False),
        ("void show(int n, dim3 block, dim3 grid);", "show(n, block, grid);", True),
        ("", "block.x = 1; show(n, block, grid); grid.x = 1;", False),
        ("", "log(block.x, grid.x);", True),
    ],
)
def test_an_empty_block_that_a_stranger_is_handed_is_not_one_thread(
    declared: str, call: str, free: bool
) -> None:
    (kernel,) = check_text(Path("a.cu"), FILLED.format(declared=declared, call=call)).kernels
    assert (kernel.verdict is Verdict.RACE_FREE) is free, kernel.launches


KEPT = """
class Sheet {
 public:
  Sheet(float* first) : data_(first) {}
  float* data() { return data_; }
  const float* raw() const { return data_; }
  void use(float* p) { data_ = p; }
 private:
  float* data_;
};
"""
CUT = (
    KEPT.replace("data_ = p;", "data_ = p; rest_ = p + 8;")
    .replace("float* data() {", "float* rest() { return rest_; } float* data() {")
    .replace("float* data_;", "float* data_; float* rest_;")
)


STATIC = KEPT.replace("float* data_;", "static float* data_;")
APART, ONE = False, True


@pytest.mark.parametrize(
    ("kept", "function", "one"),
    [
        (KEPT, "Sheet& a, Sheet& b) { k<<<1, 32>>>(a.raw(), b.data()); }", APART),
        (KEPT, "Sheet* a, Sheet& b) { k<<<1, 32>>>(a->raw(), b.data()); }", APART),
        (
            KEPT,
            "float* d, float* e) { Sheet a, b; a.use(d); b.use(e); k<<<1, 32>>>(a.raw(), b.data()); }",
            APART,
        ),
        (KEPT, "float* d) { Sheet a, b; a.use(d); b.use(d); k<<<1, 32>>>(a.raw(), b.data()); }", ONE),
        (KEPT, "Sheet& a) { k<<<1, 32>>>(a.raw(), a.data()); }", ONE),
        (STATIC, "Sheet& a, Sheet& b) { k<<<1, 32>>>(a.raw(), b.data()); }", ONE),
        (CUT, "Sheet& a) { k<<<1, 32>>>(a.raw(), a.rest()); }", ONE),
        (CUT, "Sheet& a, Sheet& b) { k<<<1, 32>>>(a.raw(), a.rest()); }", ONE),
    ],
)
def test_what_a_setter_stored_is_each_objects_own(kept: str, function: str, one: bool) -> None:
    (site,) = find_launches(Path("a.cu"), f"{kept} void f({function}")
    assert (1 in site.leads.shared) is one
