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
