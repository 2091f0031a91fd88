"""Differences that are multiples of a factor and a rest that reaches no other multiple: nobody is asked."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from extract_kernels import lowered
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import _below_multiples  # pyright: ignore[reportPrivateUsage]
from cuda_lsp.static.symbolic.tabulate import tabulated
from cuda_lsp.static.symbolic.terms import Level

SYMBOLS = (
    t.symbol("x#1", Level.THREAD, 0, 5), t.symbol("x#2", Level.THREAD, 0, 5),
    t.symbol("k", Level.BLOCK, -2, 3), t.symbol("m", Level.GRID, 0, 4),
)  # fmt: skip
EVERY = np.array(list(itertools.product(*(range(int(x.lo), int(x.hi) + 1) for x in SYMBOLS))))
COLUMNS = {x: EVERY[:, i] for i, x in enumerate(SYMBOLS)}


@given(st.lists(st.integers(-9, 9), min_size=4, max_size=4), st.integers(-30, 30), st.integers(0, 6))
@examples(300)
def test_what_is_left_is_zero_where_the_difference_is(factors: list[int], constant: int, most: int) -> None:
    difference = t.add(t.const(constant), *map(t.scale, SYMBOLS, factors))
    guards = t.le(t.add(*SYMBOLS[:2]), t.const(most))
    places, there = tabulated(difference, COLUMNS), tabulated(guards, COLUMNS)
    assert places is not None and there is not None
    zero = there & (places == 0)
    for rest in _below_multiples(difference, guards):
        if rest is None:
            assert not zero.any()
            continue
        left = tabulated(rest, COLUMNS)
        assert left is not None and (left[zero] == 0).all()


KERNEL = """
__global__ void k(int* a, int n) {{
    int t = threadIdx.x, b = blockIdx.x;
    {body}
}}
"""


def decided(body: str, block: int = 256) -> SolverResult:
    launch = LaunchConfig((block, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(KERNEL.format(body=body)), [launch], GpuModel("test", (9, 0)), Budget(1.0))


@pytest.mark.parametrize(
    "body",
    [
        "if (t < 95) a[b * 351 + t + 256] = t; a[b * 351 + t] = t;",
        "for (int i = 0; i < n; i++) a[(b * n + i) * 1024 + t] = t;"
        " for (int i = 0; i < n; i++) a[(b * n + i) * 1024 + t + 512] = t;",
        "if (b == 0) { for (int i = 0; i < n; i++) a[i * 1024 + t] = i;"
        " for (int i = 1; i < n - 1; i++) a[i * 1024 + t + 256] += a[i * 1024 + t]; }",
    ],
)
def test_steps_of_a_block_are_its_threads_own(body: str) -> None:
    result = decided(body)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "body",
    [
        "if (t < 96) a[b * 351 + t + 256] = t; a[b * 351 + t] = t;",
        "if (t < 95) a[b * 351 + t + 255] = t; a[b * 351 + t] = t;",
        "if (b == 0) { for (int i = 0; i < n; i++) a[i * 1024 + t] = i;"
        " for (int i = 1; i < n - 1; i++) a[i * 1024 + t + 255] += a[i * 1024 + t]; }",
        "if (b == 0) { for (int i = 0; i < n; i++) a[i * 192 + t] = t + i; }",
    ],
)
def test_steps_that_meet_are_not(body: str) -> None:
    assert decided(body).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize("seed", range(4))
def test_what_meets_in_rounds_of_two_loops_is_never_proved(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(6):
        step, more, apart = choose.choice((6, 8, 12)), choose.choice((1, 2)), choose.randint(0, 12)
        places = [f"{step}*i + {more}*t", f"{step}*i + {more}*t + {apart}"]
        body = "if (b == 0) { " + " ".join(f"for (int i = 0; i < 4; i++) a[{x}] = t;" for x in places) + " }"
        seen: dict[int, int] = {}
        meet = False
        for place, i, thread in itertools.product(places, range(4), range(8)):
            meet = seen.setdefault(eval(place, {}, {"i": i, "t": thread}), thread) != thread or meet
        if decided(body, 8).verdict is Verdict.RACE_FREE:
            assert not meet, places
