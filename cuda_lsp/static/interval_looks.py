"""Where the two accesses of a race are among the barriers of their block, for people who look at it.

The kernel is executed again, under the launch and arguments of the race's witness; nothing here is on the
keystroke path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from cuda_lsp.barrier_intervals import Interval, IntervalPicture, Meeting, Step
from cuda_lsp.ir import conflicts
from cuda_lsp.model import Mode, RaceKind, Site, linear_index
from cuda_lsp.source_names import called
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.execution import trace as execution
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Access, Budget, Trace, spread_out
from cuda_lsp.static.execution.values import Data, Lanes
from cuda_lsp.static.launches.arguments import sample

_MS = 1000.0  # of work; somebody waits for it, but not at a cursor
_EXECUTIONS = 64  # of an access that are looked at
_STEPS = 8  # of an interval that are shown


@frozen(eq=False)
class _Pair:
    """One execution of each access, and by which lane; ``blocks``: which of the trace's these are of."""

    path: execution.Path
    accesses: tuple[Access, Access]
    lanes: tuple[int, int]
    blocks: tuple[int, int]

    @property
    def late(self) -> bool:
        """Whether the access that stands first in the text is executed last."""
        return self.accesses[1].sequence < self.accesses[0].sequence

    @property
    def kind(self) -> RaceKind:
        """By the order of execution."""
        first, second = (access.mode for access in self.accesses[:: -1 if self.late else 1])
        return conflicts.kind(first, second)

    @property
    def apart(self) -> int:
        """In how many barriers; of two blocks, of the grid's."""
        a, b = self.accesses
        one, other = self.intervals
        return abs(a.grid_clock - b.grid_clock if self.blocks[0] != self.blocks[1] else one - other)

    @property
    def intervals(self) -> tuple[int, int]:
        first, second = (a.clock[b] for a, b in zip(self.accesses, self.blocks, strict=True))
        return first, second


def interval_picture(path: Path, meeting: Meeting, analyzer: Analyzer) -> IntervalPicture | None:
    """The intervals of a race; where executing the kernel does not come to it, the two accesses alone.

    None: the file has no such kernel any more.
    """
    kernel = analyzer.kernel(path, meeting.kernel)
    if kernel is None:
        return None
    racing = [pair for pair in _pairs(path, meeting, analyzer) if not pair.apart]
    return _picture(meeting, _nearest(racing, meeting)) if racing else _alone(meeting)


def interval_picture_of_text(
    path: Path, text: str, meeting: Meeting, analyzer: Analyzer
) -> IntervalPicture | None:
    """The same of a text that the file does not have, with the accesses at their places there.

    None: no barrier of the block stands between them there.
    """
    own = Analyzer(analyzer.settings_of(path))
    try:
        own.check(path, text, solver=False)
        pairs = _pairs(path, meeting, own)
        found = _picture(meeting, _nearest(pairs, meeting)) if pairs else None
        return found if found is not None and found.ordered else None
    finally:
        own.shutdown()


def _nearest(pairs: Sequence[_Pair], meeting: Meeting) -> _Pair:
    """Executed in the order of the race, if there is one, and as near to each other as can be."""

    def rank(pair: _Pair) -> tuple[bool, int, int]:
        a, b = pair.accesses
        return (pair.kind is not meeting.kind, pair.apart, abs(a.sequence - b.sequence))

    return min(pairs, key=rank)


def _pairs(path: Path, meeting: Meeting, analyzer: Analyzer) -> list[_Pair]:
    """The executions of both accesses that touch a common byte."""
    kernel = analyzer.kernel(path, meeting.kernel)
    if kernel is None:
        return []
    launch, seen = meeting.launch, meeting.witness
    arguments = {**(sample(kernel, launch) or {}), **launch.arguments, **seen.arguments}
    executed = tuple(dict.fromkeys(seen.blocks)) if seen.blocks else None
    gpu = analyzer.settings_of(path).gpu
    trace = execute(kernel, launch, arguments, gpu, Budget(milliseconds=_MS), blocks=executed)
    first, second = (trace.blocks.index(block) for block in seen.blocks or trace.blocks[:1] * 2)
    return list(_meetings(trace, meeting, (first, second)))


