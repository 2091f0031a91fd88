"""Threads that compute one value again, or copy one element again, store one value: information."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Finding, Severity
from cuda_lsp.static.analyze import check_text

TAIL = """
#include <cuda_fp16.h>
#include <math.h>
__global__ void k(int n, float scale, {type}* x, {type}* out, const unsigned char* mask) {{
  for (int i = n / 4 * 4 + threadIdx.x; i < n; i++) {{ {body} }}
}}
void go(int n, float s, {type}* x, {type}* out, unsigned char* m) {{ k<<<1, 128>>>(n, s, x, out, m); }}
"""


def races(text: str) -> list[Finding]:
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    found = [f for f in report.findings if f.code.value.endswith("race")]
    assert found
    return found


def told(text: str) -> bool:
    """Whether some race is more than information."""
    return any(f.effective_severity < Severity.INFORMATION for f in races(text))


@pytest.mark.parametrize("type", ["__half", "__nv_bfloat16"])
@pytest.mark.parametrize(
    "body",
    [
        "out[i] = (float)x[i];",
        "out[i] = __half((float)x[i] * scale * mask[i]);",
        "float f = x[i]; out[i] = f > 0 ? f : 0.0f;",
        "__half h = x[i]; h *= x[i]; out[i] = h;",
        "__half h = x[i]; float f = h; out[i] = f > 2 ? h : x[i + 1];",
    ],
)
def test_narrow_numbers_are_numbers(body: str, type: str) -> None:
    assert not told(TAIL.format(body=body.replace("__half", type), type=type))


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = __half((float)x[i] * threadIdx.x);",
        "out[i] = __half((float)x[threadIdx.x]);",
        "x[i] = __half((float)x[i] * scale);",  # in place: who comes later scales what was scaled
        "__half h = x[i]; h *= x[threadIdx.x]; out[i] = h;",
        "__half h = 0; for (int j = threadIdx.x; j < i; j++) h += x[j]; out[i] = h;",
    ],
)
def test_what_is_made_of_the_thread_or_of_what_is_written_differs(body: str) -> None:
    assert told(TAIL.format(body=body, type="__half"))


ROUNDS = """
int rounded(int n) {{ int p = 1; while (p < n) p *= 2; return p; }}
__global__ void k(float* out, const float* x, int step, int size, int rows, int out_rows) {{
  int at = threadIdx.x, to, from, round = 0;
  while (at < size) {{
    to = blockIdx.x * out_rows + at;
    from = blockIdx.x * rows + at;
    {body}
    at += step;
    round++;
  }}
}}
void go(float* out, const float* x, int step, int size, int rows, int out_rows) {{
  int block = rounded(step);
  k<<<64, block>>>(out, x, step, size, rows, out_rows);
}}
"""


def test_copies_in_different_rounds_are_of_one_value() -> None:
    assert not told(ROUNDS.format(body="out[to] = x[from];"))


@pytest.mark.parametrize(
    "body",
    [
        "out[to] = x[from] + round;",
        "out[to] = x[from] * threadIdx.x;",
        "out[to] = out[from + 1];",
        "out[to] = x[from + round];",
    ],
)
def test_copies_of_what_the_round_or_the_thread_chooses_are_not(body: str) -> None:
    assert told(ROUNDS.format(body=body))


PAIRS = """
__global__ void k(float* out, const float* x, int n) {{
  int at, last;
  for (at = threadIdx.x; at < n; at += 100) {{ last = at; out[{row} * n + last] = x[blockIdx.x * n + last]; }}
}}
void go(float* out, const float* x, int n) {{ k<<<64, 128>>>(out, x, n); }}
"""


def test_blocks_that_meet_where_threads_repeat_a_copy_differ() -> None:
    assert not told(PAIRS.format(row="blockIdx.x"))
    assert told(PAIRS.format(row="blockIdx.x / 2"))


ROWS = """
#include <math.h>
__global__ void k(float* out, const float* in, int n) {{
  __shared__ float s[8];
  int t = threadIdx.y * 32 + threadIdx.x;
  if (threadIdx.y < n) {{ if (threadIdx.x == 0) s[threadIdx.y] = in[t]; }}
  else s[threadIdx.y] = {value};
  __syncthreads();
  if (t < 8) out[t] = s[t];
}}
void go(float* out, const float* in, int n) {{ k<<<1, dim3(32, 8)>>>(out, in, n); }}
"""


@pytest.mark.parametrize("value", ["INFINITY", "-INFINITY", "(float)HUGE_VAL", 'nanf("")', "0"])
def test_a_number_of_the_text_is_one_for_all_threads(value: str) -> None:
    assert not told(ROWS.format(value=value))


@pytest.mark.parametrize("value", ["INFINITY * threadIdx.x", "fminf(in[t], INFINITY)"])
def test_what_is_made_of_it_by_each_thread_is_not(value: str) -> None:
    assert told(ROWS.format(value=value))
