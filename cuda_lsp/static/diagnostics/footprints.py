"""Who touches which bytes: the linear test that clears almost every group of accesses.

Scatter the writers, gather everybody: a unit of memory is suspicious when an agent touches it that is not
the last one who wrote it.  Byte ranges of different widths are cut into units of their greatest common
divisor.  Which pairs collide there, and whether something orders them, is for ``collisions``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from cuda_lsp.ir import conflicts
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.execution.equal_values import EqualValues
from cuda_lsp.static.execution.trace import Access, Path, spread_out
from cuda_lsp.static.execution.values import Data, Flags, Lanes, distinct

Ints = NDArray[np.int64]


@frozen(eq=False)
class Group:
    """Accesses to one array that no barrier separates, as seen by one kind of agent.

    ``lanes``: the stretch of lanes looked at. ``agent``: agent of each lane, ``(lanes,)``. ``equal``: which
    lanes store equal values that nobody knows.
    """

    accesses: Sequence[Access]
    lanes: slice
    agent: Ints
    between_blocks: bool
    threads: int
    lock_step: bool
    warp_size: int = 32
    comparing: Comparing = field(factory=Comparing)
    equal: EqualValues | None = None
    phases: Path | None = None  # where barriers of some threads order them
    kinds: Ints = field(init=False)
    """The first access of the group that is ordered and guarded like each one, ``(accesses,)``."""

    @kinds.default  # type: ignore[misc]
    def _kinds(self) -> Ints:
        tickets = self.phases is not None or any(a.drawn is not None for a in self.accesses)
        names = [
            (a.guards, id(a.drawn), id(a.warp), a.sequence if tickets or a.held else 0) for a in self.accesses
        ]
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        return np.array([first[name] for name in names], np.int64)

    @property
    def ordered(self) -> bool:
        """Some pairs may be ordered or exclude each other."""
        plain = all(not a.guards and a.drawn is None and not a.held for a in self.accesses)
        return self.phases is not None or not (plain and len({id(a.warp) for a in self.accesses}) == 1)


_UPDATE, _LOAD = 2, 3
ATOMIC_EFFECTS = frozenset({_UPDATE, _LOAD})
"""Of ``effect``: they do not conflict among themselves when they are of one width."""


class TooManyPairs(Exception):
    """The exact join would take too long."""


def apart(group: Group) -> bool:
    """Whether no two agents of ``group`` touch the same byte, one of them writing (known offsets only)."""
    return suspicious(group) is None


def in_time(group: Group, cells: int = 0) -> None:
    if group.comparing.over(cells=cells):
        raise TooManyPairs("comparing all accesses takes too long")


@frozen(eq=False)
class Cells:
    """What one access touches: ``offset`` in bytes, by ``lane`` of the stretch, both ``(rows,)``."""

    kind: int
    width: int
    offset: Ints
    lane: Ints


@frozen(eq=False)
class Units:
    """Numbers for the units of memory, ``size`` bytes each, that a group touches: ``span`` numbers.

    ``low``: the unit with number 0. ``touched``: the units in order, where most between are not touched.
    """

    size: int
    low: int
    span: int
    touched: Ints | None = None

    @staticmethod
    def of(cells: Sequence[Cells]) -> Units:
        """Those of all cells. Raises TooManyPairs."""
        widths = {c.width for c in cells}
        bits = _folded(np.bitwise_or, np.array([_folded(np.bitwise_or, c.offset) for c in cells]))
        size = math.gcd(*widths) or 1
        if len(widths) > 1 or size & (size - 1) or bits & (size - 1):  # or some lie askew
            size = math.gcd(size, *(_folded(np.gcd, c.offset) for c in cells))
        low = min(int(c.offset.min()) for c in cells) // size
        span = max((int(c.offset.max()) + c.width) // size for c in cells) - low
        if span <= min(budgets.MOST_SPAN, 4096 + 64 * sum(len(c.offset) for c in cells)):
            return Units(size, low, span)
        if sum(len(c.offset) * (c.width // size) for c in cells) > budgets.MOST_SPAN:
            raise TooManyPairs("accesses touch too many bytes to compare")
        parts = [c.offset // size + k for c in cells for k in range(c.width // size)]
        touched = distinct(np.concatenate(parts))
        return Units(size, low, len(touched), touched)

    def numbers(self, offset: Ints, width: int) -> Ints:
        """The numbers of the units that ``width`` bytes at each offset take, ``(offsets, units)``."""
        unit = (offset // self.size)[:, None] + np.arange(width // self.size)
        return unit - self.low if self.touched is None else np.searchsorted(self.touched, unit)

    def column(self, cells: Cells, agents: Lanes) -> tuple[Ints, Lanes]:
        """The number of each unit that an access touches, and the agent that touches it there."""
        numbers = self.numbers(cells.offset, cells.width)
        return numbers.ravel(), np.repeat(agents[cells.lane], numbers.shape[1])

    def unit(self, numbers: Ints) -> Ints:
        """The units with these numbers."""
        return numbers + self.low if self.touched is None else self.touched[numbers]


def _folded(operation: np.ufunc, values: Ints) -> int:
    return int(operation.reduce(values))


def suspicious(group: Group) -> tuple[Units, Flags] | None:
    """Units where agents conflict before warp order is considered, by number; None: nowhere.

    Raises TooManyPairs.
    """
    if not any(a.mode.writes for a in group.accesses):
        return None
    cells = [c for c in (_cells(kind, a, group.lanes) for kind, a in _different(group)) if len(c.offset)]
    if not cells:
        return None
    units = Units.of(cells)
    agents: Lanes = (group.agent + 1).astype(np.int32)  # 0: nobody
    columns: dict[int, list[tuple[Ints, Lanes]]] = {kind: [] for kind in range(4)}
    for c in cells:
        columns[c.kind].append(units.column(c, agents))
    in_time(group, sum(len(c.offset) * (c.width // units.size) for c in cells))
    bad = np.zeros(units.span, bool)
    writer = _last(columns[1], units.span)
    for number, agent in itertools.chain(*columns.values()):
        owner = writer[number]
        bad[number[(owner != 0) & (owner != agent)]] = True
    if columns[2] and columns[0]:
        updater = _last(columns[2], units.span)
        shared = np.zeros(units.span, bool)
        for number, agent in columns[2]:
            shared[number[updater[number] != agent]] = True
        for number, agent in columns[0]:
            owner = updater[number]
            bad[number[(owner != 0) & ((owner != agent) | shared[number])]] = True
    _mixed_widths(cells, agents, units, bad)
    return (units, bad) if bad.any() else None


def _mixed_widths(cells: Sequence[Cells], agents: Lanes, units: Units, bad: Flags) -> None:
    """Marks units that one agent updates, and another updates or loads, by atomics of different widths."""
    atomics = [c for c in cells if c.kind in ATOMIC_EFFECTS]
    mixed = len({c.width for c in atomics}) > 1
    for width in {c.width for c in atomics if c.kind == _UPDATE} if mixed else ():
        alike, others = (
            [
                units.column(c, agents)
                for c in atomics
                if (c.width == width) is same and (c.kind == _UPDATE or not same)
            ]
            for same in (True, False)
        )
        updater = _last(alike, units.span)
        shared = np.zeros(units.span, bool)
        for number, agent in alike:
            shared[number[updater[number] != agent]] = True
        for number, agent in others:
            owner = updater[number]
            bad[number[(owner != 0) & ((owner != agent) | shared[number])]] = True


def _last(columns: Sequence[tuple[Ints, Lanes]], span: int) -> Lanes:
    """For every unit the last of the agents that are in ``columns`` with it, 0: none."""
    last: Lanes = np.zeros(span, np.int32)
    for number, agent in columns:
        last[number] = agent
    return last


def _different(group: Group) -> list[tuple[int, Access]]:
    """One access for each set of cells and effect; a write stands for all that touch the same."""
    found: dict[object, list[tuple[Access, dict[int, Access]]]] = {}
    for a in group.accesses:
        offset = offset_of(a)
        total = offset if isinstance(offset, int) else (offset.shape, int(offset.sum()))
        alike = found.setdefault((total, a.size, id(a.may)), [])
        kinds = next((k for other, k in alike if np.array_equal(offset_of(other), offset)), None)
        if kinds is None:
            kinds = dict[int, Access]()
            alike.append((a, kinds))
        kinds.setdefault(effect(a, group.between_blocks), a)
    every = (kinds for alike in found.values() for _, kinds in alike)
    return [(k, a) for kinds in every for k, a in kinds.items() if k == 1 or 1 not in kinds]


def offset_of(a: Access) -> int | Ints:
    assert not isinstance(a.offset, Data)
    return a.offset


def _cells(kind: int, a: Access, lanes: slice) -> Cells:
    may: Flags = a.may
    offset = np.asarray(offset_of(a), np.int64)
    shape = (1,) * (may.ndim - offset.ndim) + offset.shape
    again = tuple(i for i in range(may.ndim - 1) if shape[i] == 1 and may.shape[i] > 1)
    may = _in_any(may, again)  # rounds that touch the same bytes
    offset = np.broadcast_to(offset, may.shape)[..., lanes]
    may = may[..., lanes]
    lane = spread_out(np.arange(int(may.shape[-1])), may.shape)
    if may.all():
        return Cells(kind, a.size, np.ravel(offset), np.ravel(lane))
    return Cells(kind, a.size, offset[may], lane[may])


def _in_any(may: Flags, axes: tuple[int, ...]) -> Flags:
    result: Any = may.any(axis=axes, keepdims=True) if axes else may
    return result


def effect(a: Access, between_blocks: bool) -> int:
    """0 read, 1 plain write, 2 atomic, 3 atomic load; those of block scope do not reach other blocks."""
    if a.mode.atomic and conflicts.reach(a.scope, None, not between_blocks):
        return _UPDATE if a.mode.writes else _LOAD
    return int(a.mode.writes)
