"""Each construct of C++ that kernels use, down to the byte it touches."""

# ruff: noqa: E501  (kernels are written on one line)

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import accesses, constructs, lowered, printed

from cuda_lsp.ir.program import Block, Copy, If, Load, Loop, Store
from cuda_lsp.ir.types import Opaque
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Space, Verdict
from cuda_lsp.static.analyze import check_text


def test_two_dimensional_shared_array_is_indexed_in_bytes():
    text = "__global__ void k() { __shared__ float t[4][17]; t[threadIdx.y][threadIdx.x] = 1.f; }"
    assert accesses(text, "t") == ["store float32 &t + (threadIdx.y * 68 + threadIdx.x * 4) B <- 1.0"]
    (array,) = lowered(text).arrays
    assert array.shape == (4, 17) and array.space is Space.SHARED and array.size == 4 * 17 * 4


def test_static_shared_arrays_are_laid_out_in_order_of_declaration():
    kernel = lowered(
        "__global__ void k() { __shared__ char c[3]; __shared__ double d[2]; c[0] = 1; d[0] = 2; }"
    )
    assert [(a.name, a.offset) for a in kernel.arrays] == [("c", 0), ("d", 8)]


def test_dynamic_shared_memory_carved_by_a_pointer():
    lines = printed(
        "extern __shared__ char mem[]; __global__ void k(int n) { float* a = (float*)mem; int* b = (int*)(a + n);"
        " a[threadIdx.x] = 0; b[threadIdx.x] = 1; }"
    )
    assert "shared int8 mem[] @0 dynamic" in lines
    assert "b = &mem + n * 4 B" in lines and "store int32 b + threadIdx.x * 4 B <- 1" in lines


def test_compound_assignment_reads_then_writes_at_one_site():
    kernel = lowered("__global__ void k(int* a) { a[threadIdx.x + 1] += 2; }")
    load, store = kernel.body
    assert isinstance(load, Load) and isinstance(store, Store)
    assert load.site.range == store.site.range and load.site.text == "a[threadIdx.x + 1]"


def test_an_increment_as_a_place_happens_once():
    text = "__global__ void k() { __shared__ int a[8]; int i = 0; ++a[i++] = 4; a[i] = 0; }"
    assert printed(text)[2:] == [
        "i = 0",
        "t3 = i",
        "i = t3 + 1",
        "t4 = load int32 &a + t3 * 4 B",
        "store int32 &a + t3 * 4 B <- t4 + 1",
        "store int32 &a + t3 * 4 B <- 4",
        "store int32 &a + i * 4 B <- 0",
    ]


def test_short_circuit_with_a_read_becomes_a_branch():
    kernel = lowered(
        "__global__ void k(int* a, int n) { int i = threadIdx.x; if (i < n && a[i] > 0) a[i] = 0; }"
    )
    guarded = [s for s in kernel.body if isinstance(s, If) and any(isinstance(t, Load) for t in s.then)]
    assert len(guarded) == 1


def test_pure_condition_stays_one_expression():
    assert "if i < n && i > 2:" in printed(
        "__global__ void k(int* a, int n) { int i = threadIdx.x; if (i < n && i > 2) a[i] = 0; }"
    )


def test_ternary_with_reads_in_its_arms_becomes_a_branch():
    kernel = lowered("__global__ void k(int* a, int n) { int v = n > 0 ? a[0] : a[1]; a[2] = v; }")
    (branch,) = [s for s in kernel.body if isinstance(s, If)]
    assert isinstance(branch.then[0], Load) and isinstance(branch.otherwise[0], Load)


def test_early_return_leaves_the_kernel():
    lines = printed("__global__ void k(int* a, int n) { if (threadIdx.x >= n) return; a[threadIdx.x] = 0; }")
    assert "block L0:" in lines and "leave L0" in lines


def test_break_and_continue_leave_the_loop_and_the_round():
    kernel = lowered(
        "__global__ void k(int* a, int n) { for (int i = 0; i < n; ++i) { if (i == 3) continue; if (i == 5) break; a[i] = 0; } }"
    )
    (loop,) = [s for s in kernel.body if isinstance(s, Loop)]
    lines = printed(
        "__global__ void k(int* a, int n) { for (int i = 0; i < n; ++i) { if (i == 3) continue; if (i == 5) break; a[i] = 0; } }"
    )
    assert f"leave L{loop.continue_label}" in lines and f"leave L{loop.label}" in lines


