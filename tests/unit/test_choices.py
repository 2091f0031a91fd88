"""Choices that a guard has made: what is chosen there, and that nothing else is."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.tabulate import tabulated
from cuda_lsp.static.symbolic.terms import Level, Term

K = t.symbol("k", Level.THREAD, 0, 7)
N = t.symbol("n", Level.GRID, -3, 4)
M = t.symbol("m", Level.GRID, -2, 5)
SYMBOLS = (K, N, M)
EVERY = np.array(list(itertools.product(*(range(int(x.lo), int(x.hi) + 1) for x in SYMBOLS))))
COLUMNS = {x: EVERY[:, i] for i, x in enumerate(SYMBOLS)}


def test_a_loop_that_runs_has_as_many_rounds_as_it_says() -> None:
    rounds = t.ite(t.lt(t.ZERO, N), N, t.ZERO)
    assert t.chosen(t.mul(rounds, K), t.lt(K, N)) is t.mul(N, K)
    assert t.chosen(rounds, t.lt(N, K)) is rounds
    assert t.chosen(rounds, t.le(N, t.ZERO)) is t.ZERO


def test_what_the_guard_says_itself_is_chosen() -> None:
    padded = t.ite(t.or_(t.lt(M, N), t.eq(M, t.const(5))), M, N)
    assert t.chosen(padded, t.lt(M, N)) is M
    assert t.chosen(padded, t.and_(t.lt(N, M), t.lt(M, t.const(5)))) is padded
    assert t.chosen(padded, t.and_(t.le(N, M), t.lt(M, t.const(5)))) is N


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Term:
    kind = draw(st.sampled_from(("<=", "==", "and", "or", "not"))) if depth else "<="
    if kind in ("<=", "=="):
        factors = [draw(st.integers(-2, 2)) for _ in SYMBOLS]
        sum_ = t.add(t.const(draw(st.integers(-4, 4))), *map(t.scale, SYMBOLS, factors))
        return t.le(sum_, t.ZERO) if kind == "<=" else t.eq(sum_, t.ZERO)
    if kind == "not":
        return t.not_(draw(conditions(depth - 1)))
    parts = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    return t.and_(*parts) if kind == "and" else t.or_(*parts)


@given(st.lists(conditions(1), min_size=1, max_size=3), conditions(), conditions())
@examples(300)
def test_the_value_stays_wherever_the_guard_holds(guards: list[Term], one: Term, other: Term) -> None:
    term = t.ite(one, t.add(K, t.ite(other, N, M)), t.mul(M, t.ite(other, K, t.ONE)))
    guard = t.and_(*guards)
    there, before, after = (tabulated(x, COLUMNS) for x in (guard, term, t.chosen(term, guard)))
    assert there is not None and before is not None and after is not None
    assert (before[there] == after[there]).all()


def test_a_choice_by_one_bit_is_a_sum() -> None:
    odd = t.floor_mod(K, 2)
    for condition in (t.lt(t.ZERO, odd), t.le(t.ONE, odd), t.eq(odd, t.ONE), t.not_(t.le(odd, t.ZERO))):
        assert t.chosen(t.ite(condition, t.const(4), t.ONE), t.TRUE) is t.add(t.ONE, t.scale(odd, 3))
    even = t.ite(t.eq(odd, t.ZERO), t.const(4), t.ONE)
    assert t.chosen(even, t.TRUE) is t.sub(t.const(4), t.scale(odd, 3))


def test_where_both_sides_are_one_it_is_the_other() -> None:
    largest = t.maximum(N, t.ONE)
    assert t.chosen(largest, t.le(t.ONE, N)) is N
    assert t.chosen(largest, t.le(t.ZERO, N)) is largest


@given(st.lists(conditions(1), min_size=1, max_size=4))
@examples(300)
def test_no_value_that_a_guard_admits_is_out_of_its_bounds(guards: list[Term]) -> None:
    guard = t.and_(*guards)
    there = tabulated(guard, COLUMNS)
    assert there is not None
    for equations in (False, True):
        for atom, (low, high) in t.bounds_of(guard, equations).items():
            values = COLUMNS[atom][there]
            assert (values >= low).all() and (values <= high).all()


BITS = (t.floor_mod(K, 2), t.sub(t.ONE, t.floor_mod(K, 2)), t.floor_div(K, 4))


@given(st.sampled_from(BITS), conditions(0))
@examples(100)
def test_bits_keep_their_values(bit: Term, guard: Term) -> None:
    for condition in (t.le(bit, t.ZERO), t.lt(t.ZERO, bit), t.eq(bit, t.ZERO), t.eq(bit, t.ONE)):
        term = t.ite(condition, t.const(7), t.const(-2))
        before, after = tabulated(term, COLUMNS), tabulated(t.chosen(term, guard), COLUMNS)
        there = tabulated(guard, COLUMNS)
        assert before is not None and after is not None and there is not None
        assert (before[there] == after[there]).all()
