"""Padded indices, ``i + pad * (i / 32)``: column and row rise together, so that no two are one address.

The row is a part of the index that the column is. Where a larger column never has a smaller row, the address
rises with the column, for every pad that is not negative. So do places behind which something is left out,
``i + n * (i / w)``, whatever they are divided by: they are one where the index is.
"""

from __future__ import annotations

from attrs import evolve, frozen

from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows import division
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.rows.pitch import of_one_index
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, where_positive
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import touching
from cuda_lsp.static.symbolic.sizes import SHARED, side
from cuda_lsp.static.symbolic.terms import Op, Term


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


@frozen(eq=False)
class _Spread:
    """``index``, ``begin`` behind which it is counted, and gaps: their sizes as products, and how often."""

    index: Term
    begin: Term
    gaps: frozenset[tuple[int, t.Monomial, Term]]

    @property
    def sizes(self) -> tuple[Term, ...]:
        """What the gaps are made of, those that are named first in the text first."""
        found = {x for _, parts, divisor in self.gaps for x in (*parts, divisor)}
        return tuple(sorted(found, key=lambda x: x.order))


def with_gaps(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show of indices, where the two addresses are these and gaps that come with them."""

    def without_gaps(pair: OpenPair) -> Proved | None:
        p = pair.p
        a, b = (_spread(offset) for offset in p.offsets) if p.overlap.op is Op.EQ else (None, None)
        if a is None or b is None or a.begin is not b.begin or a.gaps != b.gaps:
            return None
        if pair.launch is None or not all(_is_of_parameters(x, pair.query) for x in a.sizes):
            return None
        sizes = p.pair.first.size, p.pair.second.size
        words = p.pair.first.word and p.pair.second.word
        overlap, difference = touching(a.index, b.index, sizes, words=words), t.sub(a.index, b.index)
        plain = evolve(p, overlap=overlap, difference=difference, offsets=(a.index, b.index))
        answer = where_positive(evolve(pair, p=plain), a.sizes, proofs)
        if answer is None:
            return None
        return Proved((*(f"`{t.show(x)}` is positive" for x in a.sizes), *answer.assumptions))

    return without_gaps


def _spread(offset: Term) -> _Spread | None:
    """An address as an index, and products of sizes by its quotients; what it is divided by has no thread."""
    sums = t.monomials(offset)
    gaps = {m: cut for m in sums if (cut := _quotient(m)) is not None}
    numbers = {cut.args[0] for cut in gaps.values()}
    if len(numbers) != 1 or any(sums[m] <= 0 for m in gaps):
        return None
    (number,) = numbers
    rest = t.from_monomials({m: factor for m, factor in sums.items() if m not in gaps})
    index = t.scale(number, t.content(rest)) if side(rest) != SHARED else number
    begin = t.sub(rest, index)
    if side(begin) != SHARED:
        return None
    parts = {m: tuple(x for x in m if x is not cut) for m, cut in gaps.items()}
    return _Spread(index, begin, frozenset((sums[m], parts[m], cut.args[1]) for m, cut in gaps.items()))


def _quotient(atoms: t.Monomial) -> Term | None:
    """The one quotient of a thread's number in a product of what all threads share."""
    cuts = [x for x in atoms if side(x) != SHARED]
    one = cuts[0] if len(cuts) == 1 and cuts[0].op is Op.DIV else None
    return one if one is not None and side(one.args[1]) == SHARED else None


def _is_of_parameters(size: Term, query: Query) -> bool:
    leaves = (x for x in t.subterms(size) if x.op in (Op.SYMBOL, Op.APPLY, Op.TEST))
    return all(x.op is Op.SYMBOL and x.args[0] in query.where.free for x in leaves)
