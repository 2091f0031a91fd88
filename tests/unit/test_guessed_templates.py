"""Template arguments that no launch tells are guessed by what parameters are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


@pytest.mark.parametrize("name", ["StrideType", "stride_t", "pitch_type", "step_t", "IndexType"])
def test_what_counts_elements_is_an_integer(name: str) -> None:
    text = f"""
template <typename T, typename {name}>
__global__ void rows(T* out, const T* in, int n, {name} apart) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i * apart];
}}
template <typename T> void run(T* out, T* in, int n) {{ rows<<<n / 256 + 1, 256>>>(out, in, n, 1); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert {k.verdict for k in report.kernels} == {Verdict.RACE_FREE}


@pytest.mark.parametrize(
    ("statements", "verdict"),
    [
        ("out[i].x = in[i].x; out[i].y = in[i].y + in[i].x;", Verdict.RACE_FREE),
        ("out[i].x = in[i].x; out[i / 2].y = in[i].y + in[i].x;", Verdict.RACY),
        ("out[i].x = in[i].x; out[i].y = in[i].y + unheard_of;", Verdict.UNDECIDED),  # whatever they are
    ],
)
def test_the_next_guess_is_tried_however_many_members_the_first_lacks(
    statements: str, verdict: Verdict
) -> None:
    text = f"""
template <typename T>
__global__ void k(T* out, const T* in, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ {statements} }}
}}
template <typename T> void run(T* out, T* in, int n) {{ k<<<n / 256 + 1, 256>>>(out, in, n); }}
"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is verdict


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_template_is_told_from_one_of_its_name_in_a_header(
    tmp_path: Path, place: str, verdict: Verdict
) -> None:
    header = "template <typename T> __global__ void clear(T* out, T value) { out[threadIdx.x] = value; }\n"
    (tmp_path / "other.cuh").write_text(header)
    text = f"""#include "other.cuh"
template <typename T>
__global__ void clear(T* out, T value, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[{place}] = value + i;
}}
template <typename T> void run(T* out, int n) {{ clear<<<n / 256 + 1, 256>>>(out, T(1), n); }}
"""
    (kernel,) = check_text(tmp_path / "k.cu", text).kernels
    assert kernel.verdict is verdict


APPLY = """struct Abs {}; struct Neg {};
template <class Op> struct Apply;
template <> struct Apply<Abs> { template <class T> __device__ static T of(T x) { return x < 0 ? -x : x; } };
template <> struct Apply<Neg> { template <class T> __device__ static T of(T x) { return -x; } };
template <class Op, class T> __global__ void each(T* out, const T* in, unsigned n) {
  for (unsigned i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[%s] = Apply<Op>::of(in[i]);
}
template <class Op, class T> void go(T* a, T* b, unsigned n) { each<Op, T><<<128, 128>>>(a, b, n); }
"""
SUM = """template <class... A> struct Sum;
template <class T> struct Sum<T> { static __device__ T of(T x) { return x; } };
template <class T, class... A> struct Sum<T, A...> {
  static __device__ T of(T x, A... more) { return x + Sum<A...>::of(more...); } };
template <class T, class... A> __global__ void add(const A*... in, T* out, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[%s] = Sum<A...>::of(in[i]...);
}
template <class T, class... A> void go(const A*... in, T* out, int n) {
  add<T, A...><<<(n + 255) / 256, 256>>>(in..., out, n);
}
"""
TAKE = """template <class T, class L> __global__ void take(const T* in, const L* at, T* out, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[%s] = __fadd_rn(in[at[i]], 1) + *const_cast<float*>(in);
}
template <class T, class L> void go(T* a, L* at, T* b, int n) { take<<<(n + 255) / 256, 256>>>(a, at, b, n); }
"""
COUNT = """static __device__ unsigned counted(const unsigned* at, unsigned n) { return at[n - 1]; }
template <class IndexT> __global__ void count(const IndexT* at, IndexT* out, unsigned n) {
  unsigned i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[%s] = counted(at, i + 1);
}
template <class I> void go(I* at, I* out, unsigned n) { count<<<(n + 255) / 256, 256>>>(at, out, n); }
"""
LANES = """template <int Pieces> __global__ void rows(float* out, int n) {
  static_assert(Pieces % 32 == 0, "whole warps");
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[%s] = Pieces;
}
template <int N> void go(float* out, int n) { rows<N><<<(n + 255) / 256, 256>>>(out, n); }
"""


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (APPLY, "each<Abs, float>"),
        (SUM, "add<float, float>"),
        (TAKE, "take<float, int>"),
        (COUNT, "count<unsigned int>"),
        (LANES, "rows<32>"),
    ],
)
def test_later_guesses_are_of_other_kinds(text: str, name: str, place: str, verdict: Verdict) -> None:
    (kernel,) = check_text(Path("k.cu"), text.replace("%s", place)).kernels
    assert (kernel.name, kernel.verdict) == (name, verdict)


@pytest.mark.parametrize(("place", "verdict"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_overloads_whose_result_is_chosen_are_told_apart(place: str, verdict: Verdict) -> None:
    text = f"""
template <bool B> struct If {{}};
template <> struct If<true> {{ typedef void type; }};
template <typename T, bool Wide>
__global__ typename If<(sizeof(T) < 8)>::type set(T* out, int n) {{ if (threadIdx.x == 0) out[0] = n; }}
template <typename T, bool Wide>
__global__ typename If<(sizeof(T) == 8 || Wide)>::type set(T* out, const T* in, int n) {{
  int i = threadIdx.x;
  if (i < n) out[{place}] = in[i] + i;
}}
template <class T> void go(T* a, T* b, int n) {{ set<T, true><<<1, 256>>>(a, b, n); }}
"""
    _, kernel = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is verdict


@pytest.mark.parametrize(("barrier", "verdict"), [("__syncthreads();", "race-free"), ("", "racy")])
def test_parameters_that_have_defaults_are_what_these_say(barrier: str, verdict: str) -> None:
    text = """
template <class T, int TILE = 128, class Out = unsigned short, class By = T>
__global__ void k(const T* in, int n, Out* out, By by) {
  __shared__ T s[TILE];
  int i = blockIdx.x * TILE + threadIdx.x;
  s[threadIdx.x] = i < n ? in[i] * by : 0;
  BARRIER
  if (i < n) out[i] = s[threadIdx.x] - (threadIdx.x ? s[threadIdx.x - 1] : 0);
}
template <class T> void run(const T* in, int n, unsigned short* out, T by) {
  k<T><<<(n + 127) / 128, 128>>>(in, n, out, by);
}"""
    text = text.replace("BARRIER", barrier)
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert (kernel.name, kernel.verdict.value) == ("k<float, 128, unsigned short, float>", verdict)
