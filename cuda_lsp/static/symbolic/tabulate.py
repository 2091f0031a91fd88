"""Terms of few numbers, for all of them at once: columns of NumPy instead of symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_lsp.ir.types import Int
from cuda_lsp.static.symbolic.terms import Op, Term

Column = NDArray[Any]  # int64, or bool of a condition
_INT64 = Int(64, True)
_MOST_WRAPPED_BITS = 32
_MOST = 1 << 62
"""Of a term: sums and products of 64 bits that wrap on their way are right where they end."""


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
        if not (abs(term.lo) <= _MOST and abs(term.hi) <= _MOST):
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
            product = np.full(length, _INT64.wrap(factor), np.int64)
            for atom in atoms:
                product = product * _column(atom, done, length)
            total = total + product
        return total
    if op in (Op.AND, Op.OR):
        whole = np.full(length, op is Op.AND)
        for part in args:
            column = _column(part, done, length)
            whole = whole & column if op is Op.AND else whole | column
        return whole
    values: list[Any] = [_column(x, done, length) if isinstance(x, Term) else x for x in args]
    if op is Op.ITE:
        return np.choose(values[0], (values[2], values[1]))
    if op in (Op.DIV, Op.REM):
        return _divided(op, values[0], values[1])
    if op is Op.WRAP:
        return _wrapped(values[0], args[1], term.lo)
    if op is Op.POWER:
        return _power(values[0], args[1], np.maximum(values[2], 0), growing=args[3])
    if op in _OF_ONE:
        return _OF_ONE[op](values[0])
    if op in _OF_TWO and not (isinstance(values[1], int) and values[1] > _MOST):
        return _OF_TWO[op](values[0], values[1])
    raise _Unknown


def _divided(op: Op, a: Column, b: Column) -> Column:
    """C's quotient, which goes towards 0, or its remainder."""
    if not b.all():
        raise _Unknown  # what is divided by 0 has no value
    quotient = np.sign(a) * np.sign(b) * (abs(a) // abs(b))
    return quotient if op is Op.DIV else a - quotient * b


def _wrapped(a: Column, bits: int, least: float) -> Column:
    """Modulo ``2**bits``, from the least number of the type on."""
    if bits > _MOST_WRAPPED_BITS:
        raise _Unknown
    return (a - int(least)) % (1 << bits) + int(least)


def _power(start: Column, factor: int, exponent: Column, *, growing: bool) -> Column:
    """``start * factor**exponent``, or divided by it; ``exponent`` is not negative."""
    if not factor ** int(exponent.max(initial=0)) <= _MOST:
        raise _Unknown
    amount: Column = np.power(np.int64(factor), exponent)
    return start * amount if growing else start // amount


_OF_ONE: Mapping[Op, Callable[[Column], Column]] = {
    Op.NOT: lambda a: ~a,
    Op.LE: lambda a: a <= 0,
    Op.EQ: lambda a: a == 0,
}
_OF_TWO: Mapping[Op, Callable[[Column, Any], Column]] = {  # the other a column, or a number
    Op.FLOOR_DIV: lambda a, b: a // b,
    Op.FLOOR_MOD: lambda a, b: a % b,
    Op.BAND: lambda a, b: a & b,
    Op.BOR: lambda a, b: a | b,
    Op.BXOR: lambda a, b: a ^ b,
}
