"""Unsigned arithmetic that guards keep from wrapping: ``uint32(524288 * (i / 256))`` where ``i / 256 < 32``.

A term knows the interval of its value for all threads; the threads that come by an access are fewer. Where
the conditions of the access keep a wrapped sum within its type, the wrap is no more; where they keep an index
below a divisor, so is the remainder: ``(i + n) % n`` where ``i < n``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic.core import (
    Level,
    Monomial,
    Op,
    Term,
    const,
    from_monomials,
    monomials,
    mul,
    range_of_sum,
    scale,
    sub,
)
from cuda_lsp.static.symbolic.integers import divide
from cuda_lsp.static.symbolic.logic import conjuncts, lt
from cuda_lsp.static.symbolic.rewrite import replace, substitute, subterms

LEAST = 1
"""What everything else is, where a grid that the source tells wraps by itself."""

UNTOLD_BLOCKS = 1 << 31
"""The upper limit of a block's index where nothing tells the grid: more than any grid has."""

_EXACT = 1 << 52
"""Integers up to it are exact as floats."""

_CUTS = frozenset({Op.WRAP, Op.REM, Op.FLOOR_MOD})

Interval = tuple[float, float]


def unwrapped(term: Term, guard: Term) -> Term:
    """The term's value wherever ``guard`` holds, without wraps and remainders that change nothing there."""
    if all(part.op not in _CUTS for part in subterms(term)):
        return term
    known = bounds_of(guard)
    conditions = frozenset(conjuncts(guard))

    def leaf(part: Term) -> Term | None:
        if part.op is Op.REM:
            index = _without_multiples(*part.args)
            return index if index.lo >= 0 and lt(index, part.args[1]) in conditions else None
        if part.op not in (Op.WRAP, Op.FLOOR_MOD):
            return None
        inner = replace(part.args[0], leaf, {})
        low, high = _reach_of(inner, known)
        if part.op is Op.FLOOR_MOD:
            return inner if low >= 0 and high < part.args[1] else None
        if part.lo <= low and high <= part.hi:
            return inner
        sized = part.lo == 0 and all(_plausible_high(inner, known, told) <= part.hi for told in (False, True))
        return inner if sized and _stays_above_zero(inner, conditions, known) else None

    return replace(term, leaf, {})


def pinned(term: Term, guard: Term) -> Term:
    """The term with what can have one value only where ``guard`` holds: ``k`` where ``32 * k + i < 8``.

    Where that is a quotient, the remainder beside it is a difference: ``i % n`` where ``i / n == 2``.
    """
    bounds = bounds_of(guard, equations=False)
    known = {atom: const(int(low)) for atom, (low, high) in bounds.items() if low == high}
    known |= dict(_told_quotients(conjuncts(guard)))
    for part in subterms(term) if known else ():
        quotient = known.get(divide(*part.args)) if part.op is Op.REM else None
        if quotient is not None:
            known[part] = sub(part.args[0], mul(part.args[1], quotient))
    return substitute(term, known) if known else term


def _told_quotients(conditions: Iterable[Term]) -> Iterator[tuple[Term, Term]]:
    """Quotients that are compared with a number for being equal."""
    for part in conditions:
        if part.op is Op.EQ:
            sums = dict(monomials(part.args[0]))
            offset = sums.pop((), 0)
            ((atoms, factor),) = sums.items() if len(sums) == 1 else (((), 0),)
            if len(atoms) == 1 and atoms[0].op in (Op.DIV, Op.FLOOR_DIV) and offset % factor == 0:
                yield atoms[0], const(-offset // factor)


def _without_multiples(index: Term, divisor: Term) -> Term:
    """``i`` of ``i + n`` for the divisor ``n``."""
    count = monomials(index).get((divisor,), 0)
    return sub(index, scale(divisor, count)) if count > 0 else index


def bounds_of(guard: Term, equations: bool = True) -> dict[Term, Interval]:
    """Intervals of atoms that a condition of the guard compares with a constant, or with what is bounded.

    ``equations``: those that are equal to it count, too.
    """
    known: dict[Term, Interval] = {}
    for _ in range(2):  # ``k < n`` where ``n <= 4``
        for part in conjuncts(guard):
            if part.op is Op.LE or (part.op is Op.EQ and equations):
                _tighten(known, part.args[0])
            if part.op is Op.EQ and equations:
                _tighten(known, scale(part.args[0], -1))
    return known


def _tighten(known: dict[Term, Interval], sum_: Term) -> None:
    """What the atoms of the sum may be where it is not positive."""
    sums = dict(monomials(sum_))
    offset = sums.pop((), 0)
    for atoms, factor in sums.items():
        others = {m: c for m, c in sums.items() if m is not atoms}
        rest = interval_of(others, known)[0]
        if len(atoms) != 1 or abs(rest) > _EXACT:
            continue
        least = int(rest) + offset
        low, high = known.get(atoms[0], (atoms[0].lo, atoms[0].hi))
        if factor > 0:
            high = min(high, -least // factor)
        else:
            low = max(low, -(-least // -factor))
        known[atoms[0]] = (low, high)


def interval_of(sums: Mapping[Monomial, int], known: Mapping[Term, Interval]) -> Interval:
    """The interval of a sum whose atoms have those that are known."""
    return range_of_sum(sums, lambda atom: known.get(atom, (atom.lo, atom.hi)))


def _reach_of(term: Term, known: Mapping[Term, Interval]) -> Interval:
    """``interval_of`` it, quotients by what they divide: ``c / 32`` where ``c`` is below a limit."""

    def of_atom(atom: Term) -> Interval:
        low, high = known.get(atom, (atom.lo, atom.hi))
        if atom in known or atom.op is not Op.FLOOR_DIV:
            return low, high
        number, divisor = atom.args
        least, most = _reach_of(number, known)
        low = max(low, least // divisor) if abs(least) <= _EXACT else low
        return low, min(high, most // divisor) if abs(most) <= _EXACT else high

    return range_of_sum(monomials(term), of_atom)


def is_told(part: Term) -> bool:
    """An index of blocks in a grid that the source fixes."""
    return part.op is Op.SYMBOL and part.args[1] is Level.BLOCK and part.hi < UNTOLD_BLOCKS


def _plausible_high(term: Term, known: Mapping[Term, Interval], told: bool) -> float:
    """How large the term gets for plausible sizes; ``told`` as in ``values``."""
    most = LEAST if told else budgets.PLAUSIBLE_SIZE
    atoms = {atom for m in monomials(term) for atom in m if not (told and is_told(atom))}
    ranges = ((atom, *known.get(atom, (atom.lo, atom.hi))) for atom in atoms)
    large = ((atom, low, high) for atom, low, high in ranges if high > budgets.NARROW_RANGE)
    cut = {atom: (max(0, low), max(low, min(high, most))) for atom, low, high in large}
    return interval_of(monomials(term), {**known, **cut})[1]


def _stays_above_zero(term: Term, conditions: Iterable[Term], known: Mapping[Term, Interval]) -> bool:
    """The term is what a condition keeps from being negative (``w - 1 - x`` where ``x < w``), and more."""
    sums = monomials(term)
    for condition in conditions:
        if condition.op is not Op.LE:
            continue
        below = monomials(condition.args[0])
        times = {-sums.get(m, 0) // c for m, c in below.items() if m and c > 0 and sums.get(m, 0) % c == 0}
        for k in times:
            rest = {m: sums.get(m, 0) + k * below.get(m, 0) for m in {**sums, **below}}
            if k > 0 and (interval_of(rest, known)[0] >= 0 or from_monomials(rest).lo >= 0):
                return True
    return False
