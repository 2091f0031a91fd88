"""Addresses that hang on the thread's index in its block alone: all threads of the block, one by one.

Tiles are written in orders that no digits show (``(y % 8 / 2 * 4 + y / 8) * 2 + y % 2``). Where all else of
the two addresses is the same for both threads, a table of a block's threads tells at once whether two meet.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from cuda_lsp.ir.program import TID
from cuda_lsp.model import MAX_BLOCK_THREADS
from cuda_lsp.static import work
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
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
    """The address in each thread of the block, and which of them come by; None: it hangs on more."""
    extents = [int(axis.hi) + 1 for axis in axes]
    every = np.array(list(itertools.product(*map(range, extents))), np.int64)
    columns = {
        t.symbol(f"{axis.args[0]}#{thread}", axis.args[1], axis.lo, axis.hi): every[:, i]
        for i, axis in enumerate(axes) if not axis.is_const
    }  # fmt: skip
    work.DONE.instructions += len(every)
    values = tabulated(address, columns) if columns else None
    if values is None:
        return None
    live = np.ones(len(every), bool)
    for guard in t.conjuncts(guards):
        holds = tabulated(guard, columns) if side(guard) == (FIRST if thread == 1 else SECOND) else None
        live = live & holds if holds is not None else live
    return values, live


def _meet(ours: Column, mine: Column, theirs: Column, others: Column) -> bool:
    """Two different threads have one value. ``mine``, ``others``: those that come by."""
    there = np.sort(theirs[others])
    found = np.searchsorted(there, ours, "right") - np.searchsorted(there, ours, "left")
    itself = others & (ours == theirs)
    return bool((mine & (found > itself)).any())
