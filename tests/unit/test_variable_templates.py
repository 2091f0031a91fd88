"""Instances of variable templates have the value that clang computes, wherever a kernel reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

LANES = """
template <class T> struct Traits { static constexpr int lanes = sizeof(T) / 4; };
template <class T, class = std::enable_if_t<(sizeof(T) >= 4)>> constexpr int lanes = Traits<T>::lanes;
template <class T> struct View {
  T* p;
  template <class I> __device__ T& at(I i) const {
    if constexpr (lanes<I> == 1) return p[i];
    else return p[i >> 1];
  }
};
template <class I> __global__ void fill(View<float> v, int n) {
  I i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v.at(i) = LANES;
}
void run(float* p, int n) { fill<INDEX><<<(n + 255) / 256, 256>>>(View<float>{p}, n); }
"""


@pytest.mark.parametrize(
    ("index", "verdict"),
    [("int", Verdict.RACE_FREE), ("unsigned", Verdict.RACE_FREE), ("long", Verdict.RACY)],
)
def test_an_instance_of_a_variable_template_is_a_constant(index: str, verdict: Verdict) -> None:
    text = LANES.replace("INDEX", index).replace("LANES", "1 + threadIdx.x")
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [verdict]


@pytest.mark.parametrize(("scale", "verdict"), [("lanes<I>", Verdict.RACE_FREE), ("0", Verdict.RACY)])
def test_a_place_that_counts_on_one_is_known(scale: str, verdict: Verdict) -> None:
    text = LANES.replace("INDEX", "int").replace("v.at(i) = LANES", f"v.p[i * {scale}] = threadIdx.x")
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [verdict]


def test_a_binding_that_is_no_constant_is_none() -> None:
    text = """
struct Pair { int a, b; };
__device__ Pair two(int i) { return {i, i / 2}; }
__global__ void fill(int* p, int n) {
  const auto [a, b] = two(blockIdx.x * blockDim.x + threadIdx.x);
  if (a < n) p[b] = a;
}
void run(int* p, int n) { fill<<<(n + 255) / 256, 256>>>(p, n); }
"""
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [Verdict.RACY]
