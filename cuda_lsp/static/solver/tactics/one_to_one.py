"""Functions that bring no two numbers together: remainders within one period, xor, and bit reversal.

``(i + s) % n`` is a rotation: two numbers with one remainder differ by a multiple of the divisor, and numbers
that are closer than it (``i < n``) are then one. C's remainder, which has the sign of what is divided, keeps
to that. ``__brev`` and ``^`` with what both threads share undo themselves. None of them is linear arithmetic,
which is where Z3 finds contradictions at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, SHARED, side
from cuda_lsp.static.symbolic.terms import Op, Term

_REVERSALS = ("__brev", "__brevll")


def injective(pair: OpenPair) -> Proved | None:
    """Impossible when these functions have equal values for equal numbers only."""
    same = [t.or_(t.not_(t.eq(f, g)), t.eq(x, y)) for f, g, x, y in _one_to_one(pair)]
    return Proved() if same and pair.excludes(pair.p.formula, *same) else None


def _one_to_one(pair: OpenPair) -> Iterator[tuple[Term, Term, Term, Term]]:
    """Two values, one of each thread, and the numbers that they are values of: these differ if those do."""
    found = [part for part in t.subterms(pair.p.overlap) if part.op in (Op.REM, Op.BXOR, Op.INTRINSIC)]
    mine, theirs = ([part for part in found if side(part) == whose] for whose in (FIRST, SECOND))
    for f, g in product(mine, theirs):
        if f.op is Op.REM and g.op is Op.REM:
            (x, by), (y, divisor) = f.args, g.args
            if by is divisor and side(by) == SHARED and _closer(x, y, by, pair):
                yield f, g, x, y
            continue
        one, other = _undone(f), _undone(g)
        if one is not None and other is not None and one[0] == other[0]:
            yield f, g, one[1], other[1]


def _undone(part: Term) -> tuple[tuple[object, ...], Term] | None:
    """A function that undoes itself, and the number that it was applied to."""
    if part.op is Op.INTRINSIC:
        return (part.args[:2], part.args[2][0]) if part.args[0] in _REVERSALS else None
    shared = [x for x in part.args if side(x) == SHARED] if part.op is Op.BXOR else []
    return ((Op.BXOR, shared[0]), next(x for x in part.args if x is not shared[0])) if shared else None


def _closer(x: Term, y: Term, divisor: Term, pair: OpenPair) -> bool:
    """Where both accesses are reached the two numbers differ by less than the divisor."""
    gap = t.sub(x, y)
    apart = t.or_(t.le(divisor, gap), t.le(divisor, t.scale(gap, -1)))
    return pair.excludes(pair.p.guards, apart)
