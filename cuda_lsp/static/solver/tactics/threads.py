"""Addresses that hang on the thread's index in its block alone, and on rounds of short loops: one by one.

Tiles are written in orders that no digits show (``(y % 8 / 2 * 4 + y / 8) * 2 + y % 2``). Where all else of
the two addresses is the same for both threads, a table of a block's threads, in each of their rounds, tells at
once whether two meet.
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
    """Threads, by number, and addresses where they come by, in each of their rounds; None: it hangs on more."""
    own = t.and_(*(c for c in t.conjuncts(guards) if side(c) == (FIRST if thread == 1 else SECOND)))
    of_thread = [
        t.symbol(f"{axis.args[0]}#{thread}", axis.args[1], axis.lo, axis.hi) for axis in axes
        if not axis.is_const
    ]  # fmt: skip
    ranges = {x: (int(x.lo), int(x.hi)) for x in of_thread}
    bounds = t.bounds_of(own)
    for counter in t.subterms(address):
        if counter.op is Op.SYMBOL and counter not in ranges:
            low, high = bounds.get(counter, (counter.lo, counter.hi))
            if not (side(counter) and ROUND.fullmatch(counter.args[0]) and high - low < budgets.MOST_TABLE):
                return None
            ranges[counter] = (int(low), int(high))
    count = math.prod(max(0, high - low + 1) for low, high in ranges.values())
    if not of_thread or count > budgets.MOST_TABLE:
        return None
    work.DONE.instructions += count
    every = np.indices([high - low + 1 for low, high in ranges.values()], np.int64)
    columns = {x: every[i].ravel() + low for i, (x, (low, _)) in enumerate(ranges.items())}
    values = tabulated(address, columns)
    if values is None:
        return None
    live = np.ones(len(values), bool)
    for guard in t.conjuncts(own):
        holds = tabulated(guard, columns)
        live = live & holds if holds is not None else live
    number = np.zeros(len(values), np.int64)
    for x in of_thread:
        number = number * (ranges[x][1] + 1) + columns[x]
    return number[live], values[live]


def _meet(our_threads: Column, ours: Column, their_threads: Column, theirs: Column) -> bool:
    """Two different threads have one address."""
    order = np.lexsort((their_threads, theirs))
    threads, places = their_threads[order], theirs[order]
    begin, end = np.searchsorted(places, ours, "left"), np.searchsorted(places, ours, "right")
    some = begin < end
    least, most, mine = threads[begin[some]], threads[end[some] - 1], our_threads[some]
    return bool(((least != mine) | (most != mine)).any())
