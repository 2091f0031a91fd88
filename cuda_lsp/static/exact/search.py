"""Races that a real schedule shows: one thread stands before an access, another reaches one that conflicts.

A run over ordinary inputs (``ordinary_inputs``) lists where the places in doubt touch the same bytes. Each
candidate is then shown: its first thread runs up to its access and stays there, the others go on, and one
of them must come to the second access. Nothing that the first thread does afterwards can have led it there,
no barrier, lock or counter stood between them. Bounded search: what it does not find is not proved absent.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import Array, BarrierScope, Kernel, Var
from cuda_lsp.model import Dim3, GpuModel, LaunchConfig, Mode, SourceRange, Space
from cuda_lsp.static import work
from cuda_lsp.static.data_flow import DataFlow, data_flow
from cuda_lsp.static.exact.code import Code, Touch, linear_code
from cuda_lsp.static.exact.machine import Choice, Excluded, Runner, runners_of
from cuda_lsp.static.exact.memory import Memory
from cuda_lsp.static.exact.ordinary_inputs import FILLINGS, Arguments, Contents, Filling, argument_sets
from cuda_lsp.static.exact.run import Pending, Schedule, Unfinished
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.launches.arguments import free_scalars

Sites = tuple[SourceRange, SourceRange]
Places = tuple[SourceRange, ...]
"""Where accesses are watched, and counted."""

_CANDIDATES = 3  # pairs of accesses shown for one pair of places and one input
_KEPT = 6  # accesses of one warp remembered for one place and one word of memory
_MOST_TOUCHES = 60_000  # remembered accesses of one run
_RUN = 0.3  # seconds of ``work`` for one run
_GLANCE = 3  # inputs
_SEVERAL = 8  # threads at a place, for its races to be expected
_WARPS = (0, 1)  # executed where nothing but the lanes of a warp wait for one another
_MOST_CHOICES = 2  # conditions that nobody knows, one inside the other
_LANES = 10  # of these warps, where not even they wait


@frozen(eq=False)
class Shown:
    """Two accesses that two threads may perform next in one state of a real execution."""

    first: Pending
    second: Pending
    arguments: Mapping[str, int]
    filling: Filling
    choices: frozenset[Choice]
    arrays: frozenset[Array]  # whose contents some thread wanted to know

    @property
    def same_block(self) -> bool:
        return self.first.runner.block == self.second.runner.block

    def asked(self) -> dict[tuple[Array, int], int]:
        """What the two threads read of what memory held at the start."""
        return {**self.first.runner.asked, **self.second.runner.asked}


@frozen(eq=False)
class _Seen:
    """An access that happened in a run."""

    runner: int
    block: int
    warp: int
    passed: int
    number: int
    start: int
    stop: int
    touch: Touch


_Words = dict[tuple[object, int], list[_Seen]]
"""Accesses by object and word of memory."""


@define(eq=False)
class _Log:
    """The accesses of a run at the places that were watched."""

    places: Places
    words: dict[SourceRange, _Words]
    ended_early: bool = False


_Threads = tuple[list[Thread], bool]
"""Those that are run, and whether these are all blocks."""


class _Met(Exception):
    def __init__(self, first: Pending, second: Pending) -> None:
        self.first, self.second = first, second


@define(eq=False)
class Search:
    """Looks for the wanted pairs of places under one launch, until ``deadline`` (``work.now``)."""

    kernel: Kernel
    launch: LaunchConfig
    gpu: GpuModel
    deadline: float
    flow: DataFlow
    code: Code
    lock_step: bool = False
    standing: dict[frozenset[Space], _Threads] = field(factory=dict[frozenset[Space], _Threads])
    passed_over: bool = False  # some run met a condition that nobody knows

    @staticmethod
    def of(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, deadline: float) -> Search:
        """Raises ``RecursionError`` when the kernel's expressions nest too deeply."""
        lock_step = kernel.directives.warp_synchronous or not gpu.independent_threads
        flow = data_flow(kernel)
        return Search(kernel, launch, gpu, deadline, flow, linear_code(kernel, flow.slice), lock_step)

    def shown(self, wanted: Collection[Sites], *, glance: bool = False) -> dict[Sites, Shown]:
        """Races among the wanted pairs, each under inputs that do not single it out.

        ``glance``: a few inputs only.
        """
        found: dict[Sites, Shown] = {}
        refuted: set[Sites] = set()
        sets = list(argument_sets(self.kernel, self.launch))
        across = not self.launch.assumed  # else the grid may be one block
        inputs = itertools.product((None, True, False), sets, FILLINGS)
        for choice, given, filling in itertools.islice(inputs, _GLANCE if glance else None):
            if choice is not None and not self.passed_over:
                break
            left = [pair for pair in wanted if pair not in found and pair not in refuted]
            if not left or work.now() > self.deadline:
                break
            for pair, shown in self._under(left, given.values, filling, choice, across).items():
                if self._holds_for(pair, shown, sets, choice):
                    found[pair] = shown
                else:
                    refuted.add(pair)
        return found

    def _holds_for(self, pair: Sites, shown: Shown, sets: Sequence[Arguments], choice: bool | None) -> bool:
        """Other values of the open scalars show it too.

        All that agree with one another do, where they let threads come to both places; and some others.
        """
        free = set(free_scalars(self.kernel, self.launch))
        sources = (x for place in pair for access in self.flow.at(place) for x in access.address)
        if not any(isinstance(x, Var) and x.name in free for x in sources):
            return True  # they may only decide who comes there
        again = 0
        for given in sets:
            if given.values is shown.arguments or work.now() > self.deadline:
                continue
            if again and not given.equal:
                break
            try:
                seen = self._log(pair, given.values, shown.filling, choice)
            except Excluded:
                continue
            if any(len({x.runner for x in _all(seen.words[place])}) < _SEVERAL for place in pair):
                continue
            if self._shows(pair, seen, given.values, shown.filling, choice):
                again += 1
            elif given.equal:
                return False
        return again > 0

    def _shows(
        self, pair: Sites, seen: _Log, arguments: Mapping[str, int], filling: Filling, choice: bool | None
    ) -> bool:
        if self._among(pair, seen, arguments, filling, choice, across=True) is not None:
            return True
        others = [f for f in FILLINGS if f != filling] if self.flow.deciding else []
        return any(self._under((pair,), arguments, other, choice, across=True) for other in others)

    def _under(
        self, wanted: Iterable[Sites], arguments: Mapping[str, int], filling: Filling, choice: bool | None,
        across: bool,
    ) -> dict[Sites, Shown]:  # fmt: skip
        pairs = list(wanted)
        found: dict[Sites, Shown] = {}
        for briefly in (True, False):
            left = [pair for pair in pairs if pair not in found]
            try:
                until = left if briefly else ()
                seen = self._log(tuple(itertools.chain(*left)), arguments, filling, choice, until)
            except Excluded:
                break
            for pair in left:
                shown = self._among(pair, seen, arguments, filling, choice, across)
                if shown is not None:
                    found[pair] = shown
            if not seen.ended_early or len(found) == len(pairs):
                break
        return found

    def _among(
        self, pair: Sites, seen: _Log, arguments: Mapping[str, int], filling: Filling, choice: bool | None,
        across: bool,
    ) -> Shown | None:  # fmt: skip
        for first, second in itertools.islice(self._candidates(pair, seen, across), _CANDIDATES):
            if work.now() > self.deadline:
                return None
            shown = self._show(pair, first, second, seen.places, arguments, filling, choice)
            if shown is not None and (_one_choice(shown) or self._improves(shown)):
                return shown
        return None

    def _improves(self, shown: Shown) -> bool:
        """One thread has read what the other replaces when its condition, which nobody knows, is true.

        Floats are not computed: ``if (d[k] < v) d[k] = v``. Whether it is ever true is the condition.
        """
        reader, writer = sorted((shown.first, shown.second), key=lambda p: p.touch.mode.writes)
        if (reader.touch.mode, writer.touch.mode) != (Mode.READ, Mode.WRITE):
            return False
        read, written = (self.flow.at(p.touch.site.range) for p in (reader, writer))
        update = all(self.flow.is_update(a, b) for a in read for b in written)
        return update and not reader.runner.choices and len(shown.choices) == 1

    # -- runs

    def _schedule(
        self, places: Places, arguments: Mapping[str, int], filling: Filling, choice: bool | None
    ) -> Schedule:
        ranges = frozenset(places)
        watched = frozenset(
            i
            for i in self.code.instructions
            if isinstance(i, Touch) and not i.part and i.site.range in ranges
        )
        arrays = [a for place in ranges for x in self.flow.at(place) for a in x.arrays]
        spaces = frozenset(a.space for a in arrays)
        if spaces not in self.standing:
            self.standing[spaces] = self._places(spaces)
        threads, whole = self.standing[spaces]
        runners = runners_of(self.code, threads, arguments)
        until = min(self.deadline, work.now() + _RUN)
        memory = Memory(Contents(self.flow, filling, arguments).at)
        return Schedule(self.code, memory, choice, runners, watched, until=until, whole=whole)

    def _places(self, spaces: frozenset[Space]) -> _Threads:
        """The threads that are run when memory of these kinds is watched, and whether there are no others."""
        wide = (BarrierScope.GRID, BarrierScope.CLUSTER)
        several = Space.GLOBAL in spaces or any(b.scope in wide for b in self.code.barriers)
        grid = self.launch.grid or _few_blocks(self.launch.grid_axes)
        gx, gy, gz = grid
        blocks: list[Dim3] = [(0, 0, 0)]
        if several and gx * gy * gz > 1:
            blocks.append((1, 0, 0) if gx > 1 else (0, 1, 0) if gy > 1 else (0, 0, 1))
        x, y, z = self.launch.block
        threads: list[Dim3] = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        warps = (BarrierScope.WARP, BarrierScope.TILE, BarrierScope.COALESCED)
        if all(b.scope in warps and (b.size or 0) <= self.gpu.warp_size for b in self.code.barriers):
            size = self.gpu.warp_size
            last = (len(threads) - 1) // size
            kept = {*_WARPS, last}
            lanes = size if self.code.barriers or Space.SHARED in spaces else _LANES
            threads = [t for i, t in enumerate(threads) if i // size in kept and i % size < lanes]
        size = self.gpu.warp_size
        standing = [Thread(t, b, self.launch.block, grid, size) for b in blocks for t in threads]
        return standing, gx * gy * gz == len(blocks)

    def _log(
        self, places: Places, arguments: Mapping[str, int], filling: Filling, choice: bool | None,
        until: Sequence[Sites] = (),
    ) -> _Log:  # fmt: skip
        """The accesses of a run, which ends when there are candidates for all pairs in ``until``."""
        seen = _Log(places, {place: {} for place in places})
        left = [_MOST_TOUCHES]
        size = self.gpu.warp_size

        def remember(p: Pending) -> bool:
            left[0] -= 1
            if left[0] < 0:
                return False
            words = seen.words[p.touch.site.range]
            t = p.runner
            entry = _Seen(
                t.number, t.block, t.thread.linear // size, t.passed, p.number, p.start, p.stop, p.touch,
            )  # fmt: skip
            for word in range(p.start // 4, min((p.stop + 3) // 4, p.start // 4 + 16)):
                here = words.setdefault((p.base, word), [])
                if len(here) < 48 and sum(x.warp == entry.warp and x.block == t.block for x in here) < _KEPT:
                    here.append(entry)
            return False

        schedule = self._schedule(places, arguments, filling, choice)

        def enough() -> bool:
            seen.ended_early = all(any(self._candidates(pair, seen, across=False)) for pair in until)
            return seen.ended_early

        schedule.watch = remember
        if until:
            schedule.enough = enough
        try:
            schedule.run()
        except Unfinished:
            pass  # what was seen so far is real
        finally:
            self.passed_over |= schedule.passed_over
        return seen

    def _candidates(self, pair: Sites, seen: _Log, across: bool) -> Iterator[tuple[_Seen, _Seen]]:
        """Pairs that may race, those most telling first; one for each pair of threads.

        ``across``: also threads of different blocks.
        """
        one, other = seen.words[pair[0]], seen.words[pair[1]]
        found: dict[tuple[int, int], tuple[int, _Seen, _Seen]] = {}
        for word in (word for word in one if word in other):
            for a, b in itertools.product(one[word], other[word]):
                first, second = (a, b) if a.runner < b.runner else (b, a)
                if not self._may_race(first, second) or (first.runner, second.runner) in found:
                    continue
                if first.block != second.block and not across:
                    continue
                rank = 2 if first.block != second.block else int(first.warp == second.warp)
                found[first.runner, second.runner] = (rank, first, second)
                if len(found) > 200:
                    break
        for _, first, second in sorted(found.values(), key=lambda entry: (entry[0], entry[1].runner)):
            yield first, second

    def _may_race(self, a: _Seen, b: _Seen) -> bool:
        same_block = a.block == b.block
        if a.runner == b.runner or (same_block and a.passed != b.passed):
            return False
        if self.lock_step and same_block and a.warp == b.warp:
            return False
        meets = a.start < b.stop and b.start < a.stop
        return meets and conflicts.conflicting(a.touch, b.touch, same_block)

    def _show(
        self, pair: Sites, first: _Seen, second: _Seen, places: Places, arguments: Mapping[str, int],
        filling: Filling, choice: bool | None,
    ) -> Shown | None:  # fmt: skip
        """The two accesses when the first thread stays before its own and the others go on."""
        frozen_at: list[Pending] = []
        size = self.gpu.warp_size
        near = 2 if first.block != second.block else int(first.warp == second.warp)

        def watch(p: Pending) -> bool:
            if not frozen_at:
                if p.runner.number == first.runner and p.number == first.number:
                    frozen_at.append(p)
                    return True
                return False
            nearer = _nearness(p.runner, frozen_at[0].runner, size) > near
            if not nearer and self._races(pair, frozen_at[0], p):
                raise _Met(frozen_at[0], p)
            return False

        schedule = self._schedule(places, arguments, filling, choice)
        schedule.watch = watch
        try:
            schedule.run()
        except _Met as met:
            choices = frozenset((*met.first.runner.choices, *met.second.runner.choices))
            asked = frozenset(schedule.memory.asked)
            return Shown(met.first, met.second, arguments, filling, choices, asked)
        except (Excluded, Unfinished):
            return None
        return None

    def _races(self, pair: Sites, a: Pending, b: Pending) -> bool:
        places = sorted((a.touch.site.range, b.touch.site.range))
        if a.runner is b.runner or a.base != b.base or places != sorted(pair):
            return False
        same_block = a.runner.block == b.runner.block
        size = self.gpu.warp_size
        same_warp = same_block and a.runner.thread.linear // size == b.runner.thread.linear // size
        if same_warp and (self.lock_step or a.runner.grouped or b.runner.grouped):
            return False
        meets = a.start < b.stop and b.start < a.stop
        return meets and conflicts.conflicting(a.touch, b.touch, same_block)


def _all(words: _Words) -> Iterator[_Seen]:
    return itertools.chain.from_iterable(words.values())


def _one_choice(shown: Shown) -> bool:
    """At most one of the two accesses hangs on conditions that nobody knows, and on few.

    Then nothing in the program can make the two exclude each other; in shared memory, where this
    kernel alone says what happens.
    """
    if not shown.choices:
        return True
    both = shown.first.runner.choices and shown.second.runner.choices
    return not both and shown.first.array.space is Space.SHARED and len(shown.choices) <= _MOST_CHOICES


def _nearness(a: Runner, b: Runner, warp_size: int) -> int:
    """0: warps of one block, 1: one warp, 2: different blocks."""
    if a.block != b.block:
        return 2
    return int(a.thread.linear // warp_size == b.thread.linear // warp_size)


def _few_blocks(axes: tuple[int | None, int | None, int | None]) -> Dim3:
    x, y, z = axes
    grid = (x or 2, y or (1 if x is None else 2), z or 1)
    return grid
