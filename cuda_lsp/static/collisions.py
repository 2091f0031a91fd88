"""Pairs of accesses that touch the same bytes from different agents: threads of a block, or blocks.

First a linear test per group (scatter the writers, gather everybody), which clears almost every
group; only what it flags is joined exactly, per pair of source sites.  Byte ranges of different widths
are cut into units of their greatest common divisor.  Order inside a warp is decided on the pairs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from cuda_lsp.model import Mode, Scope
from cuda_lsp.static import named_barriers
from cuda_lsp.static.trace import Access, Path, spread_out
from cuda_lsp.static.values import Data, Flags

Ints = NDArray[np.int64]
_MAX_SPAN = 1 << 22
_FIRST_PAIRS, _PAIRS, _MAX_PAIRS = 4_000, 100_000, 400_000


@frozen(eq=False)
class Entries:
    """Single-lane accesses, one row per touched unit of memory; all fields ``(rows,)``.

    ``access``: index into the group. ``instance``: which execution of the instruction (vectorised rounds).
    """

    unit: Ints
    lane: Ints
    access: Ints
    instance: Ints
    sure: Flags

    def taken(self, rows: Ints) -> Entries:
        """These rows, in this order."""
        return Entries(
            self.unit[rows], self.lane[rows], self.access[rows], self.instance[rows], self.sure[rows]
        )


@frozen(eq=False)
class Collision:
    """Two single-lane accesses that collide. ``unit_bytes``: first common byte, from the array's start."""

    first: Access
    second: Access
    lanes: tuple[int, int]
    byte: int
    sure: bool
    same_warp: bool  # every colliding pair of these two sites is of one warp
    same_instruction: bool


@frozen(eq=False)
class Group:
    """Accesses to one array that no barrier separates, as seen by one kind of agent.

    ``lanes``: the stretch of lanes looked at. ``agent``: agent of each lane, ``(lanes,)``.
    """

    accesses: Sequence[Access]
    lanes: slice
    agent: Ints
    between_blocks: bool
    threads: int
    lock_step: bool
    warp_size: int = 32
    deadline: float = math.inf  # of time.perf_counter()
    phases: Path | None = None  # of named barriers, where there are some
    kinds: Ints = field(init=False)
    """The first access of the group that is ordered and guarded like each one, ``(accesses,)``."""

    @kinds.default  # type: ignore[misc]
    def _kinds(self) -> Ints:
        tickets = self.phases is not None or any(a.drawn is not None for a in self.accesses)
        names = [(a.guards, id(a.drawn), id(a.warp), a.sequence if tickets else 0) for a in self.accesses]
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        return np.array([first[name] for name in names], np.int64)

    @property
    def ordered(self) -> bool:
        """Some pairs may be ordered or exclude each other."""
        plain = all(not a.guards and a.drawn is None for a in self.accesses)
        return self.phases is not None or not (plain and len({id(a.warp) for a in self.accesses}) == 1)


class TooManyPairs(Exception):
    """The exact join would take too long."""


def collide(group: Group, compatible: Callable[[Access, Access], bool]) -> list[Collision]:
    """One collision per unordered pair of sites of ``group`` (known offsets only).

    ``compatible(a, b)``: False when the two can never both happen unordered. Raises TooManyPairs.
    """
    accesses = group.accesses
    if not any(a.mode.writes for a in accesses):
        return []
    unit_bytes, entries = _entries(group)
    suspicious = _suspicious(group, entries)
    if suspicious is None:
        return []
    if time.perf_counter() > group.deadline:
        raise TooManyPairs("comparing all accesses takes too long")
    rows = entries.taken(np.flatnonzero(np.isin(entries.unit, suspicious)))
    return _by_site_pairs(group, rows, unit_bytes, compatible)


