"""Terms of few numbers, for all of them at once: columns of NumPy instead of symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_lsp.static.symbolic.terms import Monomial, Op, Term, monomial_range, range_times

Column = NDArray[Any]  # int64, or bool of a condition
_EXACT = 1 << 31
"""Numbers up to it have products that 64 bits hold."""
_MOST_FACTORS = 2
"""Of a product, beside a number."""


def tabulated(term: Term, columns: Mapping[Term, Column]) -> Column | None:
    """The term's values where its symbols have those of ``columns``, all of one length; None: it has others.

    Also where numbers may be too large, or what makes the term has no such values.
    """
    done: dict[Term, Column] = dict(columns)
    try:
        return _column(term, done, len(next(iter(columns.values()))))
    except _Unknown:
        return None


class _Unknown(Exception):
    """The term is not made of what is tabulated."""


def _column(term: Term, done: dict[Term, Column], length: int) -> Column:
    known = done.get(term)
    if known is None:
        if not (abs(term.lo) <= _EXACT and abs(term.hi) <= _EXACT):
            raise _Unknown
        known = done[term] = _made(term, done, length)
    return known


def _made(term: Term, done: dict[Term, Column], length: int) -> Column:
    op, args = term.op, term.args
    if op is Op.CONST:
        return np.full(length, args[0], np.int64)
    if op in (Op.TRUE, Op.FALSE):
        return np.full(length, op is Op.TRUE)
    if op is Op.SUM:
        total = np.zeros(length, np.int64)
        for atoms, factor in args[0]:
            if len(atoms) > _MOST_FACTORS or abs(factor) > _EXACT or not _fits(atoms, factor):
                raise _Unknown
            product = np.full(length, factor, np.int64)
            for atom in atoms:
                product = product * _column(atom, done, length)
            total = total + product
        return total
    if op in (Op.AND, Op.OR):
        parts = [_column(part, done, length) for part in args]
        return np.logical_and.reduce(parts) if op is Op.AND else np.logical_or.reduce(parts)
    made = _MADE.get(op)
    if made is None:
        raise _Unknown
    return made(*(_column(x, done, length) if isinstance(x, Term) else x for x in args))


def _fits(atoms: Monomial, factor: int) -> bool:
    low, high = range_times(monomial_range(atoms), (factor, factor))
    return max(abs(low), abs(high)) <= _EXACT * _EXACT


_MADE: Mapping[Op, Callable[..., Column]] = {
    Op.FLOOR_DIV: lambda a, divisor: a // divisor,
    Op.FLOOR_MOD: lambda a, divisor: a % divisor,
    Op.BAND: lambda a, b: a & b,
    Op.BOR: lambda a, b: a | b,
    Op.BXOR: lambda a, b: a ^ b,
    Op.ITE: lambda condition, a, b: np.where(condition, a, b),
    Op.NOT: lambda a: ~a,
    Op.LE: lambda a: a <= 0,
    Op.EQ: lambda a: a == 0,
}
