"""``thrust::transform_iterator<F, I, R>(from, f)``, made by its constructor, and what numbers it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <thrust/iterator/transform_iterator.h>
struct Same {{ __host__ __device__ int operator()(int i) const {{ return i; }} }};
struct Half {{ __host__ __device__ int operator()(int i) const {{ return i / 2; }} }};
struct Next {{ __host__ __device__ int operator()(int i) const {{ return i + 1; }} }};
template <typename R, typename I, typename F>
__host__ __device__ thrust::transform_iterator<F, I, R> made(I from, F f) {{
    return thrust::transform_iterator<F, I, R>(from, f);
}}
__global__ void k(int *a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    thrust::counting_iterator<int> from(0);
    if (i < n) {{ {body} }}
}}
void f(int *a, int n) {{ k<<<(n + 127) / 128, 128>>>(a, n); }}
"""


def verdict(body: str) -> Verdict:
    (kernel,) = check_text(Path("a.cu"), KERNEL.format(body=body)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "a[made<int>(from, Same{})[i]] = 1;",
        "a[made<long>(from, Next{})[i]] = 1;",
        "auto it = made<int>(from + i, Same{}); a[*it] = 1;",
        "auto it = made<thrust::use_default>(from, Same{}); it += i; a[*it] = 1;",
        "thrust::transform_iterator<Same, thrust::counting_iterator<int>> it(from, Same{}); a[it[i]] = 1;",
        "a[thrust::make_transform_iterator(from, Next{})[i]] = 1;",
    ],
)
def test_each_thread_has_a_place_of_its_own(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "a[made<int>(from, Half{})[i]] = i;",
        "a[made<bool>(from, Same{})[i]] = i;",
        "a[made<unsigned char>(from, Same{})[i]] = i;",
        "auto it = made<int>(from + i, Same{}); a[*it] = a[it[1]];",
        "thrust::transform_iterator<Next, thrust::counting_iterator<int>> it(from, Next{}); a[i] = a[it[i]];",
    ],
)
def test_what_it_gives_is_as_wide_as_it_says(body: str) -> None:
    assert verdict(body) is Verdict.RACY
