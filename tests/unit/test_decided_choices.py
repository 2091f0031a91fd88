"""Comparisons of choices that a branch decides: ``if (i >= n || done[row]) return;`` says ``i < n``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from extract_kernels import lowered
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples
from test_choices import COLUMNS, EVERY, SYMBOLS, conditions

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.tabulate import tabulated
from cuda_lsp.static.symbolic.terms import Term

A, B, C = (t.eq(x, t.ZERO) for x in SYMBOLS)
X = SYMBOLS[1]
Column = np.ndarray


def test_what_decides_a_comparison_is_a_condition_by_itself() -> None:
    either = t.ite(A, t.ONE, t.ite(B, t.ONE, t.ZERO))
    assert t.eq(either, t.ZERO) is t.and_(t.not_(A), t.not_(B))
    or_more = t.ite(t.eq(either, t.ZERO), X, either)
    assert t.eq(or_more, t.ZERO) is t.and_(t.not_(A), t.not_(B), t.eq(X, t.ZERO))
    assert t.eq(t.ite(C, t.const(4), X), t.const(5)) is t.and_(t.not_(C), t.eq(X, t.const(5)))
    assert t.le(t.ite(C, t.const(4), X), t.const(5)) is t.or_(C, t.le(X, t.const(5)))


def test_a_choice_within_a_choice_by_the_same_condition_is_made() -> None:
    assert t.ite(A, t.ite(A, X, t.ONE), t.ZERO) is t.ite(A, X, t.ZERO)
    assert t.ite(A, t.ZERO, t.ite(t.not_(A), X, t.ONE)) is t.ite(A, t.ZERO, X)


@st.composite
def choices(draw: st.DrawFn, depth: int = 3) -> tuple[Term, Column]:
    """A choice, and what it comes to for all values of the symbols."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf = draw(st.sampled_from((X, t.ZERO, t.ONE, t.const(3))))
        return leaf, COLUMNS[leaf] if leaf is X else np.full(len(EVERY), leaf.value)
    (then, mine), (otherwise, theirs) = draw(choices(depth - 1)), draw(choices(depth - 1))
    condition = draw(
        st.one_of(
            st.sampled_from((A, B, C, t.not_(A))), conditions(1), choices(0).map(lambda x: t.truth(x[0]))
        )
    )
    holds = tabulated(condition, COLUMNS)
    assert holds is not None
    return t.ite(condition, then, otherwise), np.where(holds, mine, theirs)


@given(choices(), st.integers(-1, 4), st.sampled_from((1, -1, 2)), st.sampled_from(("==", "<=")))
@examples(300)
def test_a_comparison_of_a_choice_holds_where_it_does(
    choice: tuple[Term, Column], number: int, factor: int, sign: str
) -> None:
    term, values = choice
    compare: dict[str, Callable[[Term, Term], Term]] = {"==": t.eq, "<=": t.le}
    condition = compare[sign](t.scale(term, factor), t.const(number))
    expected = values * factor == number if sign == "==" else values * factor <= number
    for said, where in ((condition, expected), (t.not_(condition), ~expected)):
        holds = tabulated(said, COLUMNS)
        assert holds is not None
        assert (np.broadcast_to(holds, len(EVERY)) == where).all()


KERNEL = """
__global__ void k(int* a, const bool* done, int rows, int width, int limit) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if ({leaves}) return;
    a[row * width + x] = x;
}}
"""


def decided(leaves: str) -> SolverResult:
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(KERNEL.format(leaves=leaves)), [launch], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    "leaves",
    [
        "row >= rows || x >= width || done[row]",
        "x >= width || done[row] || row >= rows",
        "row >= rows || x >= min(width, limit) || done[row]",
        "x >= (limit < width ? limit : width)",
    ],
)
def test_guards_beside_data_keep_columns_in_their_rows(leaves: str) -> None:
    result = decided(leaves)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.assumptions == ()


@pytest.mark.parametrize(
    "leaves",
    [
        "row >= rows || x > width || done[row]",
        "row >= rows || x > min(width, limit) || done[row]",
        "row >= rows || x >= min(width + 1, limit) || done[row]",
        "row >= rows || x >= max(width, limit) || done[row]",
        "x >= (limit > width ? limit : width)",
    ],
)
def test_guards_that_let_columns_leave_their_rows_do_not(leaves: str) -> None:
    assert decided(leaves).verdict is not Verdict.RACE_FREE