def test_for_without_condition_or_step():
    lines = printed(
        "__global__ void k(int* a, int n) { for (;;) { if (n > 3) break; a[0] = n; } for (; n > 0;) a[1] = 1; }"
    )
    assert sum("loop" in line for line in lines) == 2
    assert any(line.startswith("loop") and line.endswith("while n > 0:") for line in lines)


def test_do_while_runs_its_body_first():
    (loop,) = [
        s
        for s in lowered("__global__ void k(int* a, int n) { do { a[n] = 0; n--; } while (n > 0); }").body
        if isinstance(s, Loop)
    ]
    assert not loop.tests_first


def test_do_while_zero_is_no_loop():
    kernel = lowered("__global__ void k(int* a) { do { a[0] = 1; } while (0); }")
    assert not any(isinstance(s, Loop) for s in walk(kernel.body))
    assert accesses("__global__ void k(int* a) { do { a[0] = 1; } while (0); }", "a") == [
        "store int32 &a <- 1"
    ]


def test_switch_falls_through_from_one_block_into_the_next():
    kernel = lowered(
        "__global__ void k(int* a, int n) { switch (n) { case 1: a[1] = 1; case 2: a[2] = 2; break; default: a[3] = 3; } }"
    )
    (outer,) = [s for s in kernel.body if isinstance(s, Block)]
    stores = [str(s.pointer) for s in walk((outer,)) if isinstance(s, Store)]
    assert len(stores) == 3 and not constructs(kernel)


def test_forward_goto_leaves_a_block():
    text = "__global__ void k(int* a, int n) { if (n) goto end; a[0] = 1; end: a[1] = 2; }"
    assert not constructs(lowered(text))
    assert any(line.startswith("leave") for line in printed(text))


def test_backward_goto_is_a_loop():
    kernel = lowered(
        "__global__ void k(int* a, int n) { again: a[n] = 1; if (--n > 0) goto again; a[0] = 2; }"
    )
    assert any(isinstance(s, Loop) for s in kernel.body) and not constructs(kernel)


def test_range_for_over_a_local_array():
    text = "__global__ void k(int* a) { int d[3] = {1, 2, 4}; for (int x : d) a[x] = 0; }"
    assert any("< 3:" in line for line in printed(text)) and not constructs(lowered(text))


def test_if_constexpr_keeps_the_chosen_branch():
    text = (
        "template <int N> __global__ void k(int* a) { if constexpr (N > 3) a[0] = 1; else a[1] = 1; }"
        " void go(int* p) { k<8><<<1, 1>>>(p); }"
    )
    assert accesses(text, "a") == ["store int32 &a <- 1"]


def test_template_value_parameter_is_an_extent():
    text = (
        "template <class T, int N> __global__ void k(T* a) { __shared__ T s[N][N + 1]; s[threadIdx.x][0] = a[0]; }"
        " void go(double* p) { k<double, 16><<<1, 1>>>(p); }"
    )
    (shared,) = [a for a in lowered(text).arrays if a.space is Space.SHARED]
    assert shared.shape == (16, 17) and shared.element.size == 8


def test_device_function_is_inlined_and_the_site_knows_its_call():
    kernel = lowered(
        "__device__ void put(int* p, int i) { p[i] = i; } __global__ void k(int* a) { put(a, threadIdx.x); }"
    )
    (store,) = [s for s in walk(kernel.body) if isinstance(s, Store)]
    assert len(store.site.calls) == 1 and store.site.text == "p[i]"


def test_reference_parameters_stay_scalar():
    text = (
        "__device__ void swap(int& x, int& y) { int t = x; x = y; y = t; }"
        " __global__ void k(int* a) { int i = 1, j = 2; swap(i, j); a[i] = j; }"
    )
    assert not any(a.space is Space.LOCAL for a in lowered(text).arrays)
    assert "t = i" in printed(text) and "i = j" in printed(text) and "j = t" in printed(text)


