"""Races that a real schedule shows: one thread stands before an access, another reaches one that conflicts.

A run over ordinary inputs (``ordinary_inputs``) lists where the places in doubt touch the same bytes. Each
candidate is then shown: its first thread runs up to its access and stays there, the others go on, and one
of them must come to the second access. Nothing that the first thread does afterwards can have led it there,
no barrier, lock or counter stood between them. Bounded search: what it does not find is not proved absent.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import (
    GDIM,
    Array,
    Axis,
    BarrierScope,
    Binary,
    BinaryOp,
    Builtin,
    Kernel,
    Var,
)
from cuda_lsp.ir.types import Type
from cuda_lsp.ir.walk import subexpressions, variables
from cuda_lsp.model import Dim3, LaunchConfig, Mode, SourceRange, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.data_flow import DataFlow, data_flow
from cuda_lsp.static.exact.code import Code, Touch, barrier_code, linear_code
from cuda_lsp.static.exact.machine import Choice, Excluded, runners_of
from cuda_lsp.static.exact.memory import Held, Memory
from cuda_lsp.static.exact.ordinary_inputs import (
    COUPLES,
    FILLINGS,
    Arguments,
    Contents,
    Filling,
    argument_sets,
)
from cuda_lsp.static.exact.run import Pending, Schedule, Unfinished
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.exact.values import Value, evaluator
from cuda_lsp.static.launches.arguments import free_scalars

Sites = tuple[SourceRange, SourceRange]
Places = tuple[SourceRange, ...]
"""Where accesses are watched, and counted."""


@frozen(eq=False)
class Inputs:
    """``choice``: how conditions come out that nobody knows (``Schedule``)."""

    arguments: Mapping[str, int]
    filling: Filling
    choice: bool | None


@frozen(eq=False)
class Shown:
    """Two accesses that two threads may perform next in one state of a real execution."""

    first: Pending
    second: Pending
    inputs: Inputs
    choices: frozenset[Choice]
    arrays: frozenset[Array]  # whose contents some thread wanted to know

    @property
    def same_block(self) -> bool:
        return self.first.runner.block == self.second.runner.block

    def asked(self) -> dict[tuple[Array, int], float]:
        """What the two threads read of what memory held at the start."""
        return {**self.first.runner.asked, **self.second.runner.asked}


_Words = dict[tuple[Held, int], list[Pending]]
"""Accesses by object and word of memory."""


@define(eq=False)
class _Log:
    """The accesses of a run at the places that were watched."""

    places: Places
    words: dict[SourceRange, _Words]
    ended_early: bool = False


@frozen(eq=False)
class _InVain:
    """Runs that showed nothing of these pairs. ``read``: of what memory held at first; ``chose``: they met a
    condition that nobody knows; ``instructions``: that they took."""

    pairs: frozenset[Sites]
    across: bool
    inputs: Inputs
    chose: bool
    instructions: int
    read: Mapping[tuple[Array, int, Type], Value]


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
    by_turns: bool = False  # blocks draw from what they share: their warps go by turns
    standing: dict[tuple[frozenset[Space], Dim3], _Threads] = field(
        factory=dict[tuple[frozenset[Space], Dim3], _Threads]
    )
    passed_over: bool = False  # some run met a condition that nobody knows
    in_vain: list[_InVain] = field(factory=list[_InVain])
    ran: list[Schedule] = field(factory=list[Schedule])  # for the inputs that are tried

    @staticmethod
    def of(
        kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, deadline: float, floats: bool = False
    ) -> Search:
        """``floats``: of a ``Kernel.computed``. Raises ``RecursionError`` when expressions nest deeply."""
        flow = data_flow(kernel)
        code = linear_code(kernel, flow.slice, flow.cells, floats)
        return Search(kernel, launch, gpu, deadline, flow, code, kernel.directives.warp_synchronous)

    @staticmethod
    def to_barriers(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, deadline: float) -> Search:
        """Runs nothing but what leads to barriers; floats where the kernel has them. Raises as ``of``."""
        ran = kernel.computed or kernel
        flow = data_flow(ran)
        code = barrier_code(ran, flow.slice, kernel.computed is not None)
        drawn = any(isinstance(i, Touch) and i.mode.atomic and i.slot is not None for i in code.instructions)
        return Search(ran, launch, gpu, deadline, flow, code, by_turns=drawn)

    def shown(self, wanted: Collection[Sites], *, glance: bool = False) -> dict[Sites, Shown]:
        """Races among the wanted pairs, each under inputs that do not single it out.

        ``glance``: a few inputs only.
        """
        found: dict[Sites, Shown] = {}
        refuted: set[Sites] = set()
        sets = list(argument_sets(self.kernel, self.launch))
        across = not self.launch.assumed  # else the grid may be one block
        ways = itertools.product((None, True, False), sets, self._fillings)
        for choice, given, filling in itertools.islice(ways, budgets.GLANCE_INPUTS if glance else None):
            if choice is not None and not self.passed_over:
                break
            left = [pair for pair in wanted if pair not in found and pair not in refuted]
            if not left or work.now() > self.deadline:
                break
            inputs = Inputs(given.values, filling, choice)
            for pair, shown in self._under(left, inputs, across).items():
                if self._holds_for(pair, shown, sets):
                    found[pair] = shown
                else:
                    refuted.add(pair)
        return found

    @property
    def _fillings(self) -> tuple[Filling, ...]:
        return (*FILLINGS, COUPLES) if self.flow.leading else FILLINGS

    def _holds_for(self, pair: Sites, shown: Shown, sets: Sequence[Arguments]) -> bool:
        """Other values of the open scalars show it too.

        All that agree with one another do, where they let threads come to both places; and some others.
        """
        free = set(free_scalars(self.kernel, self.launch))
        sources = (x for place in pair for access in self.flow.at(place) for x in access.address)
        if not any(isinstance(x, Var) and x.name in free for x in sources):
            return True  # they may only decide who comes there
        again = 0
        for given in sets:
            if given.values is shown.inputs.arguments or work.now() > self.deadline:
                continue
            if again and not given.equal:
                break
            inputs = evolve(shown.inputs, arguments=given.values)
            try:
                seen = self._log(pair, inputs)
            except Excluded:
                continue
            came = [len({x.runner.number for x in _all(seen.words[place])}) for place in pair]
            if min(came) < budgets.EXPECTED_THREADS or not (shown.same_block or _of_blocks(pair, seen)):
                continue
            if self._shows(pair, seen, inputs):
                again += 1
            elif given.equal:
                return False
        return again > 0

    def _shows(self, pair: Sites, seen: _Log, inputs: Inputs) -> bool:
        if self._among(pair, seen, inputs, across=True) is not None:
            return True
        others = [f for f in self._fillings if f != inputs.filling] if self.flow.deciding else []
        return any(self._under((pair,), evolve(inputs, filling=other), across=True) for other in others)

    def _under(self, wanted: Iterable[Sites], inputs: Inputs, across: bool) -> dict[Sites, Shown]:
        pairs = list(wanted)
        alike = self._ran_alike(pairs, inputs, across)
        if alike is not None:  # counted as if it was made: what is tried is not up to what is left out
            work.DONE.instructions += alike.instructions
            return {}
        begun = work.DONE.instructions
        self.ran.clear()
        found = self._run_under(pairs, inputs, across)
        read = {cell: value for ran in self.ran for cell, value in ran.memory.read.items()}
        if not found and len(read) <= budgets.KEPT_READS:
            chose, made = any(ran.passed_over for ran in self.ran), work.DONE.instructions - begun
            self.in_vain.append(_InVain(frozenset(pairs), across, inputs, chose, made, read))
        return found

    def _ran_alike(self, pairs: Sequence[Sites], inputs: Inputs, across: bool) -> _InVain | None:
        """Runs that showed nothing, and would only be made again: nothing that they read differs now."""
        contents = self._contents(inputs)
        alike = (
            ran for ran in self.in_vain
            if ran.across == across
            and ran.inputs.arguments is inputs.arguments
            and (ran.inputs.choice == inputs.choice or not ran.chose)
            and ran.pairs.issuperset(pairs)
            and all(contents.at(*cell) == value for cell, value in ran.read.items())
        )  # fmt: skip
        return next(alike, None)

    def _run_under(self, pairs: Sequence[Sites], inputs: Inputs, across: bool) -> dict[Sites, Shown]:
        found: dict[Sites, Shown] = {}
        for briefly in (True, False):
            left = [pair for pair in pairs if pair not in found]
            try:
                seen = self._log(tuple(itertools.chain(*left)), inputs, left if briefly else ())
            except Excluded:
                break
            for pair in left:
                shown = self._among(pair, seen, inputs, across)
                if shown is not None:
                    found[pair] = shown
            if not seen.ended_early or len(found) == len(pairs):
                break
        return found

    def _among(self, pair: Sites, seen: _Log, inputs: Inputs, across: bool) -> Shown | None:
        for first, second in itertools.islice(self._candidates(pair, seen, across), budgets.SHOWN_CANDIDATES):
            if work.now() > self.deadline:
                return None
            shown = self._show(pair, first, second, seen.places, inputs)
            if shown is None and _nearness(first, second) == _APART:  # its block may come there too late
                shown = self._show(pair, second, first, seen.places, inputs)
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

    def schedule(self, places: Places, inputs: Inputs, seconds: float = budgets.RUN_S) -> Schedule:
        """A run to come, of which accesses at these places are watched."""
        ranges = frozenset(places)
        touches = (i for i in self.code.instructions if isinstance(i, Touch) and not i.part)
        watched = frozenset(i for i in touches if i.site.range in ranges)
        arrays = [a for place in ranges for x in self.flow.at(place) for a in x.arrays]
        spaces = frozenset(a.space for a in arrays)
        grid = self.launch.grid or self._grid(inputs.arguments)
        if (spaces, grid) not in self.standing:
            self.standing[spaces, grid] = self._places(spaces, grid)
        threads, whole = self.standing[spaces, grid]
        runners = runners_of(self.code, threads, inputs.arguments)
        until = min(self.deadline, work.now() + seconds)
        memory = Memory(self._contents(inputs).at)
        return Schedule(self.code, memory, inputs.choice, runners, watched, until=until, whole=whole)

    def _contents(self, inputs: Inputs) -> Contents:
        return Contents(self.flow, inputs.filling, inputs.arguments, self.launch.threads, self.code.floats)

    def _grid(self, arguments: Mapping[str, int]) -> Dim3:
        """As few blocks as show races between blocks; as many as the host computes from the arguments."""
        x, y, z = _few_blocks(self.launch.grid_axes)
        made = {axis: value for axis, value in self._computed(arguments) if value > 0}
        return made.get(Axis.GDIM_X, x), made.get(Axis.GDIM_Y, y), made.get(Axis.GDIM_Z, z)

    def _computed(self, arguments: Mapping[str, int]) -> Iterator[tuple[Axis, int]]:
        """Extents of the grid that what is told of the launch makes of the arguments."""
        for e in self.kernel.directives.assumptions:
            if not isinstance(e, Binary) or e.op is not BinaryOp.EQ or not isinstance(e.left, Builtin):
                continue
            plain = not any(isinstance(x, Builtin) for x in subexpressions((e.right,)))
            if e.left.axis in GDIM and plain and all(v.name in arguments for v in variables(e.right)):
                value = evaluator(e.right, lambda var: var.name)(_Given(arguments))
                if isinstance(value, int):
                    yield e.left.axis, value

    def _places(self, spaces: frozenset[Space], grid: Dim3) -> _Threads:
        """The threads that are run when memory of these kinds is watched, and whether there are no others."""
        wide = (BarrierScope.GRID, BarrierScope.CLUSTER)
        gx, gy, gz = grid
        together = any(b.scope in wide for b in self.code.barriers)
        several = together or self.by_turns or Space.GLOBAL in spaces
        blocks: list[Dim3] = [(0, 0, 0)]
        if together and gx * gy * gz * self.launch.threads <= budgets.RUN_GRID_THREADS:
            blocks = [(i, j, k) for k in range(gz) for j in range(gy) for i in range(gx)]
        elif several and gx * gy * gz > 1:
            blocks.append((1, 0, 0) if gx > 1 else (0, 1, 0) if gy > 1 else (0, 0, 1))
        x, y, z = self.launch.block
        threads: list[Dim3] = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
        size = self.gpu.warp_size
        if all(b.scope.of_lanes and (b.size or 0) <= size for b in self.code.barriers):
            last = (len(threads) - 1) // size
            kept = {*range(budgets.RUN_WARPS), last}
            lanes = size if self.code.barriers or Space.SHARED in spaces else budgets.RUN_LANES
            threads = [t for i, t in enumerate(threads) if i // size in kept and i % size < lanes]
        standing = [Thread(t, b, self.launch.block, grid, size) for b in blocks for t in threads]
        if self.by_turns:
            standing.sort(key=lambda t: t.warp)
        return standing, gx * gy * gz == len(blocks)

    def _log(self, places: Places, inputs: Inputs, until: Sequence[Sites] = ()) -> _Log:
        """The accesses of a run, which ends when there are candidates for all pairs in ``until``."""
        seen = _Log(places, {place: {} for place in places})
        left = [budgets.MOST_TOUCHES]

        def remember(p: Pending) -> bool:
            left[0] -= 1
            if left[0] < 0:
                return False
            words = seen.words[p.touch.site.range]
            first = p.start // 4
            for word in range(first, min((p.stop + 3) // 4, first + budgets.MOST_WORDS)):
                here = words.setdefault((p.object, word), [])
                if len(here) < budgets.KEPT_TOUCHES:
                    near = sum(_nearness(x, p) == _IN_A_WARP for x in here)
                    here += [p] if near < budgets.KEPT_ACCESSES else []
            return False

        schedule = self.schedule(places, inputs)
        self.ran.append(schedule)

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

    def _candidates(self, pair: Sites, seen: _Log, across: bool) -> Iterator[tuple[Pending, Pending]]:
        """Pairs that may race, those most telling first; one for each pair of threads.

        ``across``: also threads of different blocks.
        """
        one, other = seen.words[pair[0]], seen.words[pair[1]]
        found: dict[tuple[int, int], tuple[Pending, Pending]] = {}
        for word in (word for word in one if word in other):
            for a, b in itertools.product(one[word], other[word]):
                first, second = (a, b) if a.runner.number < b.runner.number else (b, a)
                threads = first.runner.number, second.runner.number
                if threads in found or not self._may_race(first, second):
                    continue
                if not across if _nearness(a, b) == _APART else a.passed != b.passed:
                    continue
                found[threads] = first, second
                if len(found) > budgets.MOST_CANDIDATES:
                    break
        yield from sorted(found.values(), key=lambda both: (_nearness(*both), both[0].runner.number))

    def _may_race(self, a: Pending, b: Pending) -> bool:
        """The two conflict; what orders their threads is not asked."""
        near = _nearness(a, b)
        if a.runner is b.runner or a.object is not b.object or (self.lock_step and near == _IN_A_WARP):
            return False
        meets = a.start < b.stop and b.start < a.stop
        return meets and conflicts.conflicting(a.touch, b.touch, near != _APART)

    def _show(
        self, pair: Sites, first: Pending, second: Pending, places: Places, inputs: Inputs
    ) -> Shown | None:
        """The two accesses when the first thread stays before its own and the others go on."""
        frozen_at: list[Pending] = []
        near = _nearness(first, second)

        def watch(p: Pending) -> bool:
            if not frozen_at:
                if p.runner.number == first.runner.number and p.number == first.number:
                    frozen_at.append(p)
                    return True
                return False
            if _nearness(p, frozen_at[0]) <= near and self._races(pair, frozen_at[0], p):
                raise _Met(frozen_at[0], p)
            return False

        schedule = self.schedule(places, inputs)
        self.ran.append(schedule)
        schedule.watch = watch
        try:
            schedule.run()
        except _Met as met:
            choices = frozenset((*met.first.runner.choices, *met.second.runner.choices))
            return Shown(met.first, met.second, inputs, choices, schedule.memory.asked)
        except (Excluded, Unfinished):
            return None
        return None

    def _races(self, pair: Sites, a: Pending, b: Pending) -> bool:
        if sorted((a.touch.site.range, b.touch.site.range)) != sorted(pair):
            return False
        grouped = a.runner.grouped or b.runner.grouped
        in_group = grouped and _nearness(a, b) == _IN_A_WARP
        return self._may_race(a, b) and not in_group and not _same_lock(a, b)


@frozen(eq=False)
class _Given:
    """Arguments, as variables that a thread holds."""

    held: Mapping[str, int]


def _all(words: _Words) -> Iterator[Pending]:
    return itertools.chain.from_iterable(words.values())


def _of_blocks(pair: Sites, seen: _Log) -> bool:
    """Whether threads of different blocks came to the two places."""
    one, other = ({x.runner.block for x in _all(seen.words[place])} for place in pair)
    return bool(one and other) and len(one | other) > 1


def _one_choice(shown: Shown) -> bool:
    """At most one of the two accesses hangs on conditions that nobody knows, and on few.

    Then nothing in the program can make the two exclude each other; in shared memory, where this
    kernel alone says what happens.
    """
    if not shown.choices:
        return True
    both = shown.first.runner.choices and shown.second.runner.choices
    return not both and shown.first.array.space is Space.SHARED and len(shown.choices) <= budgets.MOST_CHOICES


def _same_lock(a: Pending, b: Pending) -> bool:
    """Both threads are where they hold one lock, as far as anybody knows."""
    near = _nearness(a, b) != _APART
    places = [[(p.runner.held[slot], scope) for slot, scope in p.touch.inside.locks] for p in (a, b)]
    return any(
        conflicts.lock_orders(mine, theirs, near) and (None in (one, other) or one == other)
        for one, mine in places[0]
        for other, theirs in places[1]
    )


_IN_A_WARP, _APART = 1, 2


def _nearness(a: Pending, b: Pending) -> int:
    """0: warps of one block, ``_IN_A_WARP``, ``_APART``: different blocks."""
    if a.runner.block != b.runner.block:
        return _APART
    return _IN_A_WARP if a.runner.thread.warp == b.runner.thread.warp else 0


def _few_blocks(axes: tuple[int | None, int | None, int | None]) -> Dim3:
    x, y, z = axes
    grid = (x or 2, y or (1 if x is None else 2), z or 1)
    return grid
