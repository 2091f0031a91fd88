"""Planes that cannot meet because one lies above the other, and kernels with many such accesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.symbolic import extremes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level

X, Y = t.symbol("x", Level.THREAD, 0), t.symbol("y", Level.THREAD, 0)
N, M = t.symbol("n", Level.GRID, 0), t.symbol("m", Level.GRID, 0)
ANY = t.symbol("a", Level.GRID)


def plane(k: int, size: t.Term, at: t.Term) -> t.Term:
    return t.add(t.scale(size, k), at)


@pytest.mark.parametrize(
    ("one", "other", "conditions", "never"),
    [
        (plane(1, N, X), Y, [t.lt(Y, N)], True),
        (plane(1, N, X), Y, [t.le(Y, N)], False),  # y may be n
        (plane(1, N, X), plane(3, N, Y), [t.lt(X, N)], True),
        (plane(3, N, X), plane(1, N, Y), [t.lt(X, N)], False),  # it is y that would have to be below n
        (plane(1, ANY, X), plane(3, ANY, Y), [t.lt(X, ANY)], True),  # a is 1 or more
        (plane(1, ANY, X), plane(3, ANY, Y), [], False),
        (plane(1, t.mul(N, M), X), Y, [t.lt(Y, t.mul(N, M))], True),
        (plane(1, t.mul(N, M), X), t.mul(M, Y), [t.lt(Y, N)], False),  # where m is 0 all are one
        (t.add(t.mul(N, M), X, t.ONE), t.mul(M, Y), [t.lt(Y, N)], True),
        (t.add(t.mul(N, ANY), X, t.ONE), t.mul(ANY, Y), [t.lt(Y, N)], False),  # a may be negative
        (plane(2, N, X), t.scale(Y, 3), [t.lt(Y, N)], False),
    ],
)
def test_what_is_replaced_by_the_most_that_it_may_be(
    one: t.Term, other: t.Term, conditions: list[t.Term], never: bool
) -> None:
    assert extremes.never(t.eq(one, other), conditions) is never
    assert extremes.never(t.eq(other, one), conditions) is never


def test_ranges_of_bytes_have_a_distance() -> None:
    meet = t.and_(t.lt(plane(8, N, X), t.add(Y, t.const(8))), t.lt(Y, t.add(plane(8, N, X), t.const(4))))
    assert extremes.never(meet, [t.le(t.add(Y, t.const(8)), t.scale(N, 8))])
    assert not extremes.never(meet, [t.le(t.add(Y, t.const(7)), t.scale(N, 8))])


def of_planes(plane: str, count: int, body: str) -> KernelReport:
    """A kernel that goes through planes as its launch makes them, one statement each."""
    head = f"int i = blockIdx.x * blockDim.x + threadIdx.x; const int plane = {plane};"
    lines = " ".join(body.replace("@", f"{k} * plane + i").replace("#", str(k)) for k in range(count))
    text = f"__global__ void k(float* a, const float* b, int n) {{ {head} {lines} }}\n"
    launch = "void f(float* a, const float* b, int n) { k<<<n / 128, 128>>>(a, b, n); }\n"
    report = check_text(Path("k.cu"), text + launch)
    assert not report.errors, report.errors
    return report.kernels[-1]


GRID = "blockDim.x * gridDim.x"


@pytest.mark.parametrize("count", [4, 120])
def test_planes_as_large_as_the_grid_are_apart(count: int) -> None:
    kernel = of_planes(GRID, count, "a[@] = b[@]; a[@] += b[i];")
    assert kernel.verdict is Verdict.RACE_FREE, kernel.reasons


@pytest.mark.parametrize("plane", [f"{GRID} - 1", "blockDim.x * (gridDim.x - 1)", "gridDim.x"])
def test_smaller_planes_are_not(plane: str) -> None:
    assert of_planes(plane, 4, "a[@] = b[@]; a[@] += b[i];").verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "last", ["a[3 * plane + (i ^ 1)] = 0;", "a[5 * plane - 1 - i] = 0;", "a[2 * plane + i + 1] = 0;"]
)
def test_one_access_among_many_is_not_lost(last: str) -> None:
    kernel = of_planes(GRID, 120, "a[@] = b[@]; " + f"if (# == 119) {{ {last} }}")
    assert kernel.verdict is not Verdict.RACE_FREE
