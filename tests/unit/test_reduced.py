"""Equations put into the rest of a question: fewer numbers, the same answer."""

from __future__ import annotations

import itertools

import pytest
from extract_kernels import lowered
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.reduced import components, concerning, reduced
from cuda_lsp.static.symbolic.terms import Level, Term

X = t.symbol("x#1", Level.THREAD, 0, 3)
Y = t.symbol("x#2", Level.THREAD, 0, 3)
B = t.symbol("b#1", Level.BLOCK, 0, 2)
C = t.symbol("b#2", Level.BLOCK, -1, 2)
N = t.symbol("n", Level.GRID, 1, 4)
SYMBOLS = (X, Y, B, C, N)
EVERY = list(itertools.product(*(range(int(s.lo), int(s.hi) + 1) for s in SYMBOLS)))


@st.composite
def numbers(draw, depth=2) -> Term:
    kind = draw(
        st.sampled_from(["symbol", "symbol", "const", "sum", "sum", "times", "div", "rem", "product"])
    )
    if kind == "const":
        return t.const(draw(st.integers(-3, 9)))
    if depth == 0 or kind == "symbol":
        return draw(st.sampled_from(SYMBOLS))
    a, c = draw(numbers(depth=depth - 1)), t.const(draw(st.integers(1, 5)))
    if kind in ("sum", "product"):
        b = draw(numbers(depth=depth - 1))
        return t.add(a, b) if kind == "sum" else t.mul(a, b)
    by = draw(st.sampled_from([c, N]))
    return {"times": t.mul(a, c), "div": t.divide(a, by), "rem": t.remainder(a, by)}[kind]


@st.composite
def conditions(draw, depth=1) -> Term:
    a, b = draw(numbers()), draw(numbers())
    kind = draw(st.sampled_from(["eq", "eq", "eq", "le", "not", "or"]))
    if kind == "or" and depth:
        return t.or_(draw(conditions(depth=0)), draw(conditions(depth=0)))
    if kind == "eq":  # of digits, more or less
        return t.eq(
            t.add(a, t.scale(draw(numbers(depth=1)), 4)), t.add(b, t.scale(draw(numbers(depth=1)), 4))
        )
    return t.not_(t.eq(a, b)) if kind == "not" else t.le(a, b)


def fulfilled(condition: Term, values: tuple[int, ...]) -> bool:
    return t.substitute(condition, {s: t.const(v) for s, v in zip(SYMBOLS, values, strict=True)}) is t.TRUE


@examples(60)
@given(st.lists(conditions(), min_size=1, max_size=4))
def test_what_is_left_holds_where_all_of_it_did_and_somewhere_only_if_that_does(parts: list[Term]) -> None:
    whole = t.and_(*parts)
    less = reduced(whole)
    models = [values for values in EVERY if fulfilled(whole, values)]
    assert all(fulfilled(less, values) for values in models)
    assert bool(models) is any(fulfilled(less, values) for values in EVERY)


@examples(60)
@given(st.lists(conditions(), min_size=1, max_size=4))
def test_the_whole_is_impossible_exactly_where_a_component_is(parts: list[Term]) -> None:
    whole = t.and_(*parts)
    found = components(whole)
    assert t.and_(*found) is whole
    possible = [any(fulfilled(part, values) for values in EVERY) for part in found]
    assert all(possible) is any(fulfilled(whole, values) for values in EVERY)


def test_one_equation_of_two_digits_is_two() -> None:
    same = t.eq(t.add(X, t.scale(B, 4)), t.add(Y, t.scale(C, 4)))
    assert reduced(t.and_(same, t.not_(t.eq(B, C)))) is t.FALSE
    assert reduced(t.and_(same, t.not_(t.eq(X, Y)))) is t.FALSE


def test_digits_that_reach_into_each_other_stay_together() -> None:
    same = t.eq(t.add(X, t.scale(B, 3)), t.add(Y, t.scale(C, 3)))
    assert reduced(t.and_(same, t.not_(t.eq(B, C)))) is not t.FALSE


def test_numbers_of_equal_quotients_and_remainders_are_one() -> None:
    i, j = t.add(X, t.scale(B, 4)), t.add(Y, t.scale(C, 4))
    alike = t.eq(t.divide(i, N), t.divide(j, N)), t.eq(t.remainder(i, N), t.remainder(j, N))
    assert reduced(t.and_(*alike, t.not_(t.eq(X, Y)))) is t.FALSE
    assert reduced(t.and_(alike[0], t.not_(t.eq(X, Y)))) is not t.FALSE


def test_only_what_has_a_number_in_common_concerns_a_condition() -> None:
    about, other = t.le(X, B), t.not_(t.eq(t.remainder(N, t.const(2)), t.ZERO))
    assert concerning(t.and_(about, other), t.le(B, t.ONE)) is about


# -------------------------------------------------------------------------------------- kernels

LAUNCH = LaunchConfig((128, 1, 1), (64, 1, 1), source=LaunchSource.FILE)
OPTIONS = """
__global__ void k(float* out, const float* in, unsigned first, unsigned step, unsigned n, unsigned how,
                  unsigned also) {{
    if (how & 2) {{
        if (also & 2)
            for (unsigned i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                out[{index}] = in[i] / 3;
    }} else {{
        if (also & 2)
            for (unsigned i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                out[{index}] = in[i] / 5;
        else
            for (unsigned i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                out[{index}] = in[i] + 1;
    }}
}}
"""
ROWS = """
__global__ void k(float* out, unsigned row0, unsigned col0, unsigned down, unsigned right, unsigned pitch,
                  unsigned rows, unsigned columns, unsigned how) {{
    if (how & 2) {{
        for (unsigned y = blockIdx.x; y < rows; y += gridDim.x)
            for (unsigned x = threadIdx.x; x < columns; x += blockDim.x)
                out[{index}] = 1;
    }} else {{
        for (unsigned y = blockIdx.x; y < rows; y += gridDim.x)
            for (unsigned x = threadIdx.x; x < columns; x += blockDim.x)
                out[{index}] = x;
    }}
}}
"""


def decided(source: str, index: str) -> SolverResult:
    return refine_kernel(lowered(source.format(index=index)), [LAUNCH], GpuModel("test", (9, 0)))


def test_options_of_which_no_address_hangs_keep_nothing_open() -> None:
    result = decided(OPTIONS, "first + step * i")
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert "rows of `step` elements do not overlap" in result.assumptions


def test_options_beside_rows_in_rows_keep_nothing_open() -> None:
    result = decided(ROWS, "(row0 + down * y) * pitch + col0 + right * x")
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "index", ["first + step * (i / 2)", "first + step * (i % 127)", "first + step * threadIdx.x"]
)
def test_threads_that_share_an_element_are_not_told_apart_by_options(index: str) -> None:
    assert decided(OPTIONS, index).verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "index",
    [
        "(row0 + down * y) * pitch + col0 + right * (x / 2)",
        "(row0 + down * (y / 2)) * pitch + col0 + right * x",
        "(row0 + down) * pitch + col0 + right * x",
    ],
)
def test_rows_that_two_blocks_or_threads_share_are_not_told_apart_by_options(index: str) -> None:
    assert decided(ROWS, index).verdict is not Verdict.RACE_FREE