def test_address_of_a_local_passed_down_stays_scalar():
    text = "__device__ void set(int* p) { *p = 3; } __global__ void k(int* a) { int i; set(&i); a[i] = 0; }"
    assert not any(a.space is Space.LOCAL for a in lowered(text).arrays) and "i = 3" in printed(text)


def test_local_whose_address_is_kept_moves_to_memory():
    kernel = lowered(
        "__global__ void k(int* a, int n) { int x = 1, y = 2; int* p = &x; if (n) p = &y; *p = 5; a[x] = y; }"
    )
    assert {a.name for a in kernel.arrays if a.space is Space.LOCAL} == {"x", "y"}


def test_pointers_swapped_in_a_loop_are_variables():
    lines = printed(
        "__global__ void k(int n) { __shared__ int s[64], t[64]; int* p = s; int* q = t;"
        " for (int i = 0; i < n; ++i) { q[threadIdx.x] = p[threadIdx.x]; int* r = p; p = q; q = r; } }"
    )
    assert "p = &s" in lines and "p = q" in lines and "q = r" in lines


def test_struct_fields_of_an_array_are_exact_bytes():
    text = (
        "struct P { char c; double d; int i; }; __global__ void k(P* p) { p[threadIdx.x].i = 1; p[2].d = 2; }"
    )
    assert accesses(text, "p") == [
        "store int32 &p + (threadIdx.x * 24 + 16) B <- 1",
        "store float64 &p + 56 B <- 2.0",
    ]


def test_union_members_share_their_bytes():
    text = "union U { int i; float f; }; __global__ void k(int* a) { __shared__ U u[4]; u[1].f = 1.f; a[0] = u[1].i; }"
    assert accesses(text, "u") == ["store float32 &u + 4 B <- 1.0", "t3 = load int32 &u + 4 B"] or all(
        "&u + 4 B" in line for line in accesses(text, "u")
    )


def test_reinterpret_cast_to_a_vector_is_one_wide_access():
    kernel = lowered(
        "__global__ void k(float* a) { float4 v = reinterpret_cast<float4*>(a)[threadIdx.x]; a[0] = v.x; }"
    )
    load = kernel.body[0]
    assert isinstance(load, Load) and isinstance(load.type, Opaque) and load.type.size == 16


def test_vector_store_is_one_access():
    text = "__global__ void k(float2* a) { a[threadIdx.x] = make_float2(1.f, 2.f); }"
    (store,) = [s for s in lowered(text).body if isinstance(s, Store)]
    assert store.type.size == 8


def test_pointers_in_a_struct_parameter_become_parameters():
    kernel = lowered("struct A { int n; float* p; }; __global__ void k(A s) { s.p[s.n] = 0; }")
    assert [p.name for p in kernel.params] == ["s.n", "s.p"]
    assert [a.name for a in kernel.arrays] == ["s.p"]


def test_lambda_captures_by_copy_and_by_reference():
    text = "__global__ void k(int* a) { int i = 1, j = 1; auto f = [i, &j] { return i + 10 * j; }; i = 5; j = 6; a[0] = f(); }"
    lines = printed(text)
    assert not constructs(lowered(text))
    assert any(
        "store int32 &a <- " in line and "j * 10" in line.replace("10 * j", "j * 10") for line in lines
    )


def test_functor_passed_as_template_argument_is_inlined():
    text = (
        "struct Add { int k; __device__ int operator()(int x) const { return x + k; } };"
        " template <class F> __device__ void each(F f, int* a) { a[f(1)] = 0; }"
        " __global__ void k(int* a) { each(Add{4}, a); }"
    )
    assert not constructs(lowered(text)) and len(accesses(text, "a")) == 1


def test_methods_and_constructors_work_on_the_object():
    text = (
        "struct View { int* p; int w; __device__ View(int* q, int n) : p(q), w(n) {}"
        " __device__ int& at(int y, int x) { return p[y * w + x]; } };"
        " __global__ void k(int* a) { View v(a, 8); v.at(threadIdx.y, threadIdx.x) = 1; }"
    )
    kernel = lowered(text)
    assert not constructs(kernel)
    (store,) = [s for s in walk(kernel.body) if isinstance(s, Store)]
    assert store.type.size == 4


