"""Addresses that cannot be equal because one lies above the other, however sizes are.

``plane * rows + i`` and ``j`` with ``j < rows`` differ by at least ``(plane - 1) * rows + i + 1``. What is
subtracted is replaced by the most that a condition allows it to be (what is added by the least), one term
after the other, until what is left has a sign: a certificate as of Farkas' lemma. Planes as large as a grid,
a row or a product of sizes are told apart so without a solver, and nothing is taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Monomial, Op, Term

_MOST_STEPS = 12
"""Terms replaced one after the other."""
_MOST_CONDITIONS = 64
"""Conditions that are looked at."""
_EXACT = 2**53
"""Below it floating-point numbers, which ends of intervals are, hold every integer."""

_Sum = dict[Monomial, int]


def never(overlap: Term, conditions: Iterable[Term]) -> bool:
    """No values for which the conditions hold make two accesses overlap; False: not decided here."""
    limits: list[Mapping[Monomial, int]] | None = None
    for part in t.conjuncts(overlap):
        if part.op not in (Op.EQ, Op.LE):
            continue
        sums = t.monomials(part.args[0])
        if limits is None:
            limits = _limits(conditions)
        if _is_positive(sums, limits):
            return True
        if part.op is Op.EQ and _is_positive({m: -c for m, c in sums.items()}, limits):
            return True
    return False


def _limits(conditions: Iterable[Term]) -> list[Mapping[Monomial, int]]:
    """Sums that are not above 0 where the conditions hold."""
    found: list[Mapping[Monomial, int]] = []
    for condition in conditions:
        for part in t.conjuncts(condition):
            if part.op is Op.LE and len(found) < _MOST_CONDITIONS:
                found.append(t.monomials(part.args[0]))
    return found


def _is_positive(sums: Mapping[Monomial, int], limits: Iterable[Mapping[Monomial, int]]) -> bool:
    """The sum is above 0 wherever the limits hold: so it is if it is with what they have added to it."""
    left = dict(sums)
    for _ in range(_MOST_STEPS):
        if sum(_least(m, c) for m, c in left.items()) > 0:
            return True
        further = _step(left, limits)
        if further is None:
            return False
        left = further
    return False


def _step(sums: _Sum, limits: Iterable[Mapping[Monomial, int]]) -> _Sum | None:
    """The sum and a limit, as often as takes out a term that makes it less, that which does so most first."""
    lessening = sorted((_least(m, c), k, m) for k, (m, c) in enumerate(sums.items()) if m)
    for least, _, monomial in lessening:
        if least >= 0:
            break
        for limit in limits:
            for part, more in limit.items():
                opposed = part and (more > 0) is (sums[monomial] < 0)
                beside = t.without(monomial, part) if opposed else None
                if beside is None or sums[monomial] % more or _least(beside, 1) < 0:
                    continue
                found = _sum(sums, limit, beside, -sums[monomial] // more)
                if monomial not in found:
                    return found
    return None


def _sum(sums: _Sum, limit: Mapping[Monomial, int], beside: Monomial, times: int) -> _Sum:
    found = dict(sums)
    for atoms, count in limit.items():
        product = tuple(sorted(atoms + beside, key=_order))
        found[product] = found.get(product, 0) + count * times
    return {m: c for m, c in found.items() if c}


def _order(atom: Term) -> int:
    return atom.order


def _least(atoms: Monomial, factor: int) -> float:
    """The least that so many times a product may be, as an integer: sums of these are exact."""
    low, high = t.monomial_range(atoms)
    least = low if factor > 0 else high
    return factor * int(least) if abs(least) < _EXACT else -math.inf
