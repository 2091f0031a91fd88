"""Which instances of a kernel template are looked at: those that launches write, wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.translation import Translation

_KERNEL = "template <typename T, int N, bool B = false> __global__ void k(T* p) { p[threadIdx.x] = N + B; }\n"


def names(text: str) -> set[str]:
    return {kernel.name for kernel in Translation(Path("a.cu"), text).kernels()}


@pytest.mark.parametrize(
    ("host", "instances"),
    [
        # The body of a host template that nobody calls, with errors around, as of a missing library.
        ("template <typename S> void f(Tensor t) { k<S, 8><<<1, 64>>>(t.p<S>()); }", {"k<float, 8, false>"}),
        ("void f(Tensor t) { SOME_DISPATCH(t, [&] { k<scalar_t, 8, true><<<1, 64>>>(t.p()); }); }",
         {"k<float, 8, true>"}),
        ("template <typename S, int M> void f(Tensor t) { k<S, M><<<1, 64>>>(t.p()); }\n"
         "void g(Tensor t) { f<int, 8>(t); f<double, 9>(t); }", {"k<int, 8, false>", "k<double, 9, false>"}),
        ("template <typename S, int M> void f(Tensor t) { k<S, 2 * M><<<1, 64>>>(t.p()); }\n"
         "template <int M> void g(Tensor t) { f<int, M>(t); }\n"
         "void h(Tensor t) { g<8>(t); }", {"k<int, 16, false>"}),
        ("template <typename S, int M> void f(Tensor t) { k<S, M><<<1, 64>>>(t.p()); }\n"
         "template void f<double, 32>(Tensor t);", {"k<double, 32, false>"}),
        ("void f(Tensor t, int n) { switch (n) { case 32: k<float, 32><<<1, n>>>(t.p()); break;\n"
         "case 64: k<float, 64><<<1, n>>>(t.p()); } }", {"k<float, 32, false>", "k<float, 64, false>"}),
        ("struct C { static constexpr int kN = 24; };\n"
         "void f(Tensor t) { k<double, C::kN><<<1, 64>>>(t.p()); }", {"k<double, 24, false>"}),
    ],
)  # fmt: skip
def test_launches_tell_the_instances(host: str, instances: set[str]) -> None:
    assert names(_KERNEL + host) == instances


def test_where_nothing_is_told_a_guess_stands() -> None:
    assert names(_KERNEL + "void f(Tensor t) { k<T, M><<<1, 64>>>(t.p()); }") == {"k<float, 16, false>"}


@pytest.mark.parametrize(
    ("body", "instance"),
    [
        ("int ids[4] = {1, 2, 3, 4}; ids[dim] = 2; p[threadIdx.x * s.strides[dim]] = ids[ dim ];", "k<1>"),
        ("p[threadIdx.x * (-q->strides[dim])] = dim;", "k<1>"),
        ("// before ids[dim] is set: float ids[dim]\n p[0] = s.strides[dim];", "k<1>"),
        # An array of that size.
        ("__shared__ int t[dim]; t[threadIdx.x] = p[0]; p[threadIdx.x] = s.strides[3];", "k<16>"),
        ("int t[4][dim]; t[0][threadIdx.x] = 1; p[0] = t[0][3] + p[dim];", "k<16>"),
        ("int a[3], b[dim]; p[0] = b[threadIdx.x] + a[1];", "k<16>"),
        ("p[threadIdx.x * dim] = s.strides[2];", "k<16>"),
    ],
)
def test_the_number_of_an_element_is_small(body: str, instance: str) -> None:
    text = f"""struct S {{ int strides[4]; }};
template <int dim> __global__ void k(int* p, S s, const S* q) {{ {body} }}
"""
    assert names(text) == {instance}


def test_what_does_not_compile_is_not_insisted_on() -> None:
    text = """template <int N> __global__ void k(int* p) {
  static_assert(N >= 16, "too small");
  p[threadIdx.x] = N;
}
void f(Tensor t) { k<8><<<1, 64>>>(t.p()); }
"""
    assert names(text) == {"k<16>"}


def test_of_many_instances_the_first_and_the_last_are_looked_at() -> None:
    ladder = " ".join(f"case {n}: k<float, {n}><<<1, n>>>(t.p()); break;" for n in (256, 128, 64, 32, 16, 8))
    found = names(f"{_KERNEL}void f(Tensor t, int n) {{ switch (n) {{ {ladder} }} }}")
    assert len(found) == 4
    assert {"k<float, 256, false>", "k<float, 8, false>"} <= found


def test_other_launches_ask_for_other_instances_while_the_text_changes() -> None:
    host = "void f(Tensor t) {{ k<double, {}><<<1, 64>>>(t.p()); }}"
    translation = Translation(Path("a.cu"), _KERNEL + host.format(8))
    translation.reparse(_KERNEL + host.format(12))
    assert {kernel.name for kernel in translation.kernels()} == {"k<double, 12, false>"}


def test_templates_of_one_name_are_told_apart_by_what_they_take() -> None:
    text = """namespace deep {
struct Box { int n; };
template <typename T, int N> __global__ void k(T* p) { p[threadIdx.x] = N; }
template <typename T, int N> __global__ void k(T* p, const T* q, Box box) { p[threadIdx.x] = q[N] + box.n; }
}
"""
    kernels = Translation(Path("a.cu"), text).kernels()
    assert [(kernel.name, kernel.range.start.line) for kernel in kernels] == [
        ("k<float, 16>", 3),
        ("k<float, 1>", 4),
    ]


def test_a_number_may_be_a_small_one_of_few() -> None:
    text = """template <typename T, int Order> struct Method;
template <typename T> struct Method<T, 1> { __device__ T operator()(T a) { return a; } };
template <typename T> struct Method<T, 2> { __device__ T operator()(T a) { return a * a; } };
template <typename T, int BLOCK, int Order> __global__ void k(T* p) { p[0] = Method<T, Order>()(p[0]); }
"""
    assert names(text) == {"k<float, 16, 1>"}


def test_one_of_several_types_may_be_a_vector() -> None:
    text = "template <class A, class B> __global__ void k(A* a, B* b) { a[threadIdx.x].y = b[threadIdx.x]; }"
    assert names(text) == {"k<float2, float>"}
    text = "template <class A, class B> __global__ void k(A* a, B* b) { a[threadIdx.x] = b[threadIdx.x].y; }"
    assert names(text) == {"k<float, float2>"}


def test_a_template_that_takes_templates_has_no_guess() -> None:
    text = "template <template <class> class V, int N> __global__ void k(V<float>* p) { p[0].missing = N; }"
    assert names(text) == {"k"}


def test_instances_come_from_host_code_that_names_words_of_libraries() -> None:
    text = """#include <memory>
template <typename F> __global__ void apply(F f, int* p) { p[threadIdx.x] = f(threadIdx.x); }
struct Twice { __device__ int operator()(int i) const { return 2 * i; } };
template <typename... T> void run(const std::shared_ptr<int>& p, T&&... more) {
  auto every = std::tuple_cat(std::make_tuple(Twice()), std::make_tuple(more...));
  apply<<<1, 64>>>(std::get<0>(every), p.get());
}
void go() { run(std::make_shared<int>(64), 1); }
"""
    assert names(text) == {"apply<Twice>"}
