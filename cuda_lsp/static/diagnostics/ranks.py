"""Accesses to shared memory that blocks of a cluster reach, as all of them see it: counted from rank 0."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import evolve

from cuda_lsp.ir.clusters import rank_of
from cuda_lsp.ir.program import STRETCH
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Lanes, Spread


def from_first_rank(trace: Trace, accesses: Iterable[Access]) -> list[Access]:
    """Offsets count from the executing block's own memory (``ir.clusters``)."""
    cluster = trace.kernel.cluster or (1, 1, 1)
    ranks = np.array([rank_of(block, cluster) for block in trace.blocks], np.int64)
    base = np.repeat(ranks * STRETCH, trace.threads)
    known: dict[int, int | Lanes | Data] = {}  # equal offsets stay one object
    found: list[Access] = []
    for a in accesses:
        offset = known.get(id(a.offset))
        if offset is None:
            offset = known[id(a.offset)] = _moved(a.offset, base)
        found.append(evolve(a, offset=offset))
    return found


def _moved(offset: int | Lanes | Data, base: Lanes) -> int | Lanes | Data:
    """What is known of data but its bounds is of one block: equal numbers are other places elsewhere."""
    if not isinstance(offset, Data):
        return offset + base
    low, high = (None if bound is None else bound + base for bound in (offset.low, offset.high))
    return evolve(offset, low=low, high=high, spread=Spread.THREAD, ticket=None, made=None)
