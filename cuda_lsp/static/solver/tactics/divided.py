"""What divides on the way to an access is not 0: of ``i / n`` and ``i % n == 0`` alike, ``n`` is a size.

To divide by 0 is undefined wherever it happens, in an address and in a condition; that a launch passes 0 is
no race. Not where the kernel asks whether a divisor is 0 and goes on with another value: then it may be.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, where_positive
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_COMPARISONS = (Op.LE, Op.EQ)


def by_something(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show where all that the pair divides by, and that all threads share, is positive."""

    def divided(pair: OpenPair) -> Proved | None:
        divisors = tuple(_divisors(pair.p))
        if any(_may_be_zero(x, pair.p) for x in divisors):
            return None
        answer = where_positive(pair, divisors, proofs)
        if answer is None:
            return None
        return Proved((*(f"`{t.show(x)}` is not 0" for x in divisors), *answer.assumptions))

    return divided


def _divisors(p: Problem) -> Iterator[Term]:
    """What all threads share that the pair divides by, and that may be 0 as far as is known."""
    parts = t.subterms(p.formula)
    found = dict.fromkeys(x.args[1] for x in parts if x.op in (Op.DIV, Op.REM))
    return (x for x in found if x.lo <= 0 < x.hi and t.level_of(x) is Level.GRID)


def _may_be_zero(divisor: Term, p: Problem) -> bool:
    """The source has a way for a divisor of 0: a choice that asks for it, or a condition that wants it."""
    said = set(t.conjuncts(p.formula))
    about = [x for x in t.subterms(p.formula) if x.op in _COMPARISONS and _names(x) <= _names(divisor)]
    if any(_asks(x, divisor) for x in about if x not in said and t.not_(x) not in said):
        return True
    demanded = t.and_(*(c for c in said if _names(c) <= _names(divisor)))
    at_zero, at_one = (t.substitute(demanded, {divisor: t.const(n)}) for n in (0, 1))
    return at_one is t.FALSE and at_zero is not t.FALSE


def _asks(comparison: Term, divisor: Term) -> bool:
    """It comes out otherwise for a divisor of 0, as far as that can be seen."""
    at_zero, at_one = (t.substitute(comparison, {divisor: t.const(n)}) for n in (0, 1))
    return at_zero is not at_one or divisor not in set(t.subterms(comparison))


def _names(term: Term) -> set[Term]:
    return {x for x in t.subterms(term) if x.op in (Op.SYMBOL, Op.APPLY, Op.TEST)}