def test_operator_overload_is_inlined():
    text = (
        "struct V { int x, y; }; __device__ V operator+(V a, V b) { return V{a.x + b.x, a.y + b.y}; }"
        " __global__ void k(int* a) { V u{1, 2}, v{3, 4}; V w = u + v; a[w.x] = w.y; }"
    )
    assert not constructs(lowered(text)) and len(accesses(text, "a")) == 1


def test_recursion_is_bounded_and_said():
    text = "__device__ int f(int n) { return n < 2 ? 1 : n * f(n - 1); } __global__ void k(int* a, int n) { a[0] = f(n); }"
    assert "f" in constructs(lowered(text))


def test_memcpy_is_a_copy_and_memset_a_loop_of_stores():
    kernel = lowered("__global__ void k(int* a, int* b) { memcpy(a, b, 64); memset(b, 0, 32); }")
    assert any(isinstance(s, Copy) for s in kernel.body) and any(isinstance(s, Loop) for s in kernel.body)


def test_macro_access_is_reported_at_its_use():
    kernel = lowered(
        "#define AT(i) s[(i) + 1]\n__global__ void k() {\n  __shared__ int s[9];\n  AT(threadIdx.x) = 1;\n}"
    )
    (store,) = [s for s in kernel.body if isinstance(s, Store)]
    assert (store.site.range.start.line, store.site.range.start.column) == (4, 3)
    assert store.site.text == "AT(threadIdx.x)"


def test_columns_count_code_points():
    kernel = lowered("__global__ void k(int* a) { /* é€😀 */ a[0] = 1; }")
    (store,) = [s for s in kernel.body if isinstance(s, Store)]
    assert store.site.range.start.column == len("__global__ void k(int* a) { /* é€😀 */ ") + 1


def test_assigned_parameter_is_copied_first():
    kernel = lowered("__global__ void k(int* a, int n) { n = n / 2; a[n] = 0; }")
    assigned = [s.var for s in walk(kernel.body) if hasattr(s, "var") and s.var is not None]
    assert assigned and not any(v in kernel.params for v in assigned)


def test_floating_point_is_data_but_its_reads_are_kept():
    text = "__global__ void k(float* a, float* b) { a[0] = b[1] * 2.f + b[2]; }"
    assert len(accesses(text, "b")) == 2 and len(accesses(text, "a")) == 1


def test_compile_error_in_a_body_is_said_and_the_rest_is_kept():
    text = "__global__ void k(int* a) { a[0] = 1; nonsense(a); a[1] = 2; }"
    assert constructs(lowered(text)) and len(accesses(text, "a")) == 2


def test_constexpr_macro_and_sizeof_are_constants():
    text = "#define R 2\nconstexpr int W = 4 * R; __global__ void k(int* a) { a[W + sizeof(double)] = R; }"
    assert accesses(text, "a") == ["store int32 &a + 64 B <- 2"]


def test_volatile_and_restrict_are_kept():
    kernel = lowered(
        "__global__ void k(volatile int* v, const float* __restrict__ r, float* o) { v[0] = 1; o[0] = r[1]; }"
    )
    assert any(isinstance(s, Store) and s.volatile for s in kernel.body)
    assert any(isinstance(s, Load) and s.readonly for s in kernel.body)


def test_device_and_constant_globals_have_their_spaces():
    kernel = lowered(
        "__device__ int g[4]; __constant__ int c[4]; __global__ void k() { g[threadIdx.x] = c[1]; }"
    )
    assert {a.name: a.space for a in kernel.arrays} == {"g": Space.GLOBAL, "c": Space.CONSTANT}


def test_post_increment_as_an_index_uses_the_old_value():
    lines = printed("__global__ void k(int* a) { int i = 0; a[i++] = 7; a[i] = 8; }")
    at = [n for n, line in enumerate(lines) if line.startswith("store")]
    assert lines[at[0]].startswith("store int32 &a + t") and lines[at[1]].startswith("store int32 &a + i")


def test_reference_keeps_its_element_when_the_index_changes():
    text = "__global__ void k(int* a, int n) { int i = n; i += 1; int& r = a[i]; i = 0; r = 7; }"
    (store,) = accesses(text, "a")
    assert "i *" not in store  # the offset was computed when the reference was bound


