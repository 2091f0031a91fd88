"""Names of CUDA's headers that a program defines itself are what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

PAIRS = """
#include <cuda_fp16.h>
#ifndef BF16_AVAILABLE
OWN
#endif
template <typename T> __global__ void copy(T* out, const T* in, int n) {
  using T2 = typename std::conditional<std::is_same<T, __half>::value, __half2, __nv_bfloat162>::type;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2) reinterpret_cast<T2*>(out)[AT] = reinterpret_cast<const T2*>(in)[i];
}
void run(__half* out, __half* in, int n) { copy<<<(n + 255) / 256, 256>>>(out, in, n); }
"""


@pytest.mark.parametrize("own", ["using __nv_bfloat162 = __half2;", "typedef __half2 __nv_bfloat162;", ""])
@pytest.mark.parametrize(("at", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_name_that_the_program_defines_is_its_own(own: str, at: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), PAIRS.replace("OWN", own).replace("AT", at))
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [verdict]


CUDA = """
#include <cmath>
namespace image {
namespace cuda { template <class T> struct View { T* p; __device__ T& at(int i) const { return p[i]; } }; }
}
USE
__global__ void fill(cuda::View<float> v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v.at(AT) = 1.f;
}
void run(float* p, int n) { fill<<<(n + 255) / 256, 256>>>(cuda::View<float>{p}, n); }
"""


@pytest.mark.parametrize("use", ["namespace cuda = image::cuda;", "using namespace image;"])
@pytest.mark.parametrize(("at", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_namespace_that_the_program_calls_cuda_is_its_own(use: str, at: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), CUDA.replace("USE", use).replace("AT", at))
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [verdict]


def test_who_has_no_namespace_of_that_name_has_that_of_the_library() -> None:
    text = """
#include <cuda/atomic>
__global__ void count(int* n) { cuda::atomic_ref<int>(n[0]).fetch_add(1); }
void run(int* n) { count<<<4, 64>>>(n); }
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [Verdict.RACE_FREE]
