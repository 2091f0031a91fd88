"""Barriers that a real schedule shows some threads of a block to miss, on ordinary contents of memory.

A thread that has ended, or waits elsewhere, while others of its block wait at a barrier missed it. Inputs are
ordinary; that rows and counts differ in length is too. Floats are computed where the kernel is there with all
that they are made of (``Kernel.computed``).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence, Set

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import ops
from cuda_lsp.ir.program import Array, BarrierScope, Binary, Intrinsic, Kernel
from cuda_lsp.ir.reals import NOT_FINITE
from cuda_lsp.ir.walk import expressions, subexpressions
from cuda_lsp.model import Code, LaunchConfig, SourceRange, Status
from cuda_lsp.static import budgets, work
from cuda_lsp.static.data_flow import DataFlow
from cuda_lsp.static.exact.machine import Excluded
from cuda_lsp.static.exact.ordinary_inputs import (
    FILLINGS,
    FIRST_ONLY,
    NO_NUMBERS,
    STRETCHES,
    TREE,
    TWINS,
    UNEVEN,
    Filling,
    argument_sets,
)
from cuda_lsp.static.exact.run import Missed, Schedule, Unfinished
from cuda_lsp.static.exact.search import Inputs, Search
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Condition, Conditions, Contents, Example, Needs, SomeContents
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.partings import as_decided, decided_by
from cuda_lsp.static.launches.arguments import free_scalars

_COMPARED = Filling("named in turn", "named in turn")
_RARE = Filling("named once", "named once")
_Found = tuple[Missed, Mapping[str, int]]
"""A barrier that is missed, and the scalars."""

_FILLINGS = (UNEVEN, STRETCHES, _COMPARED, _RARE, FIRST_ONLY, *FILLINGS[:4])


def divergences_by_running(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, wanted: Collection[SourceRange], deadline: float
) -> dict[SourceRange, Diagnosis]:
    """Conditional diagnoses of those wanted barriers that runs show to be missed, for several scalars.

    Scalars for which no thread comes to a barrier tell nothing of it; where there are such, those that do are
    part of the condition.
    """
    if not wanted or work.now() >= deadline:
        return {}
    try:
        search = Search.to_barriers(kernel, launch, gpu, deadline)
    except RecursionError:
        return {}
    found: dict[SourceRange, list[_Found]] = {place: [] for place in wanted}
    for given in itertools.islice(argument_sets(search.kernel, launch), budgets.TRIED_SETS):
        asked = {place for place in found if len(found[place]) < budgets.MISSED_SETS}
        if not asked:
            break
        here, reached = _under(search, given.values, asked)
        for place in asked & reached - here.keys():
            del found[place]
        for place in here.keys() & asked:
            found[place].append((here[place], given.values))
    return {place: _diagnosis(search, shown) for place, shown in found.items() if _enough(search, shown)}


def _enough(search: Search, shown: Sequence[_Found]) -> bool:
    """Several sizes, or round ones, which no thread comes away from alone."""
    free = free_scalars(search.kernel, search.launch)
    whole = (all(x % search.gpu.warp_size == 0 for n, x in given.items() if n in free) for _, given in shown)
    return bool(shown) and (len(shown) >= budgets.MISSED_SETS or any(whole))


def _fillings(flow: DataFlow) -> Iterator[Filling]:
    """Those that suit what the kernel does come first."""
    parts = list(subexpressions(expressions(flow.slice.kernel.body)))
    compared = (e for e in parts if isinstance(e, Binary) and ops.BINARY[e.op].comparison)
    if any(len(flow.arrays_in(flow.of(e.left)) | flow.arrays_in(flow.of(e.right))) > 1 for e in compared):
        yield TWINS
    if flow.leading:
        yield TREE
    yield from _FILLINGS
    if any(isinstance(e, Intrinsic) and e.name in NOT_FINITE for e in parts):
        yield NO_NUMBERS


def _under(
    search: Search, arguments: Mapping[str, int], wanted: Set[SourceRange]
) -> tuple[dict[SourceRange, Missed], set[SourceRange]]:
    """Those of the wanted barriers that are missed for these arguments, with the first contents that do; and
    all barriers that threads come to."""
    reached: set[SourceRange] = set()
    found: dict[SourceRange, Missed] = {}
    fillings = list(_fillings(search.flow))
    seconds = budgets.BRIEF_RUN_S
    for then in (budgets.RUN_S, 0.0):
        longer: list[Filling] = []
        for filling in fillings:
            schedule = search.schedule((), Inputs(arguments, filling, None), seconds)
            shown, whole = _shown(search, schedule, wanted - found.keys())
            found, reached = shown | found, reached | schedule.reached
            if wanted <= found.keys():
                return found, reached
            longer += [] if whole else [filling]
            if not schedule.memory.asked - search.flow.drawn:  # other contents change nothing so far
                longer, then = ([], 0.0) if whole else ([filling], budgets.LONE_RUN_S)
                break
        fillings, seconds = longer, then
    return found, reached


def _shown(
    search: Search, schedule: Schedule, wanted: Set[SourceRange]
) -> tuple[dict[SourceRange, Missed], bool]:
    """What a run shows, and whether it came to its end."""
    whole = True
    schedule.enough = lambda: wanted <= schedule.missed.keys()
    try:
        schedule.run()
    except Excluded:
        return {}, whole
    except Unfinished:
        whole = False  # what was seen so far is real
    awaited = search.flow.awaited | search.flow.slice.lock_arrays
    if schedule.passed_over or schedule.memory.asked & awaited:
        return {}, whole
    alone = not schedule.memory.asked
    return {place: m for place, m in schedule.missed.items() if _cells(m) or (alone and _drew(m))}, whole


def _cells(missed: Missed) -> dict[tuple[Array, int], float]:
    """What the two threads found of what memory held at the start; what others drew before is theirs."""
    threads = (missed.present, missed.absent)
    return {cell: v for t in threads for cell, v in (*t.drawn.items(), *t.asked.items())}


def _drew(missed: Missed) -> bool:
    """They drew from a lock or a counter, where one is the first."""
    return missed.present.drew or missed.absent.drew


def _needed(search: Search, shown: Sequence[_Found]) -> Conditions:
    """What the inputs have to be like."""
    missed, arguments = shown[-1]
    cells, needed = _cells(missed), list[Condition]()
    free = free_scalars(search.kernel, search.launch)
    if cells:
        needed.append(_others_differ(missed, cells) or Contents(tuple(cells.items())))
    if free and (not cells or len(shown) < budgets.MISSED_SETS):
        needed.append(Example(tuple((name, arguments[name]) for name in free)))
    return tuple(needed)


def _others_differ(missed: Missed, cells: Mapping[tuple[Array, int], float]) -> Condition | None:
    """Where the two read one number of an array, and it is another's that parts them."""
    held: dict[Array, set[float]] = {}
    for (array, _), number in cells.items():
        held.setdefault(array, set()).add(number)
    others = [cell for t in missed.everyone for cell in t.asked.items()]
    alike = {array: numbers for array, numbers in held.items() if len(numbers) == 1}
    if any(number not in alike.get(array, (number,)) for (array, _), number in others):
        return SomeContents(tuple(dict.fromkeys(array.name for array in held)))
    return None


def _diagnosis(search: Search, shown: Sequence[_Found]) -> Diagnosis:
    missed, _ = shown[-1]
    threads = missed.present.thread, missed.absent.thread
    apart = threads[0].bid != threads[1].bid
    here, there = (words.thread(t.tid, t.bid if apart else None) for t in threads)
    site, of_warp = missed.barrier.site, missed.barrier.scope is BarrierScope.WARP
    name, whom = site.text or "this barrier", "of the grid" if apart else "of the block"
    whom = "that its mask names" if of_warp else whom
    needed = _needed(search, shown)
    if apart and search.launch.grid is None:
        needed = (*needed, Needs.BLOCKS)
    return Diagnosis(
        Code.BARRIER_DIVERGENCE, Status.CONDITIONAL if needed else Status.PROVED,
        f"{name} is not reached by all threads {whom}: {here} reaches it, {there} does not"
        + as_decided(search.kernel, site),
        search.kernel.name, site, launch=search.launch,
        conditions=needed, parted=decided_by(search.kernel, site),
    )  # fmt: skip
