"""Blocks that follow a field of the object whose member function launches, as they follow a parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void add(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
__global__ void turned(float* x, int threads) {
  extern __shared__ float s[];
  s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = s[threads - 1 - threadIdx.x];
}
"""
LAUNCH = "add<<<(n + m - 1) / m, m>>>(x, n);"


def _launches(host: str, kernel: str = "add") -> list[tuple[tuple[int, int, int], LaunchSource]]:
    report = check_text(Path("fields.cu"), KERNEL + host, Settings())
    found = next(k for k in report.kernels if k.name == kernel)
    assert found.verdict is Verdict.RACE_FREE
    return [(launch.block, launch.source) for launch in found.launches]


@pytest.mark.parametrize(
    "host",
    [
        "struct S { unsigned m; S(unsigned t) : m(t) {} void go(float* x, int n); };"
        f" void S::go(float* x, int n) {{ {LAUNCH} }}",
        f"struct S {{ unsigned m; S(unsigned t) {{ m = t; }} void go(float* x, int n) {{ {LAUNCH} }} }};",
        "class S { int k, m; void operator()(float* x, int n); };"
        f" void S::operator()(float* x, int n) {{ {LAUNCH} }}",
        "struct S { int m; void go(float* x, int n); };"
        " void S::go(float* x, int n) { dim3 b, g; b.x = m; g.x = (n + m - 1) / m; add<<<g, b>>>(x, n); }",
    ],
)
def test_some_sizes_are_tried(host: str) -> None:
    found = _launches(host)
    assert len(found) == 2
    assert all(source is LaunchSource.SIZES for _, source in found)


def test_what_else_follows_the_field_follows_it_too() -> None:
    host = (
        "struct S { int m; void go(float* x); };"
        " void S::go(float* x) { turned<<<8, m, m * sizeof(float)>>>(x, m); }"
    )
    assert {source for _, source in _launches(host, "turned")} == {LaunchSource.SIZES}


def test_a_constant_of_the_class_is_what_it_is() -> None:
    of_class = "struct S { static constexpr int m = 96; void go(float* x, int n); };"
    host = f"{of_class} void S::go(float* x, int n) {{ {LAUNCH} }}"
    assert _launches(host) == [((96, 1, 1), LaunchSource.FILE)]


@pytest.mark.parametrize(
    "host",
    [
        # one class starts with a value, which its constructor may replace
        "struct S { int m = 96; S(int t) : m(t) {} void go(float* x, int n); };"
        f" void S::go(float* x, int n) {{ {LAUNCH} }}",
        # nobody knows what the function has made of it
        "struct S { int m; void go(float* x, int n); };"
        f" void S::go(float* x, int n) {{ m = pick(n); {LAUNCH} }}",
        # a name that no class has
        f"struct S {{ int k; void go(float* x, int n); }}; void S::go(float* x, int n) {{ {LAUNCH} }}",
        f"struct S {{ int m; }}; void go(float* x, int n) {{ {LAUNCH} }}",
    ],
)
def test_what_nobody_holds_for_good_is_not_tried(host: str) -> None:
    assert all(source is not LaunchSource.SIZES for _, source in _launches(host))
