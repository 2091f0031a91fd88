"""Structures of arrays: ``x[i]``, ``x[pitch + i]``, ``x[2*pitch + i]`` are components, each of them stored.

Where both accesses of a pair are of elements that threads store, in global memory, a parameter that tells
them apart may be the length of a component, and then they do not overlap. Who only reads ``x[i + distance]``
may mean a neighbour's element (``x[i] += x[i + distance]``).
"""

from __future__ import annotations

from functools import lru_cache

from cuda_lsp.ir.program import Array
from cuda_lsp.model import Mode, SourceRange, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic.events import Access, Summary, accesses
from cuda_lsp.static.symbolic.intervals import Pair


def stored_both(pair: Pair, summary: Summary) -> bool:
    """Both accesses are stores to global memory, or reads of what the same thread stores there."""
    return all(a.array.space is Space.GLOBAL and _stored(a, summary) for a in (pair.first, pair.second))


def _stored(access: Access, summary: Summary) -> bool:
    if access.mode is Mode.WRITE:
        return True
    return access.mode is Mode.READ and (access.array, access.site.range) in _updated(summary)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def _updated(summary: Summary) -> frozenset[tuple[Array, SourceRange]]:
    """Where elements are read that the thread that reads them stores as well, each time."""
    every = [*accesses(summary.events)]
    stored = {(a.array, a.offset) for a in every if a.mode is Mode.WRITE}
    read = [a for a in every if a.mode is Mode.READ]
    others = {(a.array, a.site.range) for a in read if (a.array, a.offset) not in stored}
    return frozenset((a.array, a.site.range) for a in read) - others
