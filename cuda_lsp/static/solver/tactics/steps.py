"""Butterflies: ``i`` beside ``j + n / 2`` where ``i % n`` and ``j % n`` are below ``n / 2``.

What numbers have besides their remainders by one number are multiples of it: those of two threads are the
same, or at least so far apart. To see that takes a product of unknowns, and to use it takes none: it is said
of each two numbers that the pair divides alike, as far as they are not negative and the divisor is not 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from cuda_lsp.static import budgets
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, SHARED, side
from cuda_lsp.static.symbolic.terms import Op, Term


def whole(pair: OpenPair) -> Proved | None:
    """Impossible for numbers that are whole steps apart, once their remainders are taken away."""
    said = [_apart(x, y, divisor) for x, y, divisor in islice(_divided(pair), budgets.MOST_STEPS)]
    return Proved() if said and pair.excludes(pair.p.formula, *said) else None


def _divided(pair: OpenPair) -> Iterator[tuple[Term, Term, Term]]:
    """Numbers of both threads, and what both share that they are divided by."""
    numbers: dict[Term, dict[Term, None]] = {}
    for part in t.subterms(pair.p.formula):
        if part.op in (Op.DIV, Op.REM) and side(part.args[1]) == SHARED:
            numbers.setdefault(part.args[1], {})[part.args[0]] = None
    for divisor, every in numbers.items():
        mine, theirs = ([x for x in every if side(x) == whose] for whose in (FIRST, SECOND))
        for x, y in product(mine, theirs):
            yield x, y, divisor


def _apart(x: Term, y: Term, divisor: Term) -> Term:
    """Without their remainders two numbers are one, or a divisor apart."""
    gap = t.sub(t.sub(x, t.remainder(x, divisor)), t.sub(y, t.remainder(y, divisor)))
    other = (t.lt(divisor, t.ONE), t.lt(x, t.ZERO), t.lt(y, t.ZERO))
    return t.or_(*other, t.eq(gap, t.ZERO), t.le(divisor, gap), t.le(gap, t.scale(divisor, -1)))
