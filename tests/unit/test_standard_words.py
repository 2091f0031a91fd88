"""Headers that name much of the C++ standard library around a kernel are understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

SHAPES = """
#include <algorithm>
#include <array>
#include <cstdarg>
#include <functional>
#include <random>
struct Failure : std::exception {
  explicit Failure(const char* text, va_list list);
  const char* what() const noexcept override { return "no"; }
};
template <int N> struct Shape {
  using Sizes = std::array<long, N>;
  Sizes sizes;
  typename Sizes::reference operator[](int i) { return sizes[i]; }
  typename Sizes::const_iterator begin() const { return sizes.begin(); }
  bool operator==(const Shape& b) const { return std::equal(begin(), begin() + N, b.begin()); }
  bool operator<(const Shape& b) const { return std::tie(sizes[0]) < std::tie(b.sizes[0]); }
};
struct Image {
  std::function<void(float*)> freed;
  std::mt19937 drawn;
  Shape<2> shape;
  float* data;
  ~Image() { if (freed) freed(data); }
};
template <class T> struct View {
  T* data; int pitch;
  View(Image& image) : data(image.data), pitch(image.shape[1]) {}
  __device__ T& at(int y, int x) const { return data[y * pitch + x]; }
};
template <class V> __global__ void fill(V view, int rows) {
  std::array<int, 2> at{};
  at.fill(1);
  int y = blockIdx.x, x = threadIdx.x;
  if (y < rows && x < view.pitch) view.at(y, PLACE) = at.front() + std::max_element(at.begin(), at.end())[0];
}
void run(Image& image, int rows) { fill<<<rows, 64>>>(View<float>(image), rows); }
"""


@pytest.mark.parametrize(("place", "verdict"), [("x", Verdict.RACE_FREE), ("x / 2", Verdict.RACY)])
def test_an_instance_that_hangs_on_headers_of_the_library_is_made(place: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), SHAPES.replace("PLACE", place))
    assert not report.errors
    assert [(k.name, k.verdict) for k in report.kernels] == [("fill<View<float>>", verdict)]


@pytest.mark.parametrize(
    "count", ["std::count_if(a, a + 2, [](int v) { return v > 0; })", "std::count(a, a + 2, 1)"]
)
@pytest.mark.parametrize(("first", "verdict"), [("1", Verdict.RACE_FREE), ("0", Verdict.RACY)])
def test_what_is_counted_is_a_number(count: str, first: str, verdict: Verdict) -> None:
    text = f"""
__global__ void fill(int* p) {{
  int a[2] = {{{first}, 0}};
  p[threadIdx.x * ({count})] = threadIdx.x;
}}
void run(int* p) {{ fill<<<1, 64>>>(p); }}
"""
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [verdict]


@pytest.mark.parametrize(
    ("place", "verdict"), [("a", Verdict.RACE_FREE), ("b", Verdict.RACY), ("a - b", Verdict.RACY)]
)
def test_a_constant_of_a_plain_class_is_taken_apart(place: str, verdict: Verdict) -> None:
    text = f"""
struct Pair {{ int a, b; }};
__device__ Pair two(int i) {{ return {{i, i / 2}}; }}
__global__ void fill(int* p, int n) {{
  const auto [a, b] = two(blockIdx.x * blockDim.x + threadIdx.x);
  if (a < n) p[{place}] = a;
}}
void run(int* p, int n) {{ fill<<<(n + 255) / 256, 256>>>(p, n); }}
"""
    assert [k.verdict for k in check_text(Path("k.cu"), text).kernels] == [verdict]


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_class_that_keeps_handles_of_libraries_makes_its_instances(place: str, verdict: Verdict) -> None:
    text = f"""
#include <cublas_v2.h>
#include <cusparse.h>
void check(cudaError_t error);
void check(cublasStatus_t status);
template <class T> struct Solver {{
  cublasHandle_t handle;
  cusparseMatDescr_t matrix = nullptr;
  int n;
  void run(T* p);
}};
template <class V> __global__ void fill(V* p, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[{place}] = i;
}}
template <class T> void Solver<T>::run(T* p) {{
  check(cublasCreate(&handle));
  fill<<<(n + 255) / 256, 256>>>(p, n);
}}
template struct Solver<double>;
"""
    report = check_text(Path("k.cu"), text)
    assert [(k.name, k.verdict) for k in report.kernels] == [("fill<double>", verdict)]


@pytest.mark.parametrize("function", ["roundf", "floorf", "truncf", "rintf"])
def test_functions_of_floats_are_in_the_namespace_too(function: str) -> None:
    text = f"""
__global__ void fill(float* p, float x) {{ p[threadIdx.x] = std::{function}(x) + std::atan2f(x, 2.f); }}
void run(float* p, float x) {{ fill<<<1, 64>>>(p, x); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert [k.verdict for k in report.kernels] == [Verdict.RACE_FREE]


NUMBERS = """
#include <complex>
#include <limits>
#include <type_traits>
struct Number {
  template <class T, std::enable_if_t<std::is_same<std::complex<float>, T>::value, int> = 0>
  Number(const T& v) : re(v.real()), im(v.imag()) {}
  template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
  __host__ __device__ Number(const T& v) : re(v), im(0) {}
  template <class T, std::enable_if_t<std::is_same<std::complex<float>, T>::value, int> = 0>
  T value() const { return T(re, im) * T(1); }
  template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
  __host__ __device__ T value() const { return static_cast<T>(re); }
  double re, im;
};
struct Limits {
  static constexpr auto denorm = std::numeric_limits<float>::has_denorm;
  static constexpr auto traps = std::numeric_limits<float>::traps || std::numeric_limits<int>::is_modulo;
};
__global__ void fill(float* out, Number number, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && Limits::denorm == std::denorm_present) out[PLACE] = number.value<float>() + i;
}
void run(float* out, int n) { fill<<<n / 64 + 1, 64>>>(out, Number(std::complex<float>(1, 2)), n); }
"""


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_numbers_of_the_host_do_not_hide_what_stands_beside_them(place: str, wanted: Verdict) -> None:
    report = check_text(Path("k.cu"), NUMBERS.replace("PLACE", place))
    assert [kernel.verdict for kernel in report.kernels] == [wanted]
