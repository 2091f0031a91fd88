"""Padded indices, ``i + pad * (i / 32)``: column and row rise together, so that no two are one address.

The row is a part of the index that the column is. Where a larger column never has a smaller row, the address
rises with the column, for every pad that is not negative.
"""

from __future__ import annotations

from cuda_lsp.static.solver.rows import division
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.rows.pitch import of_one_index
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Op


def together(pair: OpenPair) -> Proved | None:
    """Two threads with one address have one column, which they do not; the pad is no less than 0 for it."""
    p, facts, query = pair.p, pair.facts, pair.query
    if p.overlap.op is not Op.EQ:
        return None
    a, b = p.offsets
    for pad in division.symbols(a, b, query.where.free, uniform=False)[:1]:
        (row_a, column_a), (row_b, column_b) = division.divide(a, pad), division.divide(b, pad)
        whole = pad.args[0] in query.where.free and pad not in t.subterms(row_a, row_b, column_a, column_b)
        if not whole or not (of_one_index(row_a, column_a) and of_one_index(row_b, column_b)):
            continue
        crossing = (
            t.and_(t.lt(column_a, column_b), t.lt(row_b, row_a)),
            t.and_(t.lt(column_b, column_a), t.lt(row_a, row_b)),
        )
        rising = all(pair.excludes(p.guards, case) for case in (*crossing, t.eq(column_a, column_b)))
        if rising and not speaks_against_sizes(p, facts, (pad,), 0, query):
            return Proved(not_negative([pad.args[0]]))
    return None
