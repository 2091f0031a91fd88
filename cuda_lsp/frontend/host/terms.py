"""Polynomials of what the host knows, by what a launch shows its kernel of them: arguments, extents."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.polynomials import Formula, Polynomial

_MOST_FACTORS = 6
"""Of one product."""


@frozen
class Term:
    """What a kernel sees of a launch that is one product: ``factor`` times the names."""

    name: Formula
    factor: int
    names: tuple[str, ...]


def product_of(value: Polynomial) -> tuple[int, tuple[str, ...]] | None:
    """The factor and the names, where it is one product."""
    ((names, factor),) = value.items() if len(value) == 1 else (((), 0),)
    return (factor, names) if names else None


def sum_of(value: Polynomial, terms: Sequence[Term]) -> Formula | None:
    """The polynomial by these terms."""
    products: list[Formula] = []
    for names, factor in sorted(value.items()):
        product = _factors(factor, Counter(names), terms, _MOST_FACTORS)
        if product is None:
            return None
        products.append(product)
    return functools.reduce(_plus, products)


def with_solved(terms: Sequence[Term], sums: Iterable[tuple[Formula, Polynomial]]) -> list[Term]:
    """``terms``, and what sums tell besides: ``r`` where a kernel sees ``n`` and what is ``n - r``."""
    found = [*terms]
    for name, value in sums:
        for names, factor in value.items() if len(value) > 1 else ():
            known = any(term.names == names and term.factor in (1, -1) for term in found)
            if not names or known or factor not in (1, -1):
                continue
            rest = sum_of({others: times for others, times in value.items() if others != names}, found)
            if rest is not None:
                apart: Formula = ("-", name, rest) if factor == 1 else ("-", rest, name)
                found.append(Term(apart, 1, names))
                break
    return found


def _plus(left: Formula, right: Formula) -> Formula:
    return ("+", left, right)


def _factors(factor: int, names: Counter[str], terms: Sequence[Term], most: int) -> Formula | None:
    """One product by these terms, those first that tell most of it."""
    if not names:
        return factor
    fitting = [t for t in terms if not Counter(t.names) - names and factor % t.factor == 0]
    for term in sorted(fitting, key=lambda t: -len(t.names)) if most else ():
        rest = _factors(factor // term.factor, names - Counter(term.names), terms, most - 1)
        if rest is not None:
            return term.name if rest == 1 else ("*", term.name, rest)
    return None
