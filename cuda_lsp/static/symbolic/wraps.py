"""Unsigned arithmetic that guards keep from wrapping: ``uint32(524288 * (i / 256))`` where ``i / 256 < 32``.

A term knows the interval of its value for all threads; the threads that come by an access are fewer. Where
the conditions of the access keep a wrapped sum within its type, the wrap is no more; where they keep an index
below a divisor, so is the remainder: ``(i + n) % n`` where ``i < n``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.static.symbolic.core import Op, Term, monomials, range_times, scale, sub
from cuda_lsp.static.symbolic.logic import conjuncts, lt
from cuda_lsp.static.symbolic.rewrite import replace, subterms

_Interval = tuple[float, float]


def unwrapped(term: Term, guard: Term) -> Term:
    """The term's value wherever ``guard`` holds, without wraps and remainders that change nothing there."""
    if all(part.op not in (Op.WRAP, Op.REM) for part in subterms(term)):
        return term
    known = _bounds(guard)
    conditions = frozenset(conjuncts(guard))

    def leaf(part: Term) -> Term | None:
        if part.op is Op.REM:
            index = _without_multiples(*part.args)
            return index if index.lo >= 0 and lt(index, part.args[1]) in conditions else None
        if part.op is not Op.WRAP:
            return None
        inner = replace(part.args[0], leaf, {})
        low, high = _interval(inner, known)
        return inner if part.lo <= low and high <= part.hi else None

    return replace(term, leaf, {})


def _without_multiples(index: Term, divisor: Term) -> Term:
    """``i`` of ``i + n`` for the divisor ``n``."""
    count = monomials(index).get((divisor,), 0)
    return sub(index, scale(divisor, count)) if count > 0 else index


def _bounds(guard: Term) -> dict[Term, _Interval]:
    """Intervals of atoms that a condition of the guard compares with a constant."""
    known: dict[Term, _Interval] = {}
    for part in conjuncts(guard):
        if part.op is not Op.LE:
            continue
        sums = dict(monomials(part.args[0]))
        offset = sums.pop((), 0)
        if len(sums) != 1:
            continue
        ((atoms, factor),) = sums.items()
        if len(atoms) != 1:
            continue
        low, high = known.get(atoms[0], (atoms[0].lo, atoms[0].hi))
        if factor > 0:
            high = min(high, -offset // factor)
        else:
            low = max(low, -(-offset // -factor))
        known[atoms[0]] = (low, high)
    return known


def _interval(term: Term, known: Mapping[Term, _Interval]) -> _Interval:
    low = high = 0.0
    for atoms, factor in monomials(term).items():
        bounds: _Interval = (factor, factor)
        for atom in atoms:
            bounds = range_times(bounds, known.get(atom, (atom.lo, atom.hi)))
        low, high = low + bounds[0], high + bounds[1]
    return max(low, term.lo), min(high, term.hi)