def _entries(group: Group) -> tuple[int, Entries]:
    columns: list[tuple[Ints, Ints, Ints, Flags]] = []
    for a in group.accesses:
        may = a.may[..., group.lanes]
        assert not isinstance(a.offset, Data)
        offset = np.reshape(spread_out(a.offset, a.may.shape)[..., group.lanes], -1)
        at = np.flatnonzero(may)
        width = may.shape[-1]
        flat = may.ndim == 1
        lane, instance = (at, np.zeros(len(at), np.int64)) if flat else (at % width, at // width)
        sure = np.ones(len(at), bool) if a.must is a.may else np.reshape(a.must[..., group.lanes], -1)[at]
        columns.append((offset[at], lane, instance, sure))
    sizes = [a.size for a in group.accesses]
    unit = _unit(sizes, [c[0] for c in columns])
    counts = [a.size // unit for a in group.accesses]
    units: list[Ints] = []
    rest: list[tuple[Ints, Ints, Ints, Flags]] = []
    for i, ((offset, lane, instance, sure), n) in enumerate(zip(columns, counts, strict=True)):
        if n == 1:
            units.append(offset // unit)
            rest.append((lane, np.full(len(lane), i), instance, sure))
            continue
        units.append(np.reshape(offset[:, None] // unit + np.arange(n), -1))
        rows = np.repeat(np.arange(len(lane)), n)
        rest.append((lane[rows], np.full(len(rows), i), instance[rows], sure[rows]))
    return unit, Entries(
        np.concatenate(units),
        np.concatenate([r[0] for r in rest]),
        np.concatenate([r[1] for r in rest]),
        np.concatenate([r[2] for r in rest]),
        np.concatenate([r[3] for r in rest]),
    )


def _unit(sizes: list[int], offsets: list[Ints]) -> int:
    size = sizes[0]
    if all(s == size for s in sizes) and not any((o % size).any() for o in offsets):
        return size
    unit = math.gcd(*sizes)
    for o in offsets:
        unit = math.gcd(unit, math.gcd(*o.tolist()))
    return max(unit, 1)


def _suspicious(group: Group, entries: Entries) -> Ints | None:
    """Units where agents conflict before warp order is considered; None: nowhere."""
    unit, lane = entries.unit, entries.lane
    if len(unit) == 0:
        return None
    low = int(unit.min())
    span = int(unit.max()) - low + 1
    if span > _MAX_SPAN:
        _, index = np.unique(unit, return_inverse=True)
        span = len(unit)
    else:
        index = unit - low
    agent = group.agent[lane]
    kinds = np.array([_kind(a, group.between_blocks) for a in group.accesses])[entries.access]
    writes, atomics, reads = kinds == 1, kinds == 2, kinds == 0
    bad: list[Ints] = []
    writer = np.full(span, -1)
    writer[index[writes]] = agent[writes]
    owner = writer[index]
    bad.append(unit[(owner >= 0) & (owner != agent)])
    if atomics.any() and reads.any():
        updater = np.full(span, -1)
        updater[index[atomics]] = agent[atomics]
        shared = np.zeros(span, bool)
        shared[index[atomics][updater[index[atomics]] != agent[atomics]]] = True
        owner = updater[index]
        bad.append(unit[reads & (owner >= 0) & ((owner != agent) | shared[index])])
    found = np.unique(np.concatenate(bad))
    return found if len(found) else None


def _kind(a: Access, between_blocks: bool) -> int:
    """0 read, 1 plain write, 2 atomic; an atomic of block scope does not reach other blocks."""
    if a.mode is Mode.ATOMIC:
        return 1 if between_blocks and a.scope is Scope.BLOCK else 2
    return int(a.mode is Mode.WRITE)


def _by_site_pairs(
    group: Group, rows: Entries, unit_bytes: int, compatible: Callable[[Access, Access], bool]
) -> list[Collision]:
    names = [(a.site.range, a.mode) for a in group.accesses]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    site = np.array([number[n] for n in names])[rows.access]
    kinds = {number[n]: _kind(a, group.between_blocks) for n, a in zip(names, group.accesses, strict=True)}
    order = np.lexsort((rows.unit, site))
    sorted_rows = rows.taken(order)
    edges = np.searchsorted(site[order], np.arange(len(number) + 1))
    result: list[Collision] = []
    for p in range(len(number)):
        for q in range(p, len(number)):
            if {kinds[p], kinds[q]} in ({0}, {2}):
                continue
            if time.perf_counter() > group.deadline:
                raise TooManyPairs("comparing all pairs of sites takes too long")
            first, second = slice(edges[p], edges[p + 1]), slice(edges[q], edges[q + 1])
            found = _join(group, sorted_rows, first, second, unit_bytes, compatible)
            if found is not None:
                result.append(found)
    return result


def _join(
    group: Group, rows: Entries, first: slice, second: slice, unit_bytes: int,
    compatible: Callable[[Access, Access], bool],
) -> Collision | None:  # fmt: skip
    units = rows.unit[second]
    start = np.searchsorted(units, rows.unit[first], "left")
    count = np.searchsorted(units, rows.unit[first], "right") - start
    edges = np.cumsum(count)
    total = int(edges[-1]) if len(edges) else 0
    done, best = 0, None
    while done < min(total, _MAX_PAIRS) and time.perf_counter() < group.deadline:
        # small stretches first: one pair of different warps is enough
        begin = int(np.searchsorted(edges, done, "right"))
        size = _FIRST_PAIRS if done == 0 else _PAIRS
        stop = max(int(np.searchsorted(edges, done + size, "right")), begin + 1)
        part = slice(first.start + begin, first.start + stop)
        stretch = slice(begin, stop)
        found = _best(group, rows, part, second, start[stretch], count[stretch], unit_bytes, compatible)
        if found is not None and (best is None or (best.same_warp and not found.same_warp)):
            best = found
        if best is not None and not best.same_warp and best.sure:
            return best
        done = int(edges[stop - 1])
    if best is None and done < total:
        raise TooManyPairs(f"{total} pairs of threads share words, too many to compare in the time given")
    return best


def _best(
    group: Group, rows: Entries, first: slice, second: slice, start: Ints, count: Ints, unit_bytes: int,
    compatible: Callable[[Access, Access], bool],
) -> Collision | None:  # fmt: skip
    i = np.repeat(np.arange(len(count)), count) + first.start
    within = np.arange(len(i)) - np.repeat(np.cumsum(count) - count, count)
    j = np.repeat(start, count) + within + second.start
    lane_i, lane_j = rows.lane[i], rows.lane[j]
    good = group.agent[lane_i] != group.agent[lane_j]
    i, j = i[good], j[good]
    if len(i) == 0:
        return None
    same_instruction = (rows.access[i] == rows.access[j]) & (rows.instance[i] == rows.instance[j])
    base = group.lanes.start or 0
    good = np.ones(len(i), bool)
    same_warp = np.zeros(len(i), bool)
    if not group.between_blocks:
        same_warp = rows.lane[i] // group.warp_size == rows.lane[j] // group.warp_size
        if group.lock_step:
            good &= ~same_warp | same_instruction
    kind = group.kinds
    code = kind[rows.access[i]] * len(group.accesses) + kind[rows.access[j]]
    for pair in np.unique(code) if group.ordered else ():
        k, m = divmod(int(pair), len(group.accesses))
        a, b, mine = group.accesses[k], group.accesses[m], code == pair
        if not compatible(a, b):
            good[mine] = False
            continue
        lanes = (rows.lane[i[mine]] + base, rows.lane[j[mine]] + base)
        if not group.between_blocks and a.warp is not b.warp:
            good[mine] &= ~(same_warp[mine] & _ordered(a, b, *lanes))
        if group.phases is not None:
            good[mine] &= ~named_barriers.orders(group.phases, a, b, *lanes)
    if not good.any():
        return None
    i, j, same_warp, same_instruction = i[good], j[good], same_warp[good], same_instruction[good]
    sure = rows.sure[i] & rows.sure[j]
    rank = np.lexsort((rows.lane[j], rows.lane[i], rows.access[j], rows.access[i], same_warp, ~sure))[0]
    a, b = (group.accesses[int(rows.access[k[rank]])] for k in (i, j))
    lanes = (int(rows.lane[i[rank]]) + base, int(rows.lane[j[rank]]) + base)
    every = bool(same_warp.all())
    byte = int(rows.unit[i[rank]]) * unit_bytes
    return Collision(a, b, lanes, byte, bool(sure[rank]), every, bool(same_instruction[rank]))


def _ordered(a: Access, b: Access, lanes_a: Ints, lanes_b: Ints) -> Flags:
    """Ordered by warp barriers; ``a.warp`` and ``b.warp`` differ."""
    if a.warp is None or b.warp is None:
        return np.zeros(len(lanes_a), bool)
    if a.sequence < b.sequence:
        return b.warp.knows(lanes_b, lanes_a, a.warp)
    return a.warp.knows(lanes_a, lanes_b, b.warp)
