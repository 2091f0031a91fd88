"""Regions in which a lock is held (``rewrites.locks``) in an execution, and what they keep apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import Block, Lock
from cuda_lsp.ir.walk import destinations, walk
from cuda_lsp.model import Space
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.trace import Access, Held
from cuda_lsp.static.execution.values import Address, Flags, Lanes

UNLIKE = "whether threads have the same lock"


def run(machine: Execution, s: Block, lock: Lock, mask: Mask) -> Mask | None:
    """The region's statements. What others stored when they had the lock is not known here, nor after."""
    place = machine.eval.value(lock.pointer)
    if not isinstance(place, Address):
        machine.not_modelled(f"line {s.site.range.start.line if s.site else 0}: which lock is taken")
        return machine.run(s.body, mask)
    outer = machine.held
    machine.held = (*outer, Held(place.array, place.offset, lock.scope))
    _forget(machine, s)
    try:
        return machine.run(s.body, mask)
    finally:
        machine.held = outer
        _forget(machine, s)


def _forget(machine: Execution, s: Block) -> None:
    for pointer in itertools.chain.from_iterable(map(destinations, walk(s.body))):
        for array in machine.facts.roots(pointer):
            machine.versions[array.id] = machine.versions.get(array.id, 0) + 1
            if array.space is Space.SHARED and array.id in machine.shared:
                machine.shared[array.id].forget()


def apart(a: Access, b: Access, lanes_a: Lanes, lanes_b: Lanes, between_blocks: bool) -> Flags:
    """``(pairs,)``: where a lock that both lanes hold keeps two accesses apart."""
    result = np.zeros(len(lanes_a), bool)
    for mine, theirs in _alike(a, b, between_blocks):
        if _plain(mine) and _plain(theirs):
            result |= _of(mine, lanes_a) == _of(theirs, lanes_b)
    return result


def one_lock(a: Access, b: Access, between_blocks: bool) -> bool:
    """Whichever threads execute the two hold the same lock."""
    return any(isinstance(x.offset, int) and x.offset == y.offset for x, y in _alike(a, b, between_blocks))


def unsure(a: Access, b: Access, between_blocks: bool) -> bool:
    """Only the data, or the round, tells whether two threads hold the same lock."""
    return any(not (_plain(x) and _plain(y)) for x, y in _alike(a, b, between_blocks))


def without_fence(a: Access, b: Access) -> bool:
    """Both hold a lock that orders nobody, for want of a fence."""
    return any(x.array is y.array and x.scope is None for x, y in itertools.product(a.held, b.held))


def _alike(a: Access, b: Access, between_blocks: bool) -> Iterator[tuple[Held, Held]]:
    for mine, theirs in itertools.product(a.held, b.held):
        orders = conflicts.lock_orders(mine.scope, theirs.scope, not between_blocks)
        one = mine.array is theirs.array and conflicts.seen_by_both(mine.array, not between_blocks)
        if one and orders:
            yield mine, theirs


def _plain(lock: Held) -> bool:
    return isinstance(lock.offset, int) or (isinstance(lock.offset, np.ndarray) and lock.offset.ndim == 1)


def _of(lock: Held, lanes: Lanes) -> Lanes:
    if isinstance(lock.offset, np.ndarray) and lock.offset.size > 1:
        return lock.offset[lanes]
    return np.full(len(lanes), lock.offset)
