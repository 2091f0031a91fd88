"""A name of the host stands for one type: a launch that passes two ``T*`` is of no kernel for two types."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.passed_types import may_be_together
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
template <typename T, typename S>
__global__ void add(T* out, const S* in, const float* scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (T)(sizeof(S) == sizeof(T) ? in[i] : in[i] * scale[0]);
}
template <typename T>
void launch(T* out, const T* in, const float* scale, int n) {
  const bool scaled = scale != nullptr;
  if (scaled) add<T><<<(n + 255) / 256, 256>>>(out, reinterpret_cast<const int*>(in), scale, n);
  else add<T><<<(n + 255) / 256, 256>>>(out, in, nullptr, n);
}
"""
MACRO = """
#define INSTANTIATE(T) template void launch(T* out, const T* in, const float* scale, int n)
INSTANTIATE(short);
"""
LISTED = "template void launch<short>(short*, const short*, const float*, int);"


def verdicts(passed: str, instances: str) -> dict[str, Verdict]:
    more = "" if passed == "nullptr" else "const float* scale, "
    in_place = f"""template <typename T>
    void in_place(T* out, {more}int n) {{ launch(out, out, {passed}, n); }}
    template void in_place(short*, {more}int);"""
    return {k.name: k.verdict for k in check_text(Path("k.cu"), KERNEL + in_place + instances).kernels}


@pytest.mark.parametrize("instances", [MACRO, LISTED])
def test_who_passes_one_buffer_of_one_type_is_not_at_the_launch_for_two(instances: str) -> None:
    found = verdicts("nullptr", instances)
    assert found["add<short, int>"] is Verdict.RACE_FREE
    assert set(found.values()) == {Verdict.RACE_FREE}


@pytest.mark.parametrize("instances", [MACRO, LISTED])
def test_who_passes_one_buffer_to_be_read_as_two_types_is(instances: str) -> None:
    assert verdicts("scale", instances)["add<short, int>"] is Verdict.RACY


@pytest.mark.parametrize(
    ("pairs", "fits"),
    [
        ([("T*", "short *"), ("const T*", "const int *")], False),
        ([("T*", "short *"), ("const T*", "const short *")], True),
        ([("T*", "short *"), ("const U*", "const int *")], True),
        ([("T*", "short *"), ("T**", "int **")], False),
        ([("T*", "short *"), ("T**", "short **")], True),
        ([("auto*", "short *"), ("auto*", "int *")], True),  # each is a type of its own
        ([("A::type*", "short *"), ("B::type*", "int *")], True),
        ([("T*", "short *"), ("T*", "void *")], True),
        ([("T*", "short *"), ("T", "int")], True),  # numbers are converted
    ],
)
def test_a_name_stands_for_one_type(pairs: list[tuple[str, str]], fits: bool) -> None:
    assert may_be_together(pairs) is fits


def test_names_of_callers_are_no_names_of_the_function() -> None:
    """``T`` is the type of ``in`` for the caller, and for the function that of ``out``."""
    text = """
    template <typename A, typename B> __global__ void copy(A* out, const B* in, int n) {
      int i = threadIdx.x;
      if (i < n) out[i] = (A)in[i + 1];
    }
    template <typename U, typename T> void both(T* out, U* in, int n) {
      copy<T, U><<<1, 32>>>(out, in, n);
    }
    template <typename T> void outer(T* in, int n) { both<T>((short*)in, in, n); }
    template void outer(int*, int);
    """
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is Verdict.RACY
