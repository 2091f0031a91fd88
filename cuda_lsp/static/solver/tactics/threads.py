"""Addresses that hang on the thread's index in its block alone, and on rounds of short loops: one by one.

Tiles are written in orders that no digits show (``(y % 8 / 2 * 4 + y / 8) * 2 + y % 2``), and in a few
rounds. Where all else of the two addresses is the same for both threads, a table of a block's threads, in
each of their rounds, tells at once whether two meet. So it does where both are in the same round of a loop
with a barrier whose counter is part of their addresses, a stride that is halved (``2*t - (t & stride - 1)``):
the table has a part for each such round, and who meets does so in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from cuda_lsp.ir.program import TID
from cuda_lsp.model import MAX_BLOCK_THREADS
from cuda_lsp.static import budgets, work
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.rounds import ROUND, Rounds, hangs_on_data, rounds_in_common
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, SHARED, side
from cuda_lsp.static.symbolic.tabulate import Column, tabulated
from cuda_lsp.static.symbolic.terms import Op, Term


@frozen(eq=False)
class _Lines:
    """Of a table: numbers of threads, in which of the rounds that both share, and their addresses."""

    threads: Column
    rounds: Column
    places: Column


def apart(pair: OpenPair) -> Proved | None:
    """No two threads of the block have one address, of those that come by."""
    p, axes = pair.p, [pair.query.where.axes[axis] for axis in TID]
    if p.overlap.op is not Op.EQ or not p.pair.relation.same_block:
        return None
    if math.prod(axis.hi + 1 for axis in axes) > MAX_BLOCK_THREADS:
        return None
    parts: dict[int, dict[t.Monomial, int]] = {SHARED: {}, FIRST: {}, SECOND: {}}
    for atoms, factor in t.monomials(p.overlap.args[0]).items():
        whose = parts.get(side(t.from_monomials({atoms: 1})))
        if whose is None:
            return None
        whose[atoms] = factor
    conditions = t.conjuncts(p.guards)
    rounds = rounds_in_common(p.overlap, (*conditions, *pair.query.told))
    if rounds is None:
        return None
    common = t.from_monomials(parts[SHARED])
    mine = t.from_monomials(parts[FIRST])
    other = t.scale(t.add(t.from_monomials(parts[SECOND]), common), -1)
    ours = _by_thread(mine, axes, 1, conditions, rounds)
    theirs = _by_thread(other, axes, 2, conditions, rounds) if ours is not None else None
    if ours is None or theirs is None:
        return None
    return None if _meet(ours, theirs) else Proved()


def _by_thread(
    address: Term, axes: list[Term], thread: int, conditions: Sequence[Term], rounds: Rounds
) -> _Lines | None:
    """Numbers of threads, and their addresses in rounds in which they come by; None: it hangs on more."""
    whose = FIRST if thread == 1 else SECOND
    own = t.and_(*(c for c in conditions if side(c) == whose and not hangs_on_data(c)))
    of_thread = [
        t.symbol(f"{axis.args[0]}#{thread}", axis.args[1], axis.lo, axis.hi) for axis in axes
        if not axis.is_const
    ]  # fmt: skip
    given = {*of_thread, *rounds.columns}
    known = _with_rounds_bounded(rounds.bounded(address), of_thread, given, rounds.bounded(own))
    if known is None:
        return None
    (address, own), symbols = known
    extents = [int(x.hi - x.lo) + 1 for x in symbols]
    each = math.prod(extents)
    count = each * rounds.count
    if not of_thread or count > budgets.MOST_TABLE:
        return None
    work.DONE.instructions += budgets.TABLE_INSTRUCTIONS + count // budgets.TABLE_INSTRUCTIONS
    every = np.unravel_index(np.arange(each), extents)
    columns: dict[Term, Column] = {
        x: np.tile(at + int(x.lo), rounds.count) for x, at in zip(symbols, every, strict=True)
    }
    columns |= {x: np.repeat(values, each) for x, values in rounds.columns.items()}
    places = tabulated(address, columns)
    if places is None:
        return None
    live = np.ones(count, bool)
    for guard in t.conjuncts(own):
        holds = tabulated(guard, columns)
        live = live & holds if holds is not None else live
    number = np.zeros(count, np.int64)
    for x in of_thread:
        number = number * int(x.hi + 1) + columns[x]
    return _Lines(number[live], np.repeat(np.arange(rounds.count), each)[live], places[live])


def _with_rounds_bounded(
    address: Term, of_thread: list[Term], given: set[Term], guards: Term
) -> tuple[tuple[Term, Term], list[Term]] | None:
    """Address and guards with counters of rounds that know how far they go, and the symbols of the thread.

    None: nothing tells how far, or they hang on more than these, and what is ``given``.
    """
    bounds, counters = t.bounds_of(guards), dict[Term, Term]()
    for x in t.subterms(address):
        if x.op is Op.SYMBOL and x not in given:
            low, high = bounds.get(x, (x.lo, x.hi))
            if not (side(x) and ROUND.fullmatch(x.args[0]) and 0 <= high - low < budgets.MOST_TABLE):
                return None
            name, level = x.args
            counters[x] = t.symbol(name, level, low, high)
    bounded = t.replacing(counters)
    symbols = [x for x in counters.values() if not x.is_const]
    return (bounded(address), bounded(guards)), [*of_thread, *symbols]


def _meet(ours: _Lines, theirs: _Lines) -> bool:
    """Two different threads have one address, in one round of those that they share."""
    one, other = _keys(ours, theirs)
    order = np.lexsort((theirs.threads, other))
    threads, places = theirs.threads[order], other[order]
    begin, end = np.searchsorted(places, one, "left"), np.searchsorted(places, one, "right")
    some = begin < end
    least, most, mine = threads[begin[some]], threads[end[some] - 1], ours.threads[some]
    return bool(((least != mine) | (most != mine)).any())


def _keys(ours: _Lines, theirs: _Lines) -> tuple[Column, Column]:
    """Round and address as one number, alike where both are."""
    if not ours.rounds.any() and not theirs.rounds.any():
        return ours.places, theirs.places
    both = np.concatenate((ours.places, theirs.places))
    different, which = np.unique(both, return_inverse=True)
    keys = np.concatenate((ours.rounds, theirs.rounds)) * len(different) + which
    return keys[: len(ours.places)], keys[len(ours.places) :]
