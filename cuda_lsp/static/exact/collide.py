"""Whether two threads that were replayed alone race: conflicting accesses that no barrier or lock orders."""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterator

from attrs import define, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.clusters import cluster_of, rank_of
from cuda_lsp.ir.program import STRETCH, BarrierScope
from cuda_lsp.model import Dim3, Site, Space
from cuda_lsp.static.exact.replay import PassedBarrier, Run, ThreadAccess
from cuda_lsp.static.exact.threads import Thread, memory_base
from cuda_lsp.static.exact.values import Value

Met = tuple[ThreadAccess, ThreadAccess]
"""Accesses of the first and of the second thread."""


def collide(
    first: tuple[Thread, Run],
    second: tuple[Thread, Run],
    sites: tuple[Site, Site],
    cluster: Dim3 | None = None,
) -> Met | None:
    """Two conflicting, unordered accesses at the two sites (first thread at the first site), if any.

    ``cluster``: the blocks of one, where the kernel tells.
    """
    (a, run_a), (b, run_b) = first, second
    near = cluster is not None and cluster_of(a.bid, cluster) == cluster_of(b.bid, cluster)
    passed_a, passed_b = closing_counts(run_a, a, b, near), closing_counts(run_b, b, a, near)
    behind = (rank_of(b.bid, cluster) - rank_of(a.bid, cluster)) * STRETCH if near and cluster else 0
    theirs: dict[tuple[Hashable, int], list[_Touched]] = {}
    for access in run_b.accesses:
        if access.site == sites[1]:
            touched = _touched(access, behind)
            theirs.setdefault((touched.base, passed_b[access.passed]), []).append(touched)
    sought = {key: _Sought.among(touched) for key, touched in theirs.items()}
    for access in run_a.accesses:
        if access.site != sites[0]:
            continue
        mine = _touched(access, 0)
        places = sought.get((mine.base, passed_a[access.passed]))
        for other in places.meeting(mine) if places else ():
            if _conflict(access, other.access, a.bid == b.bid, near):
                return access, other.access
    return None


@define(eq=False)
class _Touched:
    """The bytes of its object that an access touches."""

    base: Hashable
    start: int
    stop: int
    access: ThreadAccess


def _touched(access: ThreadAccess, behind: int) -> _Touched:
    """``behind``: how far its block's shared memory lies behind that of the other's."""
    base, start = memory_base(access.array)
    start += access.start + (behind if access.array.space is Space.SHARED else 0)
    return _Touched(base, start, start + access.stop - access.start, access)


@frozen
class _Sought:
    """Accesses by where they start, and the most bytes of one; ``order``: in which they happened."""

    starts: list[int]
    order: list[int]
    widest: int
    touched: list[_Touched]

    @classmethod
    def among(cls, touched: list[_Touched]) -> _Sought:
        order = sorted(range(len(touched)), key=lambda n: touched[n].start)
        widest = max(each.stop - each.start for each in touched)
        return cls([touched[n].start for n in order], order, widest, touched)

    def meeting(self, mine: _Touched) -> Iterator[_Touched]:
        """Those that share a byte with ``mine``, as they happened."""
        first = bisect.bisect_right(self.starts, mine.start - self.widest)
        last = bisect.bisect_left(self.starts, mine.stop)
        for number in sorted(self.order[first:last]):
            if mine.start < self.touched[number].stop:
                yield self.touched[number]


def closing_counts(run: Run, mine: Thread, other: Thread, near: bool) -> list[int]:
    """For each prefix of the barrier log: how many of its barriers order the two threads."""
    counts = [0]
    for barrier in run.barriers:
        counts.append(counts[-1] + _orders(barrier, mine, other, near))
    return counts


def _orders(barrier: PassedBarrier, a: Thread, b: Thread, near: bool) -> bool:
    """``near``: their blocks are of one cluster."""
    if barrier.scope is BarrierScope.GRID:
        return True
    if a.bid != b.bid:
        return near and barrier.scope is BarrierScope.CLUSTER
    if barrier.scope.of_blocks:
        return True
    if barrier.scope is BarrierScope.NAMED:
        return barrier.everyone
    size = barrier.size or a.warp_size if barrier.scope is BarrierScope.TILE else a.warp_size
    if a.linear // size != b.linear // size:
        return False
    if barrier.mask is None:
        return True
    return all(barrier.mask >> (thread.linear % thread.warp_size) & 1 for thread in (a, b))


def _is_one(place: Value, same_block: bool) -> bool:
    """Whether a lock is one for both threads."""
    return same_block or (isinstance(place, tuple) and place[0].space is not Space.SHARED)


def _conflict(a: ThreadAccess, b: ThreadAccess, same_block: bool, near: bool) -> bool:
    locks = (scope for place, scope in a.held & b.held if _is_one(place, same_block))
    if any(conflicts.lock_orders(scope, scope, same_block) for scope in locks):
        return False
    seen = conflicts.seen_by_both(a.array, same_block or near)
    return seen and conflicts.conflicting(a.touch, b.touch, same_block)
