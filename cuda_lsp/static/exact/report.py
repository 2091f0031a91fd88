"""From a schedule that shows a race to a finding: may its inputs be called a condition, and in which words.

The inputs are a *condition* where nothing in the source excludes them, and may be an invariant that the
host keeps where they decide both addresses. The rule, by what the addresses of the two accesses come from:

- neither comes from data, but for flags of elements (``in[i] > 0``, of which positions are counted;
  ``key[j] < key[i]``, of which ranks are, unless it is the keys alone that are stored by rank) and for
  the one counter that both drew from: a condition (``if (in[i] == 6) *count += 1``), but not where
  neighbouring elements decide (``if (first[t] <= key && key < first[t + 1]) *found = t``): of ranges one
  holds the key;
- one does, in shared memory: a condition; in global memory only when the other access takes every thread's
  own element, whatever data say (``x[i] = f(x[list[j]])``), for a colouring or an offset may keep them apart,
  or when the one is atomic, which says that threads meet there, and the other is not;
- both do: a condition when the update is not atomic (``bins[data[i]]++``, ``if (d[k] < v) d[k] = v``) or
  only one of the two is, which says that threads meet there, by whatever data
  (``atomicMin(&d[to[e]], d[from[e]])``), where an array is written, plainly, where its own contents say
  (``parent[parent[i]] = j``), which no host keeps apart while they change, or where floating-point numbers
  make the addresses (``image[(int)x[i]] = c[i]``): many of these are one integer. A plain scatter may be a
  permutation (so may one that puts back what it read beside it, as it was), ids of rows to which what
  stands beside them is added differ (``out[id[i]] += in[i]``), and
  ranges that an array of row offsets bounds (``for (j = first[i]; j < first[i + 1]; j++) x[j] *= 2``)
  are disjoint: these stay *possible*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import TID, Array, Axis, Kernel, Var
from cuda_lsp.model import LaunchConfig, Mode, Space, Status, Witness
from cuda_lsp.static import work
from cuda_lsp.static.data_flow import Accessed, DataFlow, Source
from cuda_lsp.static.exact.run import Pending
from cuda_lsp.static.exact.search import Search, Shown, Sites
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import (
    Branch,
    Condition,
    Contents,
    Example,
    Needs,
    SomeContents,
    parameters_of,
)
from cuda_lsp.static.findings.diagnosis import Diagnosis, race_between
from cuda_lsp.static.launches.arguments import free_scalars
from cuda_lsp.static.launches.coordinates import meant_for_blocks, unlike
from cuda_lsp.static.offset_arrays import bounding_arrays, enclosing_arrays
from cuda_lsp.static.stored_over import stored_over
from cuda_lsp.static.updates_by_ids import by_ids

_THREADS = frozenset({*TID, Axis.LANE})


def races_by_running(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, wanted: Sequence[Sites], deadline: float, *,
    glance: bool = False,
) -> dict[Sites, Diagnosis]:  # fmt: skip
    """Certain diagnoses for those of the wanted pairs of places that a real schedule shows to race.

    ``glance``: a few inputs only, which takes milliseconds. Else those that are left are looked for once more
    with floats computed, where the kernel has them.
    """
    found = _races(kernel, launch, gpu, wanted, deadline, glance=glance)
    left = [pair for pair in wanted if pair not in found]
    if glance or kernel.computed is None or not left:
        return found
    return found | _races(kernel.computed, launch, gpu, left, deadline, floats=True)


def _races(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, wanted: Sequence[Sites], deadline: float, *,
    glance: bool = False, floats: bool = False,
) -> dict[Sites, Diagnosis]:  # fmt: skip
    if not wanted or unlike(kernel, launch) or work.now() >= deadline:
        return {}
    try:
        search = Search.of(kernel, launch, gpu, deadline, floats)
    except RecursionError:
        return {}
    wanted = [pair for pair in wanted if _ever_meant(search.flow, pair, kernel, launch)]
    found: dict[Sites, Diagnosis] = {}
    for pair, shown in search.shown(wanted, glance=glance).items():
        if (shown.same_block or meant_for_blocks(kernel, launch)) and _meant(
            search.flow, shown, kernel, launch
        ):
            diagnosis = _diagnosis(search, shown)
            named = parameters_of(diagnosis.conditions)
            if not any(named.issuperset(tie) for tie in kernel.ties):  # the host knows what it ties together
                found[pair] = diagnosis
    return found


# ------------------------------------------------------------------------------------------ the rule


def _ever_meant(flow: DataFlow, pair: Sites, kernel: Kernel, launch: LaunchConfig) -> bool:
    """Some accesses at the two places, if they raced, would be a race and no broken invariant."""
    return any(
        _may_be_meant(flow, a, b, kernel, launch)
        for a in flow.at(pair[0])
        for b in flow.at(pair[1])
        if (a.mode.writes or b.mode.writes)
    )


def _meant(flow: DataFlow, shown: Shown, kernel: Kernel, launch: LaunchConfig) -> bool:
    first, second = (
        [a for a in flow.at(p.touch.site.range) if a.mode is p.touch.mode]
        for p in (shown.first, shown.second)
    )
    return bool(first and second) and all(
        _may_be_meant(flow, a, b, kernel, launch, shown.same_block)
        for a in first
        for b in second
        if a.arrays & b.arrays
    )


def _may_be_meant(
    flow: DataFlow, a: Accessed, b: Accessed, kernel: Kernel, launch: LaunchConfig, same_block: bool = False
) -> bool:
    """``same_block``: the two threads are of one."""
    if (a.arrays | b.arrays) & (flow.awaited | flow.slice.lock_arrays):
        return False  # what orders others
    data = [flow.arrays_in(x.told, flow.told) for x in (a, b)]
    counters = (data[0] | data[1]) & flow.counters
    if len(counters) == 1 and counters <= data[0] & data[1]:  # of two nobody knows how far apart they begin
        data = [arrays - counters for arrays in data]
    if not any(data):
        one = a.site.range == b.site.range and a.mode is b.mode is Mode.WRITE
        return not _holds_a_key(flow, a, b) and not (
            one and (flow.stores_what_ranks(a) or _encloses(flow, a))
        )
    shared = all(array.space is Space.SHARED for array in a.arrays | b.arrays)
    if all(data):
        if flow.follows_itself(a, b):
            return True
        atomic = a.mode.atomic or b.mode.atomic  # of two, the scope of one is too narrow
        if (data[0] | data[1]) & flow.rows or (data[0] != data[1] and not atomic):
            return False
        if atomic or flow.into_cells(a, b):
            return True
        return flow.is_update(a, b) and not _kept_apart(flow, a, b, same_block)
    if shared:
        return True
    own, other = (a, b) if not data[0] else (b, a)
    open_scalars = set(free_scalars(kernel, launch))
    moved = any(isinstance(x, Var) and x.name in open_scalars for x in own.address)
    chosen = flow.arrays_in(own.guard) - own.arrays - flow.rows
    everywhere = bool(own.address & _THREADS) or (other.mode.atomic and not own.mode.atomic)
    return not moved and not chosen and everywhere


def _holds_a_key(flow: DataFlow, a: Accessed, b: Accessed) -> bool:
    """Neighbouring elements decide: of ranges one holds the key. Not where they are those of a loop in which
    something else decides (``for (e = first[t]; e < first[t + 1]; e++) if (claimed(to[e])) *count += 1``)."""
    guards = flow.arrays_in(a.guard) & flow.arrays_in(b.guard)
    ranges = guards & bounding_arrays(flow.slice.kernel)
    return bool(ranges) and not (ranges <= flow.rows and guards - ranges)


def _encloses(flow: DataFlow, a: Accessed) -> bool:
    """It is stored by who finds the two neighbours that enclose a number, and not counted there."""
    names = enclosing_arrays(flow.slice.kernel)
    counts = any(
        x.mode is Mode.READ and x.arrays & a.arrays and x.address == a.address for x in flow.accesses
    )
    return not counts and any(array.name in names for array in flow.arrays_in(a.guard))


def _kept_apart(flow: DataFlow, a: Accessed, b: Accessed, same_block: bool) -> bool:
    """The host may well keep such threads apart."""
    return by_ids(flow, a, b, same_block=same_block) or stored_over(flow, a)


# --------------------------------------------------------------------------------------- the diagnosis


def _diagnosis(search: Search, shown: Shown) -> Diagnosis:
    early, late = sorted((shown.first, shown.second), key=_place_in_text)
    conditions = tuple(_conditions(search, shown))
    a, b = early.runner.thread, late.runner.thread
    witness = Witness(
        (a.tid, b.tid), None if shown.same_block else (a.bid, b.bid), early.array.name,
        words.element(early.array, max(early.start, late.start)), {}, shown.inputs.arguments,
        tuple((array.name, at, v) for (array, at), v in shown.asked().items() if isinstance(v, int)),
    )  # fmt: skip
    warp = _within_a_warp(search, shown)
    same = early.touch.site.range == late.touch.site.range
    return race_between(
        search.kernel.name, search.launch, early.array, early.touch, late.touch, witness,
        Status.CONDITIONAL if conditions else Status.PROVED, conditions, warp=warp,
        remedy=words.remedy(not shown.same_block, warp, same, loop_carried=False),
        same_value=_same_value(early, late), swapped=_swapped(shown, early, late),
    )  # fmt: skip


def _swapped(shown: Shown, early: Pending, late: Pending) -> bool:
    """Whether what stands later in the text is executed first: behind a barrier, rounds are in step."""
    return shown.same_block and late.passed > 0 and late.number < early.number


def _place_in_text(p: Pending) -> tuple[object, ...]:
    return (p.touch.site.range, p.touch.mode.writes)


def _same_value(a: Pending, b: Pending) -> bool:
    both = a.touch.constant and b.touch.constant and a.touch.mode is b.touch.mode is Mode.WRITE
    whole = (a.start, a.stop) == (b.start, b.stop)
    return both and whole and a.value is not None and a.value == b.value


def _within_a_warp(search: Search, shown: Shown) -> bool:
    size = search.gpu.warp_size
    a, b = shown.first.runner.thread, shown.second.runner.thread
    same = shown.same_block and a.linear // size == b.linear // size
    return same and shown.first.touch.site != shown.second.touch.site


def _conditions(search: Search, shown: Shown) -> Iterator[Condition]:
    """What of the inputs the race needs."""
    flow = search.flow
    places = [x for p in (shown.first, shown.second) for x in flow.at(p.touch.site.range)]
    decide = frozenset[Source](source for x in places for source in x.address | x.guard)
    cells = {cell: v for cell, v in shown.asked().items() if cell[0] in flow.arrays_in(decide)}
    if cells:
        yield Contents(tuple(cells.items()))
    elif shown.arrays:
        yield _some_contents(search, shown, decide)
    for site, outcome in sorted(shown.choices, key=lambda choice: choice[0].range):
        yield Branch(site.range.start.line, outcome)
    free = set(free_scalars(search.kernel, search.launch))
    addresses = frozenset[Source](source for x in places for source in x.address)
    if not shown.same_block and search.launch.grid is None:
        yield Needs.BLOCKS
    named = [p.name for p in search.kernel.params if p.name in free and p in addresses]
    if not named and not cells and not shown.choices:
        named = [p.name for p in search.kernel.params if p.name in free and p in decide]
    if named:
        yield Example(tuple((name, shown.inputs.arguments[name]) for name in named))


def _some_contents(search: Search, shown: Shown, decide: frozenset[Source]) -> SomeContents:
    """Of arrays whose contents nobody computed. Floats that say where both go do so by their integers."""
    flow = search.flow
    first, second = (flow.at(p.touch.site.range) for p in (shown.first, shown.second))
    places = [flow.arrays_in(x.address) for x in (*first, *second)]
    one_place = all(places) and all(flow.into_cells(a, b) for a in first for b in second)
    leading = frozenset[Array]().union(*places) if one_place else flow.arrays_in(decide)
    arrays = sorted(shown.arrays & leading or shown.arrays, key=lambda array: array.id)
    return SomeContents(tuple(dict.fromkeys(array.name for array in arrays)), one_place)
