"""Loops of few rounds that walk arrays of the thread's own are what they say in each round."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

VIEW = """
template <class T> struct View {
  T* data;
  int strides[2];
  __device__ int stride(int d) const { return strides[d]; }
  template <class... A> __device__ T& at(A... c) const {
    constexpr int n = sizeof...(A);
    constexpr int fixed[] = {0, 0, 1};
    int index[] = {static_cast<int>(c)...};
    int offset = 0;
    HEADER offset += index[i] * STRIDE;
    for (int i = 2; i < n; i += 1) offset += index[i] * fixed[i];
    return data[offset];
  }
};
template <class V> __global__ void shift(V from, V to, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x < columns && y < rows) to.at(z, y, COLUMN) = from.at(z, y, x + 1);
}
void run(View<float> from, View<float> to, int rows, int columns, int n) {
  dim3 block(32, 8), grid((columns + 31) / 32, (rows + 7) / 8, n);
  shift<<<grid, block>>>(from, to, rows, columns);
}
"""


def verdicts(text: str) -> list[Verdict]:
    return [k.verdict for k in check_text(Path("k.cu"), text).kernels]


@pytest.mark.parametrize(
    "header",
    [
        "for (int i = 0; i < 2; ++i)",
        "for (int i = 0; i <= 1; i++)",
        "for (int i = 1; i >= 0; --i)",
        "for (unsigned i = 0; i != 2; i += 1)",
        '_Pragma("unroll") for (int i = 0; i < (n < 2 ? n : 2); ++i)',
    ],
)
@pytest.mark.parametrize("stride", ["strides[i]", "stride(i)"])
@pytest.mark.parametrize(("column", "verdict"), [("x", Verdict.RACE_FREE), ("x / 2", Verdict.RACY)])
def test_rows_of_strides_in_an_array_are_rows(
    header: str, stride: str, column: str, verdict: Verdict
) -> None:
    text = VIEW.replace("HEADER", header).replace("STRIDE", stride).replace("COLUMN", column)
    assert verdicts(text) == [verdict]


@pytest.mark.parametrize(
    ("header", "stride"),
    [
        ("for (int i = 0; i < 1; ++i)", "strides[i]"),  # a row is left out
        ("for (int i = 0; i < 2; i += 2)", "strides[i]"),
        ("for (int i = 0; i < 2; ++i)", "strides[0]"),  # planes and rows alike
        ("for (int i = 0; i < 2; ++i)", "strides[i ^ i]"),
        ("for (int i = 0; i < 2; ++i)", "(i ? 0 : strides[i])"),
        ("for (int i = 0; i < 2; ++i)", "strides[i++]"),  # the body changes the counter
        ("for (int i = 0; i < 2; ++i) if (i == 1) break; else", "strides[i]"),
        ("for (int i = 0; i < 2; ++i) if (i == 1) continue; else", "strides[i]"),
    ],
)
def test_rows_that_a_round_leaves_out_are_not_there(header: str, stride: str) -> None:
    text = VIEW.replace("HEADER", header).replace("STRIDE", stride).replace("COLUMN", "x")
    assert verdicts(text) != [Verdict.RACE_FREE]


@pytest.mark.parametrize(
    "header",
    [
        "static int i = 0; i < 2; ++i",  # begins where the last call ended
        "int i = -1; i < 2u; ++i",  # no round at all
        "unsigned i = 1; i >= 0; --i",  # rounds without end
        "int i = 0; i < 2 && x < 9; ++i",
    ],
)
def test_a_header_that_says_something_else_is_left_alone(header: str) -> None:
    text = PICK.replace("int i = 0; i < ROUNDS; ++i", header).replace(
        "int at = 0", "int at = 0, x = threadIdx.x"
    )
    assert verdicts(text.replace("BODY", "at += i < 0 ? 1 : own[i & 3];")) != [Verdict.RACE_FREE]


def test_a_counter_that_something_else_may_change_is_none() -> None:
    bump = "__device__ int next(int& i) { return i++; }\n"
    text = VIEW.replace("HEADER", "for (int i = 0; i < 2; ++i)").replace("STRIDE", "strides[next(i)]")
    assert verdicts(bump + text.replace("COLUMN", "x")) != [Verdict.RACE_FREE]


PICK = """
__global__ void pick(float* out, int rounds) {
  int own[4] = {1, 2, 3, 4};
  int at = 0;
  for (int i = 0; i < ROUNDS; ++i) BODY
  out[threadIdx.x * at] = threadIdx.x;
}
void run(float* out, int rounds) { pick<<<1, 64>>>(out, rounds); }
"""


@pytest.mark.parametrize(
    ("rounds", "body", "verdict"),
    [
        ("4", "at += own[i];", Verdict.RACE_FREE),
        ("4", "{ if (i == 2) break; at += own[i]; }", Verdict.RACE_FREE),
        ("4", "{ if (own[i] < 4) continue; at += own[i]; }", Verdict.RACE_FREE),
        ("4", "{ if (i < 4) continue; at += own[i]; }", Verdict.RACY),
        ("2", "at += i ? -own[0] : own[i];", Verdict.RACY),
        ("0", "at += own[i];", Verdict.RACY),
    ],
)
def test_what_the_rounds_sum_up_is_known(rounds: str, body: str, verdict: Verdict) -> None:
    assert verdicts(PICK.replace("ROUNDS", rounds).replace("BODY", body)) == [verdict]


def test_rounds_that_a_parameter_counts_are_not_written_out() -> None:
    text = PICK.replace("ROUNDS", "rounds").replace("BODY", "at += own[i];")
    assert verdicts(text) != [Verdict.RACE_FREE]
