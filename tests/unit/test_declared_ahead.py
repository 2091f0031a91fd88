"""Types of CUDA's headers that a program declares ahead, and complex numbers of thrust."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

HALVES = """#include "types.h"
{ahead}
__global__ void halves(const __half* in, device_type* out) {{
    __shared__ __half s[64];
    s[threadIdx.x] = in[threadIdx.x] + in[0];
    {barrier}
    out[threadIdx.x] = s[63 - threadIdx.x];
}}
void go(const __half* in, device_type* out) {{ halves<<<1, 64>>>(in, out); }}
"""
SUMS = """#include <thrust/complex.h>
template <class T> __global__ void sums(const thrust::complex<T>* in, thrust::complex<T>* out, T s, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 >= n) return;
    thrust::complex<T> v = thrust::conj(in[i]) * s - in[i] / thrust::complex<T>(1, 2);
    if (v != T(0)) v /= thrust::complex<T>(thrust::complex<double>(thrust::abs(v)));
    {store}
}}
void go(const thrust::complex<float>* in, thrust::complex<float>* out, int n) {{
    sums<<<n, 128>>>(in, out, 2.0f, n);
}}
"""


def checked(path: Path, text: str) -> FileReport:
    return check_text(path, text, Settings())


@pytest.mark.parametrize(("barrier", "wanted"), [("__syncthreads();", Verdict.RACE_FREE), ("", Verdict.RACY)])
@pytest.mark.parametrize("ahead", ["struct __half;", "class __half;", ""])
def test_a_type_that_is_only_declared_is_that_of_the_toolkit(
    tmp_path: Path, ahead: str, barrier: str, wanted: Verdict
) -> None:
    (tmp_path / "types.h").write_text("struct __half;\nusing device_type = __half;\n")
    path = tmp_path / "halves.cu"
    (told,) = checked(path, HALVES.format(ahead=ahead, barrier=barrier)).kernels
    assert told.verdict is wanted
    assert not told.reasons


@pytest.mark.parametrize(
    ("store", "wanted"),
    [
        ("out[i] = thrust::sqrt(v);", Verdict.RACE_FREE),
        ("out[i / 2] = v;", Verdict.RACY),
        ("out[i] -= thrust::exp(out[i + 1]);", Verdict.RACY),
        ("out[i].real(v.imag()); out[i + 1].imag(out[i].imag());", Verdict.RACY),
    ],
)
def test_complex_numbers_of_thrust_lie_in_memory_as_two_numbers(store: str, wanted: Verdict) -> None:
    (told,) = checked(Path("sums.cu"), SUMS.format(store=store)).kernels
    assert told.verdict is wanted
