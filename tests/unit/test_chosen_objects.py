"""``c ? a : b`` as an object: what is written there is written to one of two variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
struct Two { int a, b; };
__device__ bool less(const int& a, const int& b) { return a < b; }
__device__ void set(int& to, int v) { to = v; }
__global__ void k(int* out, const int* in, int n, float w) {
  int t = threadIdx.x, first = t, second = 0;
  if (t >= 64) return;
  BODY
}
void f(int* o, const int* i, int n) { k<<<1, 64>>>(o, i, n, 1.0f); }
"""


def verdict(body: str) -> Verdict:
    (kernel,) = check_text(Path("/x/a.cu"), KERNEL.replace("BODY", body)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "if (less(n > 3 ? first : second, n > 3 ? second : first)) out[t] = first;",
        "set(n > 3 ? first : second, t); out[first] = 1;",
        "int* p = &(n > 3 ? first : second); *p = t; out[first] = 1;",
        "float x = in[t], y = w; (n > 3 ? x : y) += 1; out[t] = x + y;",
    ],
)
def test_the_chosen_variable_is_the_one_that_is_written(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "(t > 3 ? first : second) = 5; out[first] = t;",  # many store to out[5]
        "set(t > 3 ? first : second, 5); out[first] = t;",
        "int* p = &(t > 3 ? first : second); *p = 5; out[first] = t;",
        "Two v{t, 0}; (t > 3 ? v.a : v.b) = 5; out[v.a] = t;",
        "(t > 3 ? second : first) = 5; out[first] = t;",
        "first = 0; int* p = n > 3 ? &first : &second; *p = t; out[first] = t;",  # out[0], or out[t]
        "int* p = n > 3 ? &first : &second; out[*p] = t;",
        "int* p = in[0] ? &first : &second; out[*p] = t;",
    ],
)
def test_what_threads_choose_alike_is_one_place(body: str) -> None:
    assert verdict(body) is Verdict.RACY


@pytest.mark.parametrize(
    "body", ["(n > 3 ? first : second) = 5; out[first] = t;", "(in[t] ? first : second) = 5; out[first] = t;"]
)
def test_nobody_calls_free_what_the_choice_decides(body: str) -> None:
    assert verdict(body) is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "(n > 3 ? first : second) += 64; out[first] = second;",  # 64 threads on, or none
        "Two v{t, 0}; (n > 3 ? v.a : v.b) = t; out[v.a] = 1;",
        "int* p = n > 3 ? &first : &second; *p += 64; out[first] = 1;",
    ],
)
def test_nobody_is_accused_of_what_either_choice_keeps_apart(body: str) -> None:
    assert verdict(body) is not Verdict.RACY
