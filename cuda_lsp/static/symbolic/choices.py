"""Choices that conditions have made already: ``n > 0 ? n : 0`` where ``k < n`` and ``k`` counts rounds.

How often a loop runs, how large a tile is at the border, which of two layouts: terms choose by conditions
that hold, or do not, wherever the access is reached. Decided are comparisons, by what the guard says itself
and by the intervals that it leaves. Choices by one bit are sums: ``x % 2 > 0 ? 4 : 0`` is ``4 * (x % 2)``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.static.symbolic.core import FALSE, ONE, TRUE, Op, Term, add, monomials, mul, scale, sub
from cuda_lsp.static.symbolic.logic import conjuncts, not_
from cuda_lsp.static.symbolic.rewrite import replace, subterms
from cuda_lsp.static.symbolic.wraps import Interval, bounds_of, interval_of


def chosen(term: Term, guard: Term) -> Term:
    """The term's value wherever ``guard`` holds, without choices that are made there."""
    if all(part.op is not Op.ITE for part in subterms(term)):
        return term
    known, said = bounds_of(guard), frozenset(conjuncts(guard))
    memo: dict[Term, Term] = {}

    def leaf(part: Term) -> Term | None:
        if part.op is not Op.ITE:
            return None
        condition, then, otherwise = part.args
        truth = _decided(condition, known, said)
        truth = _larger(part, known) if truth is None else truth
        if truth is not None:
            return replace(then if truth else otherwise, leaf, memo)
        bit = _bit(condition) if then.is_const and otherwise.is_const else None
        return None if bit is None else add(otherwise, mul(bit, sub(then, otherwise)))

    return replace(term, leaf, memo)


def _bit(condition: Term) -> Term | None:
    """What is 1 where the condition holds, and 0 elsewhere: ``x % 2`` of ``x % 2 > 0``."""
    if condition.op not in (Op.LE, Op.EQ):
        return None
    difference = condition.args[0]
    if difference.lo >= 0 and difference.hi <= 1:
        return sub(ONE, difference)
    bit = sub(ONE, difference) if condition.op is Op.LE else add(ONE, difference)
    return bit if bit.lo >= 0 and bit.hi <= 1 else None


def _larger(part: Term, known: Mapping[Term, Interval]) -> bool | None:
    """Which side of ``x <= 8 ? 8 : x`` it is, where both are one if ``x`` is 8."""
    condition, then, otherwise = part.args
    difference = condition.args[0]
    equal = sub(otherwise, then) in (difference, scale(difference, -1))
    above = condition.op is Op.LE and equal and interval_of(monomials(difference), known)[0] >= 0
    return False if above else None


def _decided(condition: Term, known: Mapping[Term, Interval], said: frozenset[Term]) -> bool | None:
    """Whether the condition holds; None: now so, now not."""
    if condition is TRUE or condition in said:
        return True
    if condition is FALSE or not_(condition) in said:
        return False
    if condition.op is Op.NOT:
        truth = _decided(condition.args[0], known, said)
        return None if truth is None else not truth
    if condition.op in (Op.AND, Op.OR):
        parts = {_decided(part, known, said) for part in condition.args}
        absorbing = condition.op is Op.OR
        return absorbing if absorbing in parts else None if None in parts else not absorbing
    if condition.op in (Op.LE, Op.EQ):
        low, high = interval_of(monomials(condition.args[0]), known)
        if low > 0 or (condition.op is Op.EQ and high < 0):
            return False
        return True if high <= 0 and (condition.op is Op.LE or low >= 0) else None
    return None
