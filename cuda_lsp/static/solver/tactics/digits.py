"""Addresses as numbers of mixed radix (``symbolic.digits``): two threads with one address are one thread."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.ir.program import BID
from cuda_lsp.static.solver.query import is_linear
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.digits import digits_of
from cuda_lsp.static.symbolic.terms import Op, Term
from cuda_lsp.static.symbolic.wraps import UNTOLD_BLOCKS


def differ(pair: OpenPair) -> Proved | None:
    """The digits agree in one thread only; parameters that are bases are taken to be positive for it."""
    return _differ(pair, ())


def differ_when_turned(pair: OpenPair) -> Proved | None:
    """The same where parameters that turn rows, ``(i + shift) % n``, are not negative."""
    return _differ(pair, (), shifted=True)


def differ_in_rows(pair: OpenPair) -> Proved | None:
    """The same in a grid that has no more blocks along an axis than the row that they make has columns.

    Of a grid that nothing tells, and where no condition is about the index of its blocks or the row.
    """
    p, where = pair.p, pair.query.where
    if pair.launch is None or p.pair.relation.same_block:
        return None
    told = {x for condition in t.conjuncts(p.guards) for x in t.subterms(condition)}
    indices = (where.axes[axis] for axis in BID)
    return _differ(pair, [x for x in indices if x.hi >= UNTOLD_BLOCKS and not told & set(_copies(x))])


def _copies(symbol: Term) -> tuple[Term, Term]:
    def of(thread: int) -> Term:
        name, level = symbol.args
        return t.symbol(f"{name}#{thread}", level, symbol.lo, symbol.hi)

    return of(1), of(2)


def _differ(pair: OpenPair, unbounded: Sequence[Term], *, shifted: bool = False) -> Proved | None:
    p, facts, query = pair.p, pair.facts, pair.query
    digits = digits_of(p, facts, query.where.axes, query.where.free, unbounded, shifted=shifted)
    if digits is not None and shifted and not digits.natural:
        return None
    if digits is None or speaks_against_sizes(p, facts, digits.positive, 1, query):
        return None
    if speaks_against_sizes(p, facts, digits.natural, 0, query):
        return None
    stated = set(t.subterms(*query.stated(p)))
    if (unbounded and not digits.rows) or any(stated & _names(row) for row in digits.rows):
        return None
    if not digits.refuted and (digits.equal is p.overlap or is_linear(p.overlap)):
        return None
    if digits.refuted or query.ask_case(p, facts, t.and_(p.guards, digits.equal)):
        rows = (f"rows of `{t.show(row)}` elements do not overlap" for row in digits.rows)
        shifts = not_negative(t.show(size) for size in digits.natural)
        return Proved((*rows, *(f"`{t.show(size)}` is positive" for size in digits.positive), *shifts))
    return None


def _names(row: Term) -> set[Term]:
    return {x for x in t.subterms(row) if x.op is Op.SYMBOL}
