"""Places that floating-point data say: many numbers are one integer, unless coordinates have part in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Status, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <cuda_runtime.h>
__global__ void cells(float* out, int* count, const float* x, const float2* p, int n, int w) {
    int i = blockIdx.x * 128 + threadIdx.x;
    GUARD
    STATEMENT
}
void launch(float* out, int* count, const float* x, const float2* p, int n) {
    cells<<<GRID, 128>>>(out, count, x, p, n, 640);
}
"""


def checked(statement: str, guard: str = "if (i >= n) return;", grid: str = "(n + 127) / 128"):
    text = KERNEL.replace("GUARD", guard).replace("STATEMENT", statement).replace("GRID", grid)
    (kernel,) = check_text(Path("cells.cu"), text, Settings()).kernels
    return kernel


@pytest.mark.parametrize(
    "statement",
    [
        "count[(int)(x[i] * 2.f)]++;",
        "int c = min(max((int)floorf(x[i]), 0), n - 1); out[c] += 1.f;",
        "float2 q = p[i]; out[(int)q.y * w + (int)q.x] = i;",
        "int c = __float2int_rd(p[i].x); if (c < 0 || c >= w) return; count[c] = i;",
        "int c = (int)x[i]; if (x[i] < out[c]) out[c] = x[i];",
    ],
)
def test_two_threads_meet_where_their_numbers_are_one_integer(statement: str) -> None:
    races = [f for f in checked(statement).findings if f.status is Status.CONDITIONAL]
    assert any(f.code.value == "global-race" for f in races)


def test_a_grid_that_an_argument_tells_is_run() -> None:
    assert checked("count[(int)x[i]] = i;", "", "n").verdict is Verdict.RACY


@pytest.mark.parametrize(
    "statement",
    [
        "out[(int)(i * 1.f)] = 1.f;",
        "out[(int)(x[i] + i)] = 1.f;",
        "int c = min(max((int)x[i], 0), 7); count[i * 8 + c]++;",
        "atomicAdd(&count[(int)x[i]], 1);",
        "out[i] = x[(int)x[i]];",
    ],
)
def test_coordinates_atomics_and_reads_accuse_nobody(statement: str) -> None:
    assert checked(statement).verdict is not Verdict.RACY


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("count[(int)(x[i] * 2.f)] = i;", "two elements of `x` give the same integer"),
        ("if (p[i].x > 0) count[(int)x[i]] = i;", "two elements of `x` give the same integer"),
        ("count[(int)x[i] * w + (int)p[i].x] = i;", "elements of `x` and `p` give the same integers"),
    ],
)
def test_what_their_numbers_have_to_be_like_is_told(statement: str, condition: str) -> None:
    (race,) = (f for f in checked(statement).findings if f.status is Status.CONDITIONAL)
    assert race.condition is not None and race.condition.startswith(condition)
    assert "certain values" not in race.message