def test_structured_bindings_name_the_members():
    text = "__global__ void k(int* a, int n) { int2 c = make_int2(n, 3); auto [x, y] = c; a[x] = y; }"
    assert not constructs(lowered(text)) and len(accesses(text, "a")) == 1


@pytest.mark.parametrize("made", ["std::make_tuple", "std::make_pair"])
@pytest.mark.parametrize("kind", ["auto", "const auto", "auto&&", "const auto&"])
def test_structured_bindings_name_the_parts_of_tuples(made: str, kind: str):
    text = f"""__global__ void each(int* a) {{ {kind} [x, y] = {made}(threadIdx.x, 3); a[x] = y; }}
__global__ void pairs(int* a) {{ {kind} [x, y] = {made}(threadIdx.x / 2, threadIdx.x); a[x] = y; }}
void f(int* a) {{ each<<<1, 64>>>(a); pairs<<<1, 64>>>(a); }}
"""
    found = {k.name: k.verdict for k in check_text(Path("k.cu"), text).kernels}
    assert found == {"each": Verdict.RACE_FREE, "pairs": Verdict.RACY}


@pytest.mark.parametrize("object", ["std::make_tuple(1, 2.f, n)", "std::array<int, 3>{1, 2, n}"])
def test_every_part_of_a_tuple_has_its_name(object: str):
    text = f"__global__ void k(int* a, int n) {{ auto [x, y, z] = {object}; a[z] = x; }}"
    lines = "\n".join(printed(text))
    assert not constructs(lowered(text)) and (
        ".__rest.__rest.__head * 4 B" in lines or "load int32 & + 8 B" in lines
    )


@pytest.mark.parametrize(
    "declared",
    [
        "union U { float f[64]; int i[64]; } __shared__ s;",
        "struct U { float f[64]; } __shared__ other, s;",
        "struct { float f[64]; } volatile __shared__ s;",
        "__shared__ union { float f[64]; int i[64]; } s;",
    ],
)
def test_a_variable_behind_its_class_is_shared(declared: str):
    body = "s.f[threadIdx.x] = o[threadIdx.x]; BARRIER o[threadIdx.x] = s.f[63 - threadIdx.x];"
    kernel = f"__global__ void k(float* o) {{ {declared} {body} }}"
    text = f"{kernel}\nvoid f(float* o) {{ k<<<1, 64>>>(o); }}"
    (racy,) = check_text(Path("k.cu"), text.replace("BARRIER", "")).kernels
    (free,) = check_text(Path("k.cu"), text.replace("BARRIER", "__syncthreads();")).kernels
    assert (racy.verdict, free.verdict) == (Verdict.RACY, Verdict.RACE_FREE)


def test_numbers_that_are_none_are_pure():
    text = '__global__ void k(float* a) { a[threadIdx.x] = __builtin_nanf("") + __builtin_nan("") + __builtin_inff(); }'
    assert not constructs(lowered(text)) and len(accesses(text, "a")) == 1


