"""Pairs of accesses that touch the same bytes from different agents: threads of a block, or blocks.

What the linear test of ``footprints`` flags is joined exactly, per pair of source sites.  Order inside a
warp is decided on the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from cuda_lsp.ir import conflicts
from cuda_lsp.model import Mode
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.footprints import (
    ATOMIC_EFFECTS,
    Group,
    TooManyPairs,
    Units,
    effect,
    in_time,
    offset_of,
    suspicious,
)
from cuda_lsp.static.execution import barrier_replay, critical_steps
from cuda_lsp.static.execution.equal_values import EqualValues
from cuda_lsp.static.execution.trace import Access, spread_out
from cuda_lsp.static.execution.values import Data, Flags, Spread

Ints = NDArray[np.int64]


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
    rounds: tuple[
        int, int
    ]  # of vectorised loops, in which each is executed; 0 where they are in none together
    same_value: bool  # both store, and no two that collide here store what may differ


def collide(group: Group, compatible: Callable[[Access, Access], bool]) -> list[Collision]:
    """One collision per unordered pair of sites of ``group`` (known offsets only).

    ``compatible(a, b)``: False when the two can never both happen unordered. Raises TooManyPairs.
    """
    found = suspicious(group)
    if found is None:
        return []
    in_time(group)
    units, bad = found
    return _by_site_pairs(group, _rows(group, units, bad), units.size, compatible)


def _rows(group: Group, units: Units, bad: Flags) -> Entries:
    """The single-lane accesses to suspicious units."""
    found: list[Entries] = []
    for i, a in enumerate(group.accesses):
        may = a.may[..., group.lanes]
        at = np.flatnonzero(may)
        if not len(at) or not a.size:  # its width did not count for the units
            continue
        offset = np.reshape(spread_out(offset_of(a), a.may.shape)[..., group.lanes], -1)[at]
        numbers = units.numbers(offset, a.size)
        row, part = np.nonzero(bad[numbers])
        at, width = at[row], may.shape[-1]
        must = np.reshape(a.must[..., group.lanes], -1)
        instance = np.zeros(len(at), np.int64) if may.ndim == 1 else at // width
        unit = units.unit(numbers[row, part])
        found.append(Entries(unit, at % width, np.full(len(at), i), instance, must[at]))
    return Entries(
        np.concatenate([e.unit for e in found]),
        np.concatenate([e.lane for e in found]),
        np.concatenate([e.access for e in found]),
        np.concatenate([e.instance for e in found]),
        np.concatenate([e.sure for e in found]),
    )


def _by_site_pairs(
    group: Group, rows: Entries, unit_bytes: int, compatible: Callable[[Access, Access], bool]
) -> list[Collision]:
    names = [(a.site.range, a.mode) for a in group.accesses]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    site = np.array([number[n] for n in names])[rows.access]
    kinds = {number[n]: effect(a, group.between_blocks) for n, a in zip(names, group.accesses, strict=True)}
    writes = [mode.writes for _, mode in dict.fromkeys(names)]
    widths: dict[int, set[int]] = {}
    for n, a in zip(names, group.accesses, strict=True):
        widths.setdefault(number[n], set()).add(a.size)
    constants = _constants(group.accesses, [number[n] for n in names])
    order = np.lexsort((rows.unit, site))
    sorted_rows = rows.taken(order)
    edges = np.searchsorted(site[order], np.arange(len(number) + 1))
    result: list[Collision] = []
    for p in range(len(number)):
        for q in range(p, len(number)):
            alike = len(widths[p] | widths[q]) == 1
            if not (writes[p] or writes[q]) or ({kinds[p], kinds[q]} <= ATOMIC_EFFECTS and alike):
                continue
            if group.comparing.over():
                raise TooManyPairs("comparing all pairs of sites takes too long")
            first, second = slice(edges[p], edges[p + 1]), slice(edges[q], edges[q + 1])
            one = constants[p] is not None and constants[p] == constants[q]
            found = _join(group, sorted_rows, first, second, unit_bytes, compatible, one)
            if found is not None:
                result.append(found)
    return result


def _constants(accesses: Sequence[Access], site: Sequence[int]) -> dict[int, tuple[int, int] | None]:
    """The number that all accesses of a site store, behind its bytes; None: none, or more than one."""
    found: dict[int, tuple[int, int] | None] = {}
    for a, number in zip(accesses, site, strict=True):
        stores = (a.size, a.stored) if a.mode is Mode.WRITE and isinstance(a.stored, int) else None
        found[number] = stores if found.get(number, stores) == stores else None
    return found


def _join(
    group: Group, rows: Entries, first: slice, second: slice, unit_bytes: int,
    compatible: Callable[[Access, Access], bool], constant: bool,
) -> Collision | None:  # fmt: skip
    """``constant``: all of them store one value."""
    units = rows.unit[second]
    start = np.searchsorted(units, rows.unit[first], "left")
    count = np.searchsorted(units, rows.unit[first], "right") - start
    edges = np.cumsum(count)
    total = int(edges[-1]) if len(edges) else 0
    done, told, best = 0, 0, None
    while done < min(total, budgets.MOST_JOINED_PAIRS) and not group.comparing.over(pairs=done - told):
        told = done
        # small stretches first: one pair of different warps is enough
        begin = int(np.searchsorted(edges, done, "right"))
        size = budgets.FIRST_JOINED_PAIRS if done == 0 else budgets.JOINED_PAIRS
        stop = max(int(np.searchsorted(edges, done + size, "right")), begin + 1)
        part = slice(first.start + begin, first.start + stop)
        stretch = slice(begin, stop)
        found = _best(group, rows, part, second, start[stretch], count[stretch], unit_bytes, compatible)
        if found is not None and (best is None or _tells_more(found, best)):
            best = found
        if best is not None and _enough(best, done, constant):
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
    _share_out(group, rows, i, j, good)
    _excuse_atomics(group, rows, i, j, good)
    kind = group.kinds
    code = kind[rows.access[i]] * len(group.accesses) + kind[rows.access[j]]
    for mine in _alike(code) if group.ordered else ():
        a, b = (group.accesses[n] for n in divmod(int(code[mine[0]]), len(group.accesses)))
        if not compatible(a, b):
            good[mine] = False
            continue
        lanes = (rows.lane[i[mine]] + base, rows.lane[j[mine]] + base)
        if not group.between_blocks and a.warp is not b.warp:
            good[mine] &= ~(same_warp[mine] & _ordered(a, b, *lanes))
        if a.held and b.held:
            good[mine] &= ~critical_steps.apart(a, b, *lanes, group.between_blocks)
        if group.phases is not None:
            good[mine] &= ~barrier_replay.orders(group.phases, a, b, *lanes, group.threads)
    if not good.any():
        return None
    i, j, same_warp, same_instruction = i[good], j[good], same_warp[good], same_instruction[good]
    sure = rows.sure[i] & rows.sure[j]
    same = _same_value(group, rows, i, j)
    in_step = same_warp & ~same_instruction  # lock step would order them
    order = (~sure, same, same_warp, in_step, rows.access[i], rows.access[j], rows.lane[i], rows.lane[j])
    rank = _first_by(order)
    a, b = (group.accesses[int(rows.access[k[rank]])] for k in (i, j))
    lanes = (int(rows.lane[i[rank]]) + base, int(rows.lane[j[rank]]) + base)
    every = bool(same_warp.all())
    byte = int(rows.unit[i[rank]]) * unit_bytes
    instruction, alike = bool(same_instruction[rank]), a.may.shape == b.may.shape
    rounds = (int(rows.instance[i[rank]]), int(rows.instance[j[rank]])) if alike else (0, 0)
    return Collision(a, b, lanes, byte, bool(sure[rank]), every, instruction, rounds, bool(same.all()))


def _alike(codes: Ints) -> list[Ints]:
    """Where each code stands; there is at least one."""
    order: Ints = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order]))
    return np.split(order, begins + 1)


def _first_by(keys: Iterable[Ints | Flags]) -> int:
    """The place of the least row, the first key counting most: what sorting all rows would put first."""
    left: Ints | None = None
    for key in keys:
        values = key if left is None else key[left]
        least = np.flatnonzero(values == values.min())
        left = least if left is None else left[least]
        if len(left) == 1:
            break
    return 0 if left is None else int(left[0])


def _enough(best: Collision, done: int, constant: bool) -> bool:
    """Whether nothing tells more, or what stores one value everywhere among ``done`` pairs and more."""
    if best.same_warp:
        return False
    return not best.same_value or constant or (best.sure and done >= budgets.JOINED_PAIRS)


def _tells_more(found: Collision, than: Collision) -> bool:
    """Threads of two warps rather than one; of these, threads that store different values.

    Of lanes of one warp, those that meet at one instruction.
    """

    def of(c: Collision) -> tuple[bool, bool, bool]:
        return (c.same_warp, c.same_value, c.same_warp and not c.same_instruction)

    return of(found) < of(than)


def _same_value(group: Group, rows: Entries, i: Ints, j: Ints) -> Flags:
    """Which pairs store one value for certain."""
    same = np.zeros(len(i), bool)
    if any(group.accesses[int(rows.access[k[0]])].mode is not Mode.WRITE for k in (i, j)):
        return same  # all rows are of two sites
    code = rows.access[i] * len(group.accesses) + rows.access[j]
    for mine in _alike(code):
        a, b = (group.accesses[n] for n in divmod(int(code[mine[0]]), len(group.accesses)))
        if a.size != b.size:
            continue  # 7 in two bytes is another half of 7 in four
        if isinstance(a.stored, Data):
            alike = Spread.GRID if group.between_blocks else Spread.BLOCK
            same[mine] = a.stored is b.stored and a.stored.spread >= alike
            if group.equal is not None and isinstance(b.stored, Data) and not same[mine].all():
                same[mine] = _one_number(group, group.equal, rows, (a, i[mine]), (b, j[mine]))
        else:
            one, other = (_values(group, rows, x, k[mine]) for x, k in ((a, i), (b, j)))
            same[mine] = False if one is None or other is None else one == other
    return same & (rows.unit[i] == rows.unit[j])


def _one_number(
    group: Group, equal: EqualValues, rows: Entries, one: tuple[Access, Ints], other: tuple[Access, Ints]
) -> Flags:
    """Which pairs store equal values that nobody knows: in one round of the loops that both are in.

    Copies of what nobody writes, and what is computed of these alone, are equal whichever their rounds.
    """
    (a, i), (b, j) = one, other
    base = group.lanes.start or 0
    whole = [equal.pure.of(x.stored, x.may.shape) for x in (a, b)]  # type: ignore[arg-type]
    if whole[0] is not None and whole[1] is not None:
        lanes = whole[0].shape[-1]
        first, second = (
            np.reshape(numbers, -1)[rows.instance[k] * lanes + rows.lane[k] + base]
            for numbers, k in zip(whole, (i, j), strict=True)
            if numbers is not None
        )
        return first == second
    if a is not b and (a.may.ndim > 1 or b.may.ndim > 1):
        return np.zeros(len(i), bool)
    first, second = (equal.of(x.stored)[rows.lane[k] + base] for x, k in (one, other))  # type: ignore[arg-type]
    return (first == second) & (rows.instance[i] == rows.instance[j])


def _values(group: Group, rows: Entries, access: Access, at: Ints) -> Ints | None:
    """What the access stores in these rows; None: that is not known."""
    if not isinstance(access.stored, (int, np.ndarray)):
        return None
    stored = spread_out(access.stored, access.may.shape)[..., group.lanes]
    if stored.ndim > access.may.ndim:
        return None  # of more rounds than the access has
    return np.reshape(stored, -1)[rows.instance[at] * stored.shape[-1] + rows.lane[at]]


def _share_out(group: Group, rows: Entries, i: Ints, j: Ints, good: Flags) -> None:
    """The threads of a group that copies together share out the bytes: they do not meet in one copy."""
    base = group.lanes.start or 0
    if not len(i) or group.accesses[int(rows.access[i[0]])].team is None:
        return
    copies = {id(a.team): a.team for a in group.accesses if a.team is not None}
    of = np.array([id(a.team) if a.team is not None else 0 for a in group.accesses])
    for name, team in copies.items():
        one = (of[rows.access[i]] == name) & (of[rows.access[j]] == name)
        one &= rows.instance[i] == rows.instance[j]
        good[one] &= team[rows.lane[i[one]] + base] != team[rows.lane[j[one]] + base]


def _excuse_atomics(group: Group, rows: Entries, i: Ints, j: Ints, good: Flags) -> None:
    """Atomics of one width are atomic to each other."""
    ends = [group.accesses[int(rows.access[k[0]])] for k in (i, j) if len(k)]
    if not ends or any(effect(a, group.between_blocks) not in ATOMIC_EFFECTS for a in ends):
        return  # all rows are of two sites
    atomic = np.array([effect(a, group.between_blocks) in ATOMIC_EFFECTS for a in group.accesses])
    first, second = rows.access[i], rows.access[j]
    width = np.array([a.size for a in group.accesses])
    vector = np.array([a.elementwise for a in group.accesses])
    alike = conflicts.of_one_width(width[first], width[second], vector[first] | vector[second])
    good &= ~(atomic[first] & atomic[second] & alike)


def _ordered(a: Access, b: Access, lanes_a: Ints, lanes_b: Ints) -> Flags:
    """Ordered by warp barriers; ``a.warp`` and ``b.warp`` differ."""
    if a.warp is None or b.warp is None:
        return np.zeros(len(lanes_a), bool)
    if a.sequence < b.sequence:
        return b.warp.knows(lanes_b, lanes_a, a.warp)
    return a.warp.knows(lanes_a, lanes_b, b.warp)
