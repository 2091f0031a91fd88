"""Barriers that a real schedule shows some threads of a block to miss, on ordinary contents of memory.

A thread that has ended, or waits elsewhere, while others of its block wait at a barrier missed it. Inputs are
ordinary; that rows and counts differ in length is too. Floats are computed where the kernel is there with all
that they are made of (``Kernel.computed``).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Set

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Array, Kernel
from cuda_lsp.model import Code, LaunchConfig, SourceRange, Status
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.machine import Excluded
from cuda_lsp.static.exact.ordinary_inputs import (
    FILLINGS,
    FIRST_ONLY,
    RARE,
    UNEVEN,
    Filling,
    argument_sets,
)
from cuda_lsp.static.exact.run import Missed, Unfinished
from cuda_lsp.static.exact.search import Inputs, Search
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Contents
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.partings import as_decided

_COMPARED = Filling("hub", "named in turn")
_FILLINGS = (UNEVEN, FIRST_ONLY, *FILLINGS[:4], _COMPARED, RARE)


def divergences_by_running(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, wanted: Collection[SourceRange], deadline: float
) -> dict[SourceRange, Diagnosis]:
    """Conditional diagnoses of those wanted barriers that runs show to be missed, for several scalars."""
    if not wanted or work.now() >= deadline:
        return {}
    try:
        search = Search.of(kernel.computed or kernel, launch, gpu, deadline, kernel.computed is not None)
    except RecursionError:
        return {}
    found: dict[SourceRange, Diagnosis] = {}
    left = set(wanted)
    for given in itertools.islice(argument_sets(search.kernel, launch), budgets.MISSED_SETS):
        shown = [_shown(search, Inputs(given.values, filling, None), left) for filling in _FILLINGS]
        here = {place: m for missed in reversed(shown) for place, m in missed.items()}
        left &= here.keys()
        found |= {place: _diagnosis(search, here[place]) for place in left}
    return {place: found[place] for place in left}


def _shown(search: Search, inputs: Inputs, wanted: Set[SourceRange]) -> dict[SourceRange, Missed]:
    schedule = search.schedule((), inputs)
    schedule.enough = lambda: wanted <= schedule.missed.keys()
    try:
        schedule.run()
    except Excluded:
        return {}
    except Unfinished:
        pass  # what was seen so far is real
    awaited = search.flow.awaited | search.flow.slice.lock_arrays
    if schedule.passed_over or schedule.memory.asked & awaited:
        return {}
    return {place: m for place, m in schedule.missed.items() if _cells(m)}


def _cells(missed: Missed) -> dict[tuple[Array, int], float]:
    """What the two threads found of what memory held at the start; what others drew before is theirs."""
    threads = (missed.present, missed.absent)
    return {cell: v for t in threads for cell, v in (*t.drawn.items(), *t.asked.items())}


def _diagnosis(search: Search, missed: Missed) -> Diagnosis:
    here, there = (words.thread(t.thread.tid) for t in (missed.present, missed.absent))
    name = missed.site.text or "this barrier"
    return Diagnosis(
        Code.BARRIER_DIVERGENCE, Status.CONDITIONAL,
        f"{name} is not reached by all threads of the block: {here} reaches it, {there} does not"
        + as_decided(search.kernel, missed.site),
        search.kernel.name, missed.site, conditions=(Contents(tuple(_cells(missed).items())),),
        launch=search.launch,
    )  # fmt: skip
