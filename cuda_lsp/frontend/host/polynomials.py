"""Sums of products of names, as the host computes sizes: what cancels, and what is left as a formula.

A name that begins with ``#`` is an argument of a launch by its position; later the kernel has a name for it.
Overflow is not looked at: sums and products are right modulo any power of two.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections import Counter
from collections.abc import Sequence

_MOST_PRODUCTS = 256
"""In one polynomial; ``(a + b) * (c + d) * …`` would have a power of two."""

_LONGEST = 400
"""Characters of an expression."""

Polynomial = dict[tuple[str, ...], int]
"""Products of names, sorted, with their factors."""

Formula = int | str | tuple[str, "Formula", "Formula"]
"""A number, a name, or (operator, left, right)."""


def parsed(text: str) -> ast.expr | None:
    """An expression of C, where Python writes it alike; None: it does not, or the text is too long."""
    if len(text) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of `1if`, for the user of a compiler of Python
        try:
            return ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def added(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    """``left + sign * right``."""
    total = Counter(left)
    for names, factor in right.items():
        total[names] += sign * factor
    return {names: factor for names, factor in total.items() if factor}


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The product; None: it is too long."""
    if len(left) * len(right) > _MOST_PRODUCTS:
        return None
    total = Counter[tuple[str, ...]]()
    for one, factor in left.items():
        for other, times in right.items():
            total[tuple(sorted((*one, *other)))] += factor * times
    return {names: factor for names, factor in total.items() if factor}


def formula(polynomial: Polynomial) -> Formula:
    """The same as an expression, its constant first."""
    total: Formula = polynomial.get((), 0)
    for names, factor in sorted(polynomial.items()):
        if names:
            total = _joined("+", total, functools.reduce(_times, names, factor), 0)
    return total


def named(of: Formula, names: Sequence[str]) -> Formula | None:
    """With the kernel's parameter names for positions; None: there are fewer of these."""
    if isinstance(of, int) or (isinstance(of, str) and not of.startswith("#")):
        return of
    if isinstance(of, str):
        number, dot, field = of[1:].partition(".")
        return f"{names[int(number)]}{dot}{field}" if int(number) < len(names) else None
    left, right = (named(part, names) for part in of[1:])
    return None if left is None or right is None else (of[0], left, right)


def names_in(of: Formula) -> frozenset[str]:
    """The names that a formula speaks of."""
    if isinstance(of, int):
        return frozenset()
    return frozenset({of}) if isinstance(of, str) else names_in(of[1]) | names_in(of[2])


def _times(product: Formula, name: str) -> Formula:
    return _joined("*", product, name, 1)


def _joined(operator: str, left: Formula, right: Formula, neutral: int) -> Formula:
    return right if left == neutral else (operator, left, right)