def _meetings(trace: Trace, meeting: Meeting, blocks: tuple[int, int]) -> Iterator[_Pair]:
    one, other = (
        block * trace.threads + linear_index(thread, trace.launch.block)
        for block, thread in zip(blocks, meeting.witness.threads, strict=True)
    )
    first, second = meeting.places
    for path in trace.paths:
        for a, b in product(_executions(path, first, one), _executions(path, second, other)):
            if a.array.id == b.array.id and (a.mode.writes or b.mode.writes) and _overlap(a, one, b, other):
                yield _Pair(path, (a, b), (one, other), blocks)


def _executions(path: execution.Path, place: Site, lane: int) -> list[Access]:
    """The first of what a lane executes there."""
    start = (place.range.path, place.range.start)
    there = (a for a in path.accesses if (a.site.range.path, a.site.range.start) == start)
    return list(islice((a for a in there if a.may[..., lane].any()), _EXECUTIONS))


def _overlap(a: Access, lane: int, b: Access, other: int) -> bool:
    """Whether they touch a common byte, in whichever rounds; of an address that is data, they may."""
    if isinstance(a.offset, Data) or isinstance(b.offset, Data):
        return True
    apart = _bytes(a.offset, a, lane)[:, None] - _bytes(b.offset, b, other)[None, :]
    return bool(((apart < b.size) & (-apart < a.size)).any())


def _bytes(offset: int | Lanes, access: Access, lane: int) -> Lanes:
    """Where the accesses of a lane begin: byte addresses in the array, ``(rounds,)``."""
    begins = spread_out(offset, access.may.shape)
    return begins[..., lane][np.broadcast_to(access.may, begins.shape)[..., lane]]


def _picture(meeting: Meeting, pair: _Pair) -> IntervalPicture:
    if meeting.between_blocks:
        first, second = pair.accesses
        return _alone(meeting, (first.mode, second.mode))
    block = pair.blocks[0]
    begin, last = min(pair.intervals), max(pair.intervals)
    ended: dict[int, Site] = {}
    for event in pair.path.barriers:
        ended.setdefault(event.clock[block], event.barrier.site)
    found = tuple(_interval(pair, n, ended.get(n)) for n in range(begin, last + 1))
    return evolve(_alone(meeting), begins=ended.get(begin - 1), intervals=found, whole=True)


def _interval(pair: _Pair, number: int, ends: Site | None) -> Interval:
    block = pair.blocks[0]
    shown: list[Step] = []
    left_out = 0
    for access in pair.path.accesses:
        if access.array.id != pair.accesses[0].array.id or access.clock[block] != number:
            continue
        step = _step(access, pair)
        again = any(s.site.range == step.site.range and s.mode is step.mode for s in shown)
        if any(step.racing) or (any(step.executed) and not again and len(shown) < _STEPS):
            shown.append(step)
        elif any(step.executed) and not again:
            left_out += 1
    return Interval(number + 1, tuple(shown), ends, left_out)


def _step(access: Access, pair: _Pair) -> Step:
    one, other = pair.lanes
    executed = (bool(access.may[..., one].any()), bool(access.may[..., other].any()))
    racing = (access is pair.accesses[0], access is pair.accesses[1])
    return Step(access.site, access.mode, executed, racing)


def _alone(meeting: Meeting, modes: tuple[Mode | None, Mode | None] = (None, None)) -> IntervalPicture:
    """The two accesses in one interval, and nothing around them."""
    witness, (first, second) = meeting.witness, meeting.places
    element = called(str(witness), witness.array, (first.text, second.text))
    each = (True, False), (False, True)
    steps = tuple(Step(s, m, e, e) for s, m, e in zip((first, second), modes, each, strict=True))
    if first.range == second.range:
        steps = (Step(first, modes[0], (True, True), (True, True)),)
    one = Interval(1, steps, None)
    return IntervalPicture(meeting.kernel, element, witness.threads, witness.blocks, None, (one,), False)
