"""Nodes that are made directly are those that Z3's own operators make."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from cuda_lsp.static.symbolic import nodes

CONTEXT = z3.Context()
X, Y = z3.Int("x", CONTEXT), z3.Int("y", CONTEXT)
P, Q = z3.Bool("p", CONTEXT), z3.Bool("q", CONTEXT)
B, C = z3.BitVec("b", 40, CONTEXT), z3.BitVec("c", 40, CONTEXT)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (nodes.plus(X, Y), X + Y),
        (nodes.plus(nodes.plus(X, Y), X), X + Y + X),
        (nodes.times(X, z3.IntVal(3, CONTEXT)), X * 3),
        (nodes.at_most(X, Y), X <= Y),
        (nodes.equal(X, Y), X == Y),
        (nodes.equal(P, Q), P == Q),
        (nodes.equal(B, C), B == C),
        (nodes.both(P, Q, X <= Y), z3.And(P, Q, X <= Y)),
        (nodes.either(P, Q), z3.Or(P, Q)),
        (nodes.negated(P), z3.Not(P)),
        (nodes.implied(P, Q), z3.Implies(P, Q)),
    ],
)
def test_they_are_the_same(made: Any, expected: Any) -> None:
    assert made.eq(expected)
    assert type(made) is type(expected)
    assert made.ctx is CONTEXT


def test_what_is_made_outlives_its_parts() -> None:
    made = nodes.both(nodes.at_most(nodes.plus(X, z3.Int("z", CONTEXT)), Y), nodes.negated(P))
    assert str(made).replace("\n", " ") == "And(x + z <= y, Not(p))"
