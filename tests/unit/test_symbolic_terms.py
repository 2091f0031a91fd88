"""The term algebra: normal forms mean what they say, intervals are sound, equal addresses are one object."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import INT64
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Term

X = t.symbol("x", Level.THREAD, -9, 20)
Y = t.symbol("y", Level.THREAD, 0, 31)
Z = t.symbol("z", Level.GRID, 1, 8)

_BINARY = {
    BinaryOp.ADD: lambda a, b: t.add(a, b),
    BinaryOp.SUB: t.sub,
    BinaryOp.MUL: t.mul,
    BinaryOp.DIV: t.divide,
    BinaryOp.REM: t.remainder,
    BinaryOp.BAND: t.bit_and,
    BinaryOp.BOR: t.bit_or,
    BinaryOp.BXOR: t.bit_xor,
    BinaryOp.MIN: t.minimum,
    BinaryOp.MAX: t.maximum,
}
_COMPARE = {
    BinaryOp.LT: t.lt,
    BinaryOp.LE: t.le,
    BinaryOp.EQ: t.eq,
    BinaryOp.GT: lambda a, b: t.lt(b, a),
}


@st.composite
def expressions(draw, depth=3):
    """``(term, function of x, y, z)``: the same computation, symbolic and on Python integers."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        c = draw(st.integers(-8, 33))
        leaves = [(X, lambda x, y, z: x), (Y, lambda x, y, z: y), (Z, lambda x, y, z: z)]
        return draw(st.sampled_from([*leaves, (t.const(c), lambda x, y, z: c)]))
    a, f = draw(expressions(depth=depth - 1))
    b, g = draw(expressions(depth=depth - 1))
    op = draw(st.sampled_from(list(_BINARY)))
    if op in (BinaryOp.DIV, BinaryOp.REM):
        d = draw(st.integers(1, 9))
        b, g = t.const(d), lambda x, y, z: d
    python = BINARY[op].python
    return _BINARY[op](a, b), lambda x, y, z: python(f(x, y, z), g(x, y, z), INT64)


VALUES = st.tuples(st.integers(-9, 20), st.integers(0, 31), st.integers(1, 8))


def at(term: Term, values) -> Term:
    return t.substitute(term, {s: t.const(v) for s, v in zip((X, Y, Z), values, strict=True)})


@examples(100)
@given(expressions(), VALUES)
def test_a_term_has_the_value_of_the_operations_it_was_built_from(pair, values):
    term, function = pair
    value = at(term, values)
    assert value.is_const
    assert value.value == function(*values)
    assert term.lo <= value.value <= term.hi


@examples(100)
@given(expressions(depth=2), expressions(depth=2), st.sampled_from(list(_COMPARE)), VALUES)
def test_comparisons_and_their_negation_are_opposite(a, b, op, values):
    condition = _COMPARE[op](a[0], b[0])
    expected = BINARY[op].python(a[1](*values), b[1](*values), INT64)
    assert at(condition, values) is (t.TRUE if expected else t.FALSE)
    assert at(t.not_(condition), values) is (t.FALSE if expected else t.TRUE)


@examples(100)
@given(VALUES, st.integers(1, 40))
def test_floor_operations_and_wrap_follow_python(values, d):
    a = t.add(t.scale(X, 6), t.scale(Y, -4))
    number = 6 * values[0] - 4 * values[1]
    assert at(t.floor_div(a, d), values).value == number // d
    assert at(t.floor_mod(a, d), values).value == number % d
    assert at(t.wrap(a, 8, True), values).value == (number + 128) % 256 - 128
    assert at(t.wrap(a, 8, False), values).value == number % 256


def test_equal_addresses_are_one_object_and_differences_cancel():
    a = t.scale(t.add(t.mul(Y, Z), X), 4)
    b = t.add(t.scale(X, 4), t.scale(t.mul(Z, Y), 4))
    assert a is b
    assert t.sub(a, b) is t.ZERO


@examples(200)
@given(
    *(
        st.integers(low, high)
        for low, high in ((1, 5), (0, 3), (-20, 20), (1, 9), (2, 40), (-9, 20), (0, 31))
    ),
    VALUES,
)
def test_what_a_guard_makes_of_nested_quotients_is_their_value(
    x, y, number, divisor, period, most, of_y, values
):
    inner = t.floor_div(t.add(t.scale(X, x), t.scale(Y, y), t.const(number)), divisor)
    guard = t.and_(t.le(X, t.const(most)), t.le(t.ZERO, X), t.le(Y, t.const(of_y)))
    for term in (t.floor_mod(inner, period), t.wrap(t.sub(inner, t.const(period)), 8, False)):
        if at(guard, values) is t.TRUE:
            assert at(t.unwrapped(term, guard), values) is at(term, values)


def test_a_remainder_of_a_quotient_goes_where_a_limit_keeps_what_is_divided_below_it():
    i = t.add(t.scale(Y, 4), t.scale(t.symbol("k", Level.THREAD, 0), 4099))
    tile = t.floor_mod(t.floor_div(i, 32), 1 << 27)
    assert t.unwrapped(tile, t.lt(i, t.symbol("n", Level.GRID, 0, (1 << 31) - 1))) is t.floor_div(i, 32)
    assert t.unwrapped(tile, t.lt(i, t.symbol("n", Level.GRID, 0, (1 << 33)))) is tile
    assert t.unwrapped(tile, t.lt(i, t.symbol("n", Level.GRID))) is tile


def test_residue_classes_and_ranges_refute_equality():
    assert t.eq(t.scale(X, 2), t.add(t.scale(Y, 2), t.ONE)) is t.FALSE
    assert t.eq(t.add(X, t.const(100)), Y) is t.FALSE
    assert t.and_(t.lt(X, Y), t.le(Y, X)) is t.FALSE


def test_messages_show_c_like_text():
    assert t.show(t.lt(X, Y)) == "x < y"
    assert t.show(t.le(X, t.const(3))) == "x <= 3"
    assert t.show(t.add(t.scale(X, 2), t.ONE)) == "2*x + 1"


@examples(100)
@given(st.integers(0, 4), st.integers(-4, 4), st.integers(-3, 3), st.sampled_from(("&", "%", "mod")), VALUES)
def test_a_sum_is_no_less_than_with_numbers_for_parts_of_them(times, less, others, op, values):
    number = t.add(t.scale(Y, 3), Z)
    part = {
        "&": lambda: t.bit_and(number, X), "%": lambda: t.remainder(number, Z),
        "mod": lambda: t.floor_mod(number, 7),
    }[op]()  # fmt: skip
    term = t.add(t.scale(number, times), t.scale(part, less), t.scale(X, others))
    assert term.lo <= at(term, values).value <= term.hi
    if less <= 0 <= times + less and not others:
        assert term.lo >= 0


@examples(100)
@given(
    expressions(), st.sampled_from((X, Y, Z, t.const(3), t.apply("f", Level.THREAD, (X,)))), st.integers(1, 9)
)
def test_replacing_passes_by_what_lacks_the_unknown_and_nothing_else(expression, key, number):
    term = t.add(t.mul(expression[0], Z), t.apply("f", Level.THREAD, (X,)), t.remainder(t.const(3), Y))
    mapping = {key: t.const(number)}
    assert t.substitute(term, mapping) is t.replace(term, mapping.get)


def test_unknowns_of_one_bit_are_told_apart():
    many = [t.symbol(f"v{i}", Level.THREAD) for i in range(150)]
    term = t.add(*many)
    for one in many:
        assert one not in t.subterms(t.substitute(term, {one: t.ZERO}))
        assert t.substitute(term, {one: one}) is term
