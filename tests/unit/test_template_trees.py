"""Which templates may form trees of instances, so that clang must not follow them for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.excess.templates import branches, template_texts
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

FEW = {
    "constness": "template <class T> struct View; template <class T> struct View<const T> {};"
    "template <class T> struct View { View<const T> a; View<T> b; };",
    "constants": "template <class T, int K> struct Step { Step<T, 0>* a; Step<T, 1>* b; };",
    "dispatch": "template <class T, int B> void run(int n) { n ? run<T, 1>() : run<T, 2>(); }",
    "a function's type": "template <class T, int N> struct Row {};"
    "template <class T, int N> constexpr Row<T, N> half(Row<T, N + N> a, Row<T, N / 2> b) { return {}; }",
    "macros": "#define CASE(k) run<T, k##_MODE>(n);\n"
    "template <class T, int M> void run(int n) { run<T, A##_MODE>(n); run<T, M>(n); }",
    "counting down": "template <int N> struct Sum { static int of() { return Sum<N - 1>::of(); } };",
}
TREES = {
    "two smaller": "template <int N, int I> struct T { T<N - 1, 2 * I> a; T<N - 1, 2 * I + 1> b; };",
    "wrapped": "template <class A> struct T { T<P<A>> a; T<Q<A>> b; };",
    "an alias": "template <class A> struct T { using X = P<A>; using Y = Q<A>; T<X> a; T<Y> b; };",
    "a default": "template <class A, class X = P<A>, class Y = Q<A>> struct T { T<X> a; T<Y> b; };",
    "a constant": "template <int N> struct T { static constexpr int M = N - 1, K = N - 2; T<M> a; T<K> b; };",
    "packs": "template <class A, class... R> struct T { T<A, A, R...> a; T<R...> b; };",
    "many places": "template <int A, int B, int C, int D, int E, int F, int G> struct T {"
    "T<B, C, D, E, F, G, 0> a; T<B, C, D, E, F, G, 1> b; T<B, C, D, E, F, G, 2> c; };",
    "two that name each other": "template <int N> struct U { T<N - 1> a; T<N - 2> b; };"
    "template <int N> struct T { U<N> a; };",
    "functions that return classes": "template <int N> struct Row {};"
    "template <int N> inline Row<N> f() { f<N - 1>(); f<N - 2>(); return {}; }",
}


@pytest.mark.parametrize("name", FEW)
def test_what_is_passed_on_makes_few_instances(name: str) -> None:
    assert not branches(template_texts(FEW[name].encode()))


@pytest.mark.parametrize("name", TREES)
def test_what_grows_on_the_way_makes_a_tree(name: str) -> None:
    assert branches(template_texts(TREES[name].encode()))


DEEP = """
template <class T> struct View { T* p; int n; View<const T> fixed() const; View<T> own() const; };
template <int N> struct Steps { static __device__ int at(int i) { return Steps<N - 1>::at(i) + 1; } };
template <> struct Steps<0> { static __device__ int at(int i) { return PLACE; } };
__global__ void fill(View<float> v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n) v.p[Steps<20>::at(i)] = i;
}
void run(View<float> v) { fill<<<(v.n + 255) / 256, 256>>>(v); }
"""


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_instances_may_be_deep_beside_a_class_that_names_itself_twice(place: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), DEEP.replace("PLACE", place))
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [verdict]


INHERITED = """
template <class T> struct Base { T* p; __device__ T& pick(int i) const { return p[i]; } };
template <class T> struct View : Base<T> {
  __device__ T& operator[](T i) const { return pick(i); }
};
template <class T> __global__ void fill(View<T> v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[PLACE] = i;
}
void run(View<int> v, int n) { fill<<<(n + 255) / 256, 256>>>(v, n); }
"""


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_member_of_a_base_that_is_named_without_this_is_that_one(place: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), INHERITED.replace("PLACE", place))
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [verdict]
