"""Whether two threads that were replayed alone race: conflicting accesses that no barrier or lock orders."""

from __future__ import annotations

from collections.abc import Hashable

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
    theirs: dict[tuple[Hashable, int], list[ThreadAccess]] = {}
    for access in run_b.accesses:
        if access.site == sites[1]:
            theirs.setdefault((memory_base(access.array)[0], passed_b[access.passed]), []).append(access)
    for mine in run_a.accesses:
        if mine.site != sites[0]:
            continue
        base, start = memory_base(mine.array)
        for access in theirs.get((base, passed_a[mine.passed]), ()):
            shift = memory_base(access.array)[1] - start
            shift += behind if mine.array.space is Space.SHARED else 0
            meets = mine.start < access.stop + shift and access.start + shift < mine.stop
            if meets and _conflict(mine, access, a.bid == b.bid, near):
                return mine, access
    return None


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
