"""Addresses as numbers of mixed radix (``symbolic.digits``): two threads with one address are one thread."""

from __future__ import annotations

from cuda_lsp.static.solver.query import is_linear
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.digits import digits_of


def differ(pair: OpenPair) -> Proved | None:
    """The digits agree in one thread only; parameters that are bases are taken to be positive for it."""
    p, facts, query = pair.p, pair.facts, pair.query
    digits = digits_of(p, facts, query.where.axes, query.where.free)
    if digits is None or speaks_against_sizes(p, facts, digits.positive, 1, query):
        return None
    if not digits.refuted and (digits.equal is p.overlap or is_linear(p.overlap)):
        return None
    if digits.refuted or query.ask_case(p, facts, t.and_(p.guards, digits.equal)):
        return Proved(tuple(f"`{t.show(size)}` is positive" for size in digits.positive))
    return None
