"""Arguments that are guessed for templates of kernels that nothing instantiates."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


def instances(text: str) -> dict[str, Verdict]:
    return {kernel.name: kernel.verdict for kernel in check_text(Path("k.cu"), text).kernels}


def test_one_type_may_be_a_vector_and_the_others_not() -> None:
    text = """
    template <class To, class Ti> __global__ void pack(To* to, const Ti* from, int half) {
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        if (t < half) { to[t].x = from[t]; to[t].y = from[t + half]; }
    }
    template <class To, class Ti> __global__ void unpack(To* to, const Ti* from, int half) {
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        if (t < half) to[t] = from[t].x + from[t].y;
    }
    """
    assert instances(text) == {
        "pack<float2, float>": Verdict.RACE_FREE,
        "unpack<float, float2>": Verdict.RACE_FREE,
    }


def test_guesses_that_are_alike_are_made_once() -> None:
    text = """
    template <class A, class B> __global__ void k(A* a, const B* b) {
        static_assert(sizeof(A) == 2 * sizeof(B), "");
        a[threadIdx.x].x = b[threadIdx.x];
    }
    """
    assert list(instances(text)) == ["k<float2, float>"]


def test_an_enumerator_below_zero_stands_for_none() -> None:
    text = """
    enum Operation { UNKNOWN = -1, ADD, MULTIPLY };
    template <class T, Operation op> struct Begin { __device__ T value(); };
    template <class T> struct Begin<T, ADD> { __device__ T value() { return 0; } };
    template <class T> struct Begin<T, MULTIPLY> { __device__ T value() { return 1; } };
    template <class T, Operation op> __global__ void fill(T* a) { a[threadIdx.x] = Begin<T, op>().value(); }
    """
    assert instances(text + "template <class T> void go(T* a) { fill<T, ADD><<<1, 64>>>(a); }") == {
        "fill<float, 0>": Verdict.RACE_FREE
    }
    assert list(instances(text)) == ["fill<float, 0>"]
