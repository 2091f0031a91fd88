"""What C++ leaves undefined is not known: nothing is proved by it, nobody is accused of it."""

from __future__ import annotations

import pytest
from extract_kernels import lowered
from test_schedules import GPU, final_values

from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Trace

LAUNCH = LaunchConfig((64, 1, 1), (1, 1, 1))


def executed(body: str, **arguments: int) -> Trace:
    text = f"__global__ void k(int* out, int n) {{ int t = threadIdx.x; {body} }}"
    trace = execute(lowered(text), LAUNCH, arguments, GPU)
    assert not race_findings(trace)
    return trace


@pytest.mark.parametrize(
    "body",
    [
        "out[64 * (t / n) + t] = t;",
        "out[64 * (t % n) + t] = t;",
        "out[64 * (100 / t) + t] = t;",
        "out[64 * (100 >> (t + 1)) + t] = t;",
        "if (n == 0 || 5 / n > 0 && 3 % n) out[64 * (1 << (n - 1)) + t] = t;",
        "int q = n ? 5 / n : 6 / n; out[64 * q + t] = t;",
    ],
)
def test_an_undefined_result_is_not_known(body: str) -> None:
    assert executed(body, n=0).undecided


@pytest.mark.parametrize(
    "body",
    [
        "if (t > 0) out[64 * (100 / t) + t] = t;",
        "int q = t ? 100 / t : 7; out[64 * q + t] = t;",
        "if (t != 0 && 100 / t > 5) out[t] = t;",
        "if (t == 0 || 100 % t == 0) out[t] = t;",
        "if (n) out[64 * (t / n) + t] = t;",
        "out[64 * (n ? t / n : 3) + t] = t;",
        "if (t < 31) out[64 * (1 << t) + t] = t;",
    ],
)
def test_where_nobody_computes_it_the_rest_is_known(body: str) -> None:
    assert not executed(body, n=0).undecided


def test_what_some_lanes_may_not_compute_is_asked_again_for_all() -> None:
    """One expression under a guard and without it."""
    body = "for (int r = 0; r < 2; ++r) if (t > 0 || r) out[64 * (100 / t) + t] = r;"
    assert executed(body).undecided


def test_a_schedule_does_not_know_it_either() -> None:
    text = """
__global__ void k(int* out) {
  int t = threadIdx.x;
  int v = t % 2 ? 7 / (t / 2) : 1;
  out[t] = v;
  if (t != 1 && out[t] < 0) out[0] = 0;
}"""
    assert final_values(text, "out", 4) == [1, None, 1, 7]
