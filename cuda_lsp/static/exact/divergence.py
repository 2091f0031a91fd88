"""Barriers that a real schedule shows some threads of a block to miss, on ordinary contents of memory.

A thread that has ended, or waits elsewhere, while others of its block wait at a barrier missed it. Inputs are
ordinary; that rows and counts differ in length is too. Floats are computed where the kernel is there with all
that they are made of (``Kernel.computed``).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Set

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Array, BarrierScope, Intrinsic, Kernel
from cuda_lsp.ir.reals import NOT_FINITE
from cuda_lsp.ir.walk import expressions, subexpressions
from cuda_lsp.model import Code, LaunchConfig, SourceRange, Status
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.machine import Excluded
from cuda_lsp.static.exact.ordinary_inputs import (
    FILLINGS,
    FIRST_ONLY,
    NO_NUMBERS,
    STRETCHES,
    UNEVEN,
    Filling,
    argument_sets,
)
from cuda_lsp.static.exact.run import Missed, Schedule, Unfinished
from cuda_lsp.static.exact.search import Inputs, Search
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Contents, Needs
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.partings import as_decided

_COMPARED = Filling("named in turn", "named in turn")
_RARE = Filling("named once", "named once")
_FILLINGS = (UNEVEN, STRETCHES, _COMPARED, _RARE, FIRST_ONLY, *FILLINGS[:4])


def divergences_by_running(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, wanted: Collection[SourceRange], deadline: float
) -> dict[SourceRange, Diagnosis]:
    """Conditional diagnoses of those wanted barriers that runs show to be missed, for several scalars."""
    if not wanted or work.now() >= deadline:
        return {}
    try:
        search = Search.to_barriers(kernel, launch, gpu, deadline)
    except RecursionError:
        return {}
    found: dict[SourceRange, Diagnosis] = {}
    left = set(wanted)
    for given in itertools.islice(argument_sets(search.kernel, launch), budgets.MISSED_SETS):
        here = _under(search, given.values, left)
        left &= here.keys()
        found |= {place: _diagnosis(search, here[place]) for place in left}
    return {place: found[place] for place in left}


def _fillings(kernel: Kernel) -> Iterator[Filling]:
    yield from _FILLINGS
    parts = subexpressions(expressions(kernel.body))
    if any(isinstance(e, Intrinsic) and e.name in NOT_FINITE for e in parts):
        yield NO_NUMBERS


def _under(
    search: Search, arguments: Mapping[str, int], wanted: Set[SourceRange]
) -> dict[SourceRange, Missed]:
    """Those of the wanted barriers that are missed for these arguments, with the first contents that do."""
    found: dict[SourceRange, Missed] = {}
    fillings = list(_fillings(search.kernel))
    for seconds in (budgets.BRIEF_RUN_S, budgets.RUN_S):
        longer: list[Filling] = []
        for filling in fillings:
            schedule = search.schedule((), Inputs(arguments, filling, None), seconds)
            shown, whole = _shown(search, schedule, wanted - found.keys())
            found = shown | found
            if wanted <= found.keys():
                return found
            longer += [] if whole else [filling]
            if not schedule.memory.asked - search.flow.drawn:  # other contents change nothing so far
                longer = [] if whole else fillings
                break
        fillings = longer
    return found


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
    return {place: m for place, m in schedule.missed.items() if _cells(m)}, whole


def _cells(missed: Missed) -> dict[tuple[Array, int], float]:
    """What the two threads found of what memory held at the start; what others drew before is theirs."""
    threads = (missed.present, missed.absent)
    return {cell: v for t in threads for cell, v in (*t.drawn.items(), *t.asked.items())}


def _diagnosis(search: Search, missed: Missed) -> Diagnosis:
    threads = missed.present.thread, missed.absent.thread
    apart = threads[0].bid != threads[1].bid
    here, there = (words.thread(t.tid, t.bid if apart else None) for t in threads)
    site, of_warp = missed.barrier.site, missed.barrier.scope is BarrierScope.WARP
    name, whom = site.text or "this barrier", "of the grid" if apart else "of the block"
    whom = "that its mask names" if of_warp else whom
    needed = (Contents(tuple(_cells(missed).items())),)
    return Diagnosis(
        Code.BARRIER_DIVERGENCE, Status.CONDITIONAL,
        f"{name} is not reached by all threads {whom}: {here} reaches it, {there} does not"
        + as_decided(search.kernel, site),
        search.kernel.name, site, launch=search.launch,
        conditions=(*needed, Needs.BLOCKS) if apart and search.launch.grid is None else needed,
    )  # fmt: skip