def test_a_variable_of_the_file_behind_its_class_is_no_memory_of_a_thread():
    text = """struct Q { float f[64]; } __shared__ q;
__global__ void k(float* o) { q.f[threadIdx.x] = 1; o[threadIdx.x] = q.f[63 - threadIdx.x]; }
void f(float* o) { k<<<1, 64>>>(o); }"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is not Verdict.RACE_FREE


def test_increment_whose_value_is_unused_is_one_assignment():
    lines = printed("__global__ void k(int* a, int n) { for (int i = 0, j = 9; i < n; i++, j--) a[i] = j; }")
    assert "i = i + 1" in lines and "j = j - 1" in lines


def test_conditional_lvalue_is_written_through_a_chosen_address():
    text = "__global__ void k(int* a, int n) { (n ? a[1] : a[2]) = 3; }"
    assert printed(text)[-1] == "store int32 n ? &a + 4 B : &a + 8 B <- 3"


def test_two_variables_that_are_chosen_from_have_addresses():
    text = "__global__ void k(int* a, int n) { int x = 0, y = 0; (n ? x : y) = 3; a[x] = y; }"
    assert "store int32 n ? &x : &y <- 3" in printed(text) and not constructs(lowered(text))


def test_integer_written_through_another_integer_type_is_not_lost():
    kernel = lowered("__global__ void k(int* a) { unsigned u = 1; *(int*)&u = 5; a[u] = 0; }")
    assert any(a.space is Space.LOCAL and a.name == "u" for a in kernel.arrays)


def test_record_seen_as_a_vector_moves_to_memory():
    text = (
        "struct P { int v[1]; int a, b, c; }; struct Q { int a, b; };"
        " __global__ void k(int* o) { Q q; q.a = 1; *(int2*)&q = make_int2(7, 8); o[q.a] = 0; }"
    )
    assert any(a.space is Space.LOCAL and a.name == "q" for a in lowered(text).arrays)


def test_local_whose_initialiser_is_not_understood_stays_private_to_its_thread():
    kernel = lowered(
        "typedef float (*fn)(float); template <fn f> __device__ float g(float v) { float w = f(v); w += 1; return w; }"
        " __device__ float h(float v) { return v; }"
        " __global__ void k(float* a) { a[threadIdx.x] = g<h>(a[threadIdx.x]); } void l(float* a) { k<<<1, 32>>>(a); }"
    )
    assert {array.name for array in kernel.arrays if array.space is Space.GLOBAL} == {"a"}


def test_a_function_as_template_argument_is_inlined():
    kernel = lowered(
        "__device__ int twice(int v) { return 2 * v; }\n"
        "using F = int (*)(int);\n"
        "template <F f> __device__ int apply(int v) { return f(v) + (*f)(v); }\n"
        "__global__ void k(int* a) { a[apply<twice>(threadIdx.x)] = 1; }\n"
    )
    assert constructs(kernel) == []


def test_an_element_of_a_constant_table_is_one_of_its_numbers():
    text = "__device__ const int t[2][2] = {{7, 5}, {3}}; __global__ void k(int* a, int i, int j) { a[t[i][j]] = 0; }"
    store = accesses(text, "a")[0]
    choice = next(line for line in printed(text) if "?" in line)
    assert choice.endswith("< 8 ? (t6 < 4 ? 7 : 5) : (t6 < 12 ? 3 : 0)")
    assert store == f"store int32 &a + {choice.split(' = ')[0]} * 4 B <- 0"


def test_what_libclang_hides_is_read_all_the_same():
    """The middle of ``?:``, the first statement of a ``switch``, the initialisers of captures."""
    text = """__global__ void k(int* a, int* b, int i) {
    int x = a[i] ?: a[i + 1];
    switch (int n = a[i + 2]; n) { case 1: b[0] = x; }
    auto f = [n = a[i + 3], &r = a[i + 4]] { return n + r; };
    auto g = [n = a[i + 5]](auto v) { return n + v; };
    __syncthreads();
    b[1] = f() + g(a[i + 6]);
}"""
    lines = printed(text)
    loads = [line.split(" &a + ")[1] for line in lines if "load int32 &a" in line]
    assert loads == ["i * 4 B", *(f"(i + {k}) * 4 B" for k in (1, 2, 3, 5, 4, 6))]
    barrier = lines.index("barrier block")
    assert [lines.index(line) < barrier for line in lines if "(i + 3)" in line or "(i + 4)" in line] == [
        True,
        False,
    ]
    assert not any("global int32 n" in line for line in lines)


@pytest.mark.parametrize(
    "declaration",
    ["int t = t;", "int t = t.x;", "int i = 0, j = j - i;", "S s = s;", "int& r = r;", "auto f = f(1);"],
)
def test_a_variable_made_of_itself_is_told(declaration: str):
    text = f"struct S {{ int x; }}; __global__ void k(int* a) {{ {declaration} a[threadIdx.x] = 1; }}"
    report = check_text(Path("k.cu"), text, solver=False)
    assert not any("internal error" in error.message for error in report.errors)
    assert [kernel.name for kernel in report.kernels] == ["k"]


def test_a_kernel_that_nests_too_deeply_is_undecided():
    text = f"__global__ void k(int* a) {{ int x = threadIdx.x; a[{'+'.join(['x'] * 2_000)}] = 1; }}"
    (kernel,) = check_text(Path("k.cu"), text, solver=False).kernels
    assert kernel.verdict is Verdict.UNDECIDED
    assert "nests too deeply" in kernel.reasons[0]
