"""Remainders that are written out: the same numbers, and the same terms as those that are not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.tabulate import tabulated
from cuda_lsp.static.symbolic.terms import Level, Term

X = t.symbol("x", Level.THREAD, -7, 12)
Y = t.symbol("y", Level.THREAD, 0, 5)
D = t.symbol("d", Level.GRID, 1, 4)
W = t.symbol("w", Level.GRID, -2, 3)
SYMBOLS = (X, Y, D, W)
EVERY = np.array(list(itertools.product(*(range(int(x.lo), int(x.hi) + 1) for x in SYMBOLS))))
COLUMNS = {x: EVERY[:, i] for i, x in enumerate(SYMBOLS)}
INDEX = t.add(X, t.scale(Y, 3))


@pytest.mark.parametrize("divisor", [D, t.mul(D, t.add(Y, t.ONE)), t.const(4)])
@pytest.mark.parametrize("index", [X, Y, INDEX])
def test_what_is_left_of_an_index_is_its_remainder(index: Term, divisor: Term) -> None:
    if divisor.op is t.Op.SYMBOL or divisor.is_const:
        taken = t.mul(divisor, t.divide(index, divisor))
        assert t.remaindered(t.sub(index, taken)) is t.remainder(index, divisor)
        scaled = t.mul(W, t.sub(index, taken))
        assert t.remaindered(t.add(scaled, Y)) is t.add(t.mul(W, t.remainder(index, divisor)), Y)


def test_more_or_less_than_what_is_left_stays() -> None:
    quotient = t.divide(X, D)
    for term in (
        t.sub(X, quotient),
        t.sub(Y, t.mul(D, quotient)),
        t.sub(t.scale(X, 2), t.mul(D, quotient)),
        t.sub(X, t.scale(t.mul(D, quotient), 2)),
    ):
        assert t.remaindered(term) is term


def test_what_spans_several_rows_is_in_them_and_in_a_column() -> None:
    """Seven rows for each that ``x`` has come to, and its own: eight."""
    quotient, left = t.divide(X, D), t.remainder(X, D)
    rows = t.scale(t.mul(D, quotient), 8)
    assert t.remaindered(t.add(X, t.scale(t.mul(D, quotient), 7))) is t.add(rows, left)
    other = t.add(Y, t.mul(D, quotient))
    assert t.remaindered(other) is other
    half = t.add(X, t.mul(D, t.divide(t.scale(X, 2), D)))
    assert t.remaindered(half) is half


@st.composite
def sums(draw: st.DrawFn, depth: int = 2) -> Term:
    parts: list[Term] = []
    for _ in range(draw(st.integers(1, 3))):
        x = draw(sums(depth - 1)) if depth and draw(st.booleans()) else draw(st.sampled_from((X, Y, INDEX)))
        d = draw(st.sampled_from((D, t.const(2), t.const(3))))
        factor = draw(st.sampled_from((t.ONE, W, t.const(2), t.const(-1))))
        taken = t.mul(draw(st.sampled_from((d, d, D, t.ONE))), t.divide(x, d))
        parts.append(t.mul(factor, draw(st.sampled_from((x, taken, t.sub(x, taken), t.sub(x, taken))))))
    return t.add(*parts)


@given(sums())
@examples(300)
def test_numbers_stay(term: Term) -> None:
    before, after = tabulated(term, COLUMNS), tabulated(t.remaindered(term), COLUMNS)
    assert before is not None and after is not None
    assert (before == after).all()
