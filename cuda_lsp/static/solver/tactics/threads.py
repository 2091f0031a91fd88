"""Addresses that hang on the thread's index in its block alone, and on rounds of short loops: one by one.

Tiles are written in orders that no digits show (``(y % 8 / 2 * 4 + y / 8) * 2 + y % 2``), and in a few
rounds. Where all else of the two addresses is the same for both threads, a table of a block's threads, in
each of their rounds, tells at once whether two meet.
"""

from __future__ import annotations

import math

import numpy as np

from cuda_lsp.ir.program import TID
from cuda_lsp.model import MAX_BLOCK_THREADS
from cuda_lsp.static import budgets, work
from cuda_lsp.static.solver.tactics.pair import ROUND, OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import FIRST, SECOND, SHARED, side
from cuda_lsp.static.symbolic.tabulate import Column, tabulated
from cuda_lsp.static.symbolic.terms import Op, Term


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
    common = t.from_monomials(parts[SHARED])
    ours = _by_thread(t.from_monomials(parts[FIRST]), axes, 1, p.guards)
    theirs = _by_thread(t.scale(t.add(t.from_monomials(parts[SECOND]), common), -1), axes, 2, p.guards)
    if ours is None or theirs is None:
        return None
    return None if _meet(*ours, *theirs) else Proved()


def _by_thread(address: Term, axes: list[Term], thread: int, guards: Term) -> tuple[Column, Column] | None:
    """Numbers of threads, and their addresses in rounds in which they come by; None: it hangs on more."""
    own = t.and_(*(c for c in t.conjuncts(guards) if side(c) == (FIRST if thread == 1 else SECOND)))
    of_thread = [
        t.symbol(f"{axis.args[0]}#{thread}", axis.args[1], axis.lo, axis.hi) for axis in axes
        if not axis.is_const
    ]  # fmt: skip
    known = _with_rounds_bounded(address, of_thread, own)
    if known is None:
        return None
    (address, own), symbols = known
    extents = [int(x.hi - x.lo) + 1 for x in symbols]
    count = math.prod(extents)
    if not of_thread or count > budgets.MOST_TABLE:
        return None
    work.DONE.instructions += budgets.TABLE_INSTRUCTIONS + count // budgets.TABLE_INSTRUCTIONS
    every = np.indices(extents, np.int64).reshape(len(symbols), count)
    columns = {x: every[i] + int(x.lo) for i, x in enumerate(symbols)}
    values = tabulated(address, columns)
    if values is None:
        return None
    live = np.ones(len(values), bool)
    for guard in t.conjuncts(own):
        holds = tabulated(guard, columns)
        live = live & holds if holds is not None else live
    number = np.zeros(len(values), np.int64)
    for x in of_thread:
        number = number * int(x.hi + 1) + columns[x]
    return number[live], values[live]


def _with_rounds_bounded(
    address: Term, of_thread: list[Term], guards: Term
) -> tuple[tuple[Term, Term], list[Term]] | None:
    """Address and guards with counters of rounds that know how far they go, and all that they hang on.

    None: nothing tells how far, or they hang on more.
    """
    bounds, counters = t.bounds_of(guards), dict[Term, Term]()
    for x in t.subterms(address):
        if x.op is Op.SYMBOL and x not in of_thread:
            low, high = bounds.get(x, (x.lo, x.hi))
            if not (side(x) and ROUND.fullmatch(x.args[0]) and 0 <= high - low < budgets.MOST_TABLE):
                return None
            counters[x] = t.symbol(*x.args, low, high)
    bounded = t.replacing(counters)
    symbols = [x for x in counters.values() if not x.is_const]
    return (bounded(address), bounded(guards)), [*of_thread, *symbols]


def _meet(our_threads: Column, ours: Column, their_threads: Column, theirs: Column) -> bool:
    """Two different threads have one address."""
    order = np.lexsort((their_threads, theirs))
    threads, places = their_threads[order], theirs[order]
    begin, end = np.searchsorted(places, ours, "left"), np.searchsorted(places, ours, "right")
    some = begin < end
    least, most, mine = threads[begin[some]], threads[end[some] - 1], our_threads[some]
    return bool(((least != mine) | (most != mine)).any())
