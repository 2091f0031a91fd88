"""Parameters of templates that no number can be: classes of the project stand for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

HEAD = """
template <class T> struct Scaled { T by; __device__ T operator()(T x) const { return x * by; } };
template <class T> struct Summed { __device__ T operator()(T x, T y) const { return x + y; } };
template <class T> struct Most { static __device__ T of(T a, T b) { return a < b ? b : a; } };
template <class T> struct Least;
template <> struct Least<float> { static __device__ float of(float a, float b) { return a < b ? a : b; } };
struct Wide { static constexpr int kStep = 2; enum { kShift = 1 }; };
template <class T> struct Rows { T* data; __device__ void put(int i, T v) const { data[i] = v; } };
template <class T> struct Pairs { T* data; __device__ void set(int i, T v) const { data[i / 2] = v; } };
struct Host { int size() const; };
"""


def checked(kernel: str, head: str = HEAD) -> FileReport:
    return check_text(Path("k.cu"), head + kernel)


def body(statement: str, parameters: str, template: str) -> str:
    return f"""
template <{template}> __global__ void k({parameters}, const T* in, T* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ {statement} }}
}}
"""


@pytest.mark.parametrize(
    ("statement", "parameters", "template", "name"),
    [
        ("out[PLACE] = f(in[i]);", "F f", "class T, class F", "k<float, Scaled<float>>"),
        ("out[PLACE] = f(in[i], in[0]);", "const F f", "class T, class F", "k<float, Summed<float>>"),
        ("out[PLACE] = F()(in[i], in[0]);", "T x", "class T, class F", "k<float, Summed<float>>"),
        (
            "out[PLACE] = F<T>::of(in[i], in[0]);",
            "T x",
            "template <class> class F, class T",
            "k<Most, float>",
        ),
        ("out[PLACE] = in[i * F::kStep >> F::kShift];", "T x", "class F, class T", "k<Wide, float>"),
        ("out[PLACE] = all.by * in[i];", "S all", "class T, class S", "k<float, Scaled<float>>"),
    ],
)
def test_what_fits_the_use_of_a_parameter_stands_for_it(
    statement: str, parameters: str, template: str, name: str
) -> None:
    for place, wanted in (("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)):
        report = checked(body(statement.replace("PLACE", place), parameters, template))
        assert [(k.name, k.verdict) for k in report.kernels] == [(name, wanted)]


PASSED = """
template <class T, template <class> class O> struct Apply {
  static __device__ void run(T* out, const T* in, int i) { out[PLACE] = O<T>::of(in[i], in[0]); }
};
template <class T, template <class> class O> __global__ void k(T* out, const T* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) Apply<T, O>::run(out, in, i);
}
template <class F, class T> __device__ void put(F f, T* out, const T* in, int i) { out[PLACE] = f(in[i]); }
template <class T, class G> __global__ void g(G made, T* out, const T* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) put(made, out, in, i);
}
"""


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_what_other_templates_do_with_it_counts(place: str, wanted: Verdict) -> None:
    report = checked(PASSED.replace("PLACE", place))
    named = {k.name: k.verdict for k in report.kernels}
    assert named == {"k<float, Most>": wanted, "g<float, Scaled<float>>": wanted}


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        ("out[i] = f(in[i], in[i], in[i]);", "F f"),  # none takes three
        ("out[i] = f.missing * in[i];", "F f"),
        ("out[i] = in[F::kNowhere];", "F f"),
        ("out[i] = f.size() + in[i];", "F f"),  # of the host alone
    ],
)
def test_where_nothing_fits_nothing_is_said(statement: str, parameters: str) -> None:
    (kernel,) = checked(body(statement, parameters, "class T, class F")).kernels
    assert kernel.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("call", "named", "wanted"),
    [
        ("to.put(i, in[i]);", "", Verdict.UNDECIDED),
        ("to.put(i, in[i]);", "// as in Rows<T>\nvoid go(Rows<float>);", Verdict.RACE_FREE),
        ("to.set(i, in[i]);", "void go(Pairs<float>);", Verdict.RACY),
        ("to.set(i, in[i]);", "", Verdict.UNDECIDED),
    ],
)
def test_a_class_that_writes_counts_where_the_file_names_it(
    tmp_path: Path, call: str, named: str, wanted: Verdict
) -> None:
    (tmp_path / "classes.h").write_text(HEAD)
    path = tmp_path / "k.cu"
    text = f'#include "classes.h"\n{named}\n' + body(call, "S to", "class T, class S")
    path.write_text(text)
    (kernel,) = check_text(path, text).kernels
    assert kernel.verdict is wanted


CALLED = """
template <class K> __device__ int slot(K key, int n) { return SLOT; }
template <class K> __global__ void k(const K* keys, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[PLACE] = slot(keys[i], n);
}
"""


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_a_guess_counts_as_wrong_where_a_called_function_does_not_compile(
    place: str, wanted: Verdict
) -> None:
    report = checked(CALLED.replace("SLOT", "(key % n) & 3").replace("PLACE", place))
    assert [(k.name, k.verdict) for k in report.kernels] == [("k<int>", wanted)]


def test_what_no_argument_mends_stays_undecided() -> None:
    report = checked(CALLED.replace("SLOT", "unheard_of(key)").replace("PLACE", "i"))
    assert [(k.name, k.verdict) for k in report.kernels] == [("k<float>", Verdict.UNDECIDED)]


ACTING = """
struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
struct Nothing { __device__ void operator()(int a, int b) const {} };
struct Mark { int* at; __device__ void operator()(int a, int b) const { at[PLACE] = b; } };
"""


@pytest.mark.parametrize("call", ["f(blockIdx.x, j);", "if (j % 2) f(blockIdx.x, j);", "{ f(0, j); }"])
def test_what_is_called_for_what_it_does_is_nothing_that_only_computes(call: str) -> None:
    kernel = f"""
template <class F> __global__ void k(const int* first, F f) {{
  for (int j = first[blockIdx.x] + threadIdx.x; j < first[blockIdx.x + 1]; j += 32) {call}
}}"""
    (found,) = checked(kernel, ACTING.partition("struct Mark")[0]).kernels
    assert found.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(("place", "verdict"), [("b", Verdict.RACE_FREE), ("b / 2", Verdict.RACY)])
def test_what_writes_may_be_called_for_it(place: str, verdict: Verdict) -> None:
    kernel = """
template <class F> __global__ void k(F f) { int i = blockIdx.x * blockDim.x + threadIdx.x; f(0, i); }"""
    (found,) = checked(kernel, ACTING.replace("PLACE", place)).kernels
    assert (found.name, found.verdict) == ("k<Mark>", verdict)
