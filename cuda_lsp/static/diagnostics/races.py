"""Data races in a trace: unordered accesses by different threads to overlapping bytes, one a write.

Definitions: ``docs/semantics.md``.  Known addresses are compared exactly (``collisions``); addresses that
depend on data are compared by what is known of them (bounds, distinct tickets) and can only give
possible races.  Every witness is evaluated again before it is shown.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
from attrs import evolve, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.model import RaceKind, Site, SourceRange, Space, Status, Witness
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics import waiting
from cuda_lsp.static.diagnostics.before_parting import BeforeParting
from cuda_lsp.static.diagnostics.collisions import Collision, collide
from cuda_lsp.static.diagnostics.comparing import Comparing
from cuda_lsp.static.diagnostics.data_collisions import Reach, all_apart, data_collision, reaches
from cuda_lsp.static.diagnostics.equal_addresses import meeting, same_value
from cuda_lsp.static.diagnostics.footprints import Group, TooManyPairs, apart
from cuda_lsp.static.diagnostics.overlapping import say_overlapping
from cuda_lsp.static.diagnostics.ranks import from_first_rank
from cuda_lsp.static.execution import barrier_replay, critical_steps, tickets
from cuda_lsp.static.execution.trace import Access, Path, Trace, spread_out
from cuda_lsp.static.execution.values import Data, Lanes
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis, race_between
from cuda_lsp.static.findings.places import stands_below
from cuda_lsp.static.findings.steps import Remedy


@frozen(eq=False)
class Race:
    """A pair of accesses that races; ``collision`` is its witness, None when addresses are data.

    ``met``: then, a lane of each that surely meet, wherever that is.
    """

    first: Access
    second: Access
    status: Status
    between_blocks: bool
    collision: Collision | None = None
    reason: str | None = None
    decided: int = 0
    met: tuple[int, int] | None = None
    same_value: bool = False

    @property
    def decided_first(self) -> int:
        """Choices on unknown conditions made before the first of the two accesses."""
        return min(self.first.decided, self.second.decided)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.first.array.id, *sorted((self.first.site.range, self.second.site.range)))


def find_races(
    trace: Trace, comparing: Comparing | None = None, *, merged_barrier: Site | None = None,
    among: Callable[[Access], bool] | None = None,
) -> tuple[Race, ...]:  # fmt: skip
    """Every pair of source sites that races, at most once each, surest first.

    ``merged_barrier``: pretend that the barriers written there are absent. ``among``: the accesses that
    matter, if not all. What could not be decided, also for lack of time (``comparing``), is added to
    ``trace.undecided``.
    """
    comparing = comparing or Comparing(budgets.COMPARING_AGAIN_S)
    best: dict[tuple[object, ...], Race] = {}
    in_paths = Counter[tuple[object, ...]]()
    before = BeforeParting[Race]()
    for path in trace.paths:
        here: dict[tuple[object, ...], Race] = {}
        for race in _path_races(trace, path, merged_barrier, comparing, before, among):
            between = _unmodelled_between(trace, path, race)
            if between is not None:
                trace.not_decided(_unsure_pair(race.first, race.second, f"what is not modelled ({between})"))
                continue
            old = here.get(race.key)
            if old is None or _rank(race) < _rank(old):
                here[race.key] = race
        for key, race in here.items():
            in_paths[key] += 1
            if key not in best or _rank(race) < _rank(best[key]):
                best[key] = race
    result = [_settled(trace, race, in_paths[key]) for key, race in best.items()]
    return tuple(sorted(result, key=_rank))


Intervals = dict[tuple[int, int], int]


def _unmodelled_between(trace: Trace, path: Path, race: Race) -> str | None:
    """A synchronisation between the two accesses of which nobody knows what it orders."""
    early, late = sorted((race.first.sequence, race.second.sequence))
    if path.blurred is not None and not race.between_blocks:
        return path.blurred
    ordered = waiting.may_order(path, race.first, race.second, race.between_blocks)
    if ordered is None and race.between_blocks and facts_of(trace.kernel).waiting:
        ordered = waiting.may_be_told(trace.kernel, race.first, race.second)
    if ordered is not None:
        return ordered
    if critical_steps.unsure(race.first, race.second, race.between_blocks):
        return critical_steps.UNLIKE
    return next((what for at, what in path.unmodelled if early < at < late), None)


def _rank(race: Race) -> tuple[object, ...]:
    early, late = _in_text_order(race)
    modes = (late.mode, early.mode) if _swapped(race) else (early.mode, late.mode)
    kind = {RaceKind.RAW: 1, RaceKind.WAR: 2, RaceKind.WAW: 0}[conflicts.kind(*modes)]
    a, b = sorted((race.first.sequence, race.second.sequence))
    return (race.status is not Status.PROVED, race.same_value, race.between_blocks, kind, b, a)


def _settled(trace: Trace, race: Race, paths: int) -> Race:
    """A race on one way through an unknown condition only is possible, on all of them it is proved."""
    if race.status is Status.PROVED and race.decided and paths < len(trace.paths):
        path = next((p for p in trace.paths if any(a is race.first for a in p.accesses)), None)
        if path is not None and tickets.inevitable(path, race.decided) and not race.decided_first:
            return race
        reason = path.choices[race.decided - 1][1] if path else "a condition that depends on data"
        return evolve(race, status=Status.POSSIBLE, reason=reason)
    return race


# ---------------------------------------------------------------------------------------- groups


def _path_races(
    trace: Trace, path: Path, merged: Site | None, comparing: Comparing, before: BeforeParting[Race],
    among: Callable[[Access], bool] | None,
) -> Iterator[Race]:  # fmt: skip
    by_array: dict[int, list[Access]] = defaultdict(list)
    for a in path.accesses:
        if among is None or among(a):
            by_array[a.array.id].append(a)
    say_overlapping(trace, by_array.values())
    merge = _interval_map(path, merged)
    for accesses in by_array.values():
        if not any(a.mode.writes for a in accesses):
            continue
        in_global = accesses[0].array.space is Space.GLOBAL
        reached = accesses[0].array in trace.reached
        among_blocks = (in_global or reached) and len(trace.blocks) > 1
        if among_blocks and not reached and _all_apart(trace, accesses, comparing):
            continue
        for block in range(len(trace.blocks)):
            yield from _within_block(trace, path, accesses, block, merge, comparing, before)
        if among_blocks:
            yield from _between_blocks(trace, path, accesses, comparing)


def _all_apart(trace: Trace, accesses: list[Access], comparing: Comparing) -> bool:
    """Each byte belongs to one thread, or nobody writes it: no need to look at blocks and intervals."""
    if any(isinstance(a.offset, Data) for a in accesses):
        return False
    every, thread = slice(0, trace.lanes), np.arange(trace.lanes)
    try:
        return apart(Group(accesses, every, thread, True, trace.threads, False, comparing=comparing))
    except TooManyPairs:
        return False


def _interval_map(path: Path, merged: Site | None) -> Intervals:
    """(block, interval) → the interval it melts into when the barriers at ``merged`` are absent."""
    result: Intervals = {}
    if merged is None:
        return result
    for event in path.barriers:
        if event.barrier.site.range == merged.range:
            for block, interval in enumerate(event.clock):
                before = result.get((block, interval), interval)
                result[block, interval + 1] = before
    return result


def _within_block(
    trace: Trace, path: Path, accesses: list[Access], block: int, merge: Intervals, comparing: Comparing,
    before: BeforeParting[Race],
) -> Iterator[Race]:  # fmt: skip
    threads = trace.threads
    lanes = slice(block * threads, (block + 1) * threads)
    groups: dict[int, list[Access]] = defaultdict(list)
    for a in accesses:
        interval = a.clock[block]
        groups[merge.get((block, interval), interval)].append(a)
    seen: set[object] = set()
    for members in groups.values():
        distinct = _distinct(members, bool(path.orders))
        signature = tuple([a.signature for a in distinct])
        again = signature in seen and not path.orders and all(a.drawn is None for a in distinct)
        if again or not any(a.mode.writes for a in distinct):
            continue
        seen.add(signature)
        if comparing.over():
            trace.not_decided(f"array {distinct[0].array.name}: comparing all accesses takes too long")
            return
        group = Group(
            _known_places(distinct), lanes, np.arange(threads), False, threads, trace.warp_synchronous,
            trace.gpu.warp_size, comparing, trace.equal, path if path.orders else None,
        )  # fmt: skip
        yield from before.of(path, block, distinct, partial(_in_group, trace, distinct, group, path))


def _between_blocks(trace: Trace, path: Path, accesses: list[Access], comparing: Comparing) -> Iterator[Race]:
    """Blocks of one cluster wait for one another at its barriers and those of the grid, others at these."""
    block, clusters = np.arange(trace.lanes) // trace.threads, trace.clusters
    near = from_first_rank(trace, accesses) if accesses[0].array in trace.reached else accesses
    for first in range(len(clusters)) if trace.together > trace.threads else ():
        if first and clusters[first - 1] == clusters[first]:
            continue  # in the middle of a cluster
        lanes = slice(first * trace.threads, first * trace.threads + trace.together)
        yield from _among(
            trace, path, near, (lanes, block[lanes]), lambda a, n=first: a.cluster_clock[n], comparing
        )
    if accesses[0].array.space is Space.GLOBAL:
        who = slice(0, trace.lanes), np.array(clusters)[block]
        yield from _among(trace, path, accesses, who, lambda a: a.grid_clock, comparing)


def _among(
    trace: Trace, path: Path, accesses: Iterable[Access], who: tuple[slice, Lanes],
    interval_of: Callable[[Access], int], comparing: Comparing,
) -> Iterator[Race]:  # fmt: skip
    """``who``: the lanes looked at, and which block or cluster each of them is in."""
    lanes, agent = who
    intervals: dict[int, list[Access]] = defaultdict(list)
    for a in accesses:
        intervals[interval_of(a)].append(a)
    for members in intervals.values():
        distinct = _distinct(members)
        known = _known_places(distinct)
        group = Group(known, lanes, agent, True, trace.threads, False, comparing=comparing, equal=trace.equal)
        yield from _in_group(trace, distinct, group, path)


def _distinct(members: list[Access], phases: bool = False) -> list[Access]:
    """Accesses that differ in what they can race with, in order.

    Numbers drawn, and named barriers (``phases``), may order one execution of an access and not the next.
    """
    every = phases or any(a.drawn is not None for a in members)
    found = {(a.signature, a.sequence if every else 0): a for a in reversed(members)}
    return list(found.values())[::-1]


def _known_places(accesses: list[Access]) -> list[Access]:
    return [a for a in accesses if not isinstance(a.offset, Data)]


def _in_group(trace: Trace, accesses: list[Access], group: Group, path: Path) -> Iterator[Race]:
    yield from _known(trace, group, path)
    yield from _unknown(trace, accesses, group, path)


def _known(trace: Trace, group: Group, path: Path) -> Iterator[Race]:
    if not group.accesses:
        return
    try:
        found = collide(group, lambda a, b: _compatible(trace, path, a, b, group.between_blocks))
    except TooManyPairs as reason:
        trace.not_decided(f"array {group.accesses[0].array.name}: {reason}")
        return
    for c in found:
        doubts = [d for d in (c.first.doubt, c.second.doubt) if d is not None]
        decided = max(c.first.decided, c.second.decided)
        both = c.first.drawn is not None and c.second.drawn is not None
        if c.sure and (group.between_blocks or not both):  # one block need not draw both numbers
            same = c.same_value
            yield Race(c.first, c.second, Status.PROVED, group.between_blocks, c, None, decided, None, same)
        elif conflicts.guessed(c.first, c.second):
            continue  # told where it is certain; a doubt of it is none of the kernel
        elif any(d.weak for d in doubts):
            trace.not_decided(_unsure_pair(c.first, c.second, next(d.reason for d in doubts if d.weak)))
        else:
            reason = doubts[0].reason if doubts else "a condition that depends on data"
            yield Race(c.first, c.second, Status.POSSIBLE, group.between_blocks, c, reason, decided)


def _unknown(trace: Trace, accesses: list[Access], group: Group, path: Path) -> Iterator[Race]:
    """Pairs of which one address is data; each pair of sites once."""
    reach = reaches(group.lanes, group.agent)
    for one, other in _places(accesses):
        if group.comparing.over(looks=0):
            break
        if _at_once_apart([a for _, a in (one if one is other else (*one, *other))], group):
            continue
        found = _doubtful_pair(trace, _pairs(one, other), reach, group, path)
        if found is None:
            continue
        a, b, doubt = found
        met = meeting(a, b, group.lanes, group.agent, group.between_blocks, trace)
        if met is not None:
            alike = same_value(a, b, met, trace)
            yield Race(
                a, b, Status.PROVED, group.between_blocks, None, None, max(a.decided, b.decided), met, alike
            )
        elif conflicts.guessed(a, b):
            continue
        elif doubt.weak:
            trace.not_decided(_unsure_pair(a, b, doubt.reason))
        else:
            yield Race(a, b, Status.POSSIBLE, group.between_blocks, None, doubt.reason)
    if group.comparing.over(looks=0):
        trace.not_decided(f"array {accesses[0].array.name}: comparing all accesses takes too long")


def _at_once_apart(accesses: list[Access], group: Group) -> bool:
    """As many pairs as the rounds of two loops have, none of which meets, by bounds of their addresses."""
    stretches = len(accesses) * (group.lanes.stop - group.lanes.start)
    hurried = group.comparing.until < math.inf and stretches > budgets.MOST_STRETCHES_WAITED_FOR
    if len(accesses) <= 2 or hurried or any(a.drawn is not None for a in accesses):
        return False
    if not any(isinstance(a.offset, Data) for a in accesses) or not any(a.mode.writes for a in accesses):
        return False
    if group.comparing.over(looks=len(accesses), cells=stretches):
        return False
    return all_apart(accesses, group.lanes, group.agent)


def _places(accesses: list[Access]) -> Iterator[tuple[list[tuple[int, Access]], list[tuple[int, Access]]]]:
    """The numbered accesses of two places, or of one twice, where an address is data and somebody writes."""
    unknown = {a.site.range for a in accesses if isinstance(a.offset, Data)}
    if not unknown:
        return
    writes = {a.site.range for a in accesses if a.mode.writes}
    places: dict[SourceRange, list[tuple[int, Access]]] = {}
    for number, a in enumerate(accesses):
        places.setdefault(a.site.range, []).append((number, a))
    for one, other in combinations_with_replacement(places, 2):
        if not unknown.isdisjoint((one, other)) and not writes.isdisjoint((one, other)):
            yield places[one], places[other]


def _pairs(one: list[tuple[int, Access]], other: list[tuple[int, Access]]) -> Iterator[tuple[Access, Access]]:
    """Those of which one address is data, in the order of execution."""
    for (i, a), (j, b) in combinations_with_replacement(one, 2) if one is other else product(one, other):
        if isinstance(a.offset, Data) or isinstance(b.offset, Data):
            yield (a, b) if i <= j else (b, a)


def _doubtful_pair(
    trace: Trace, pairs: Iterator[tuple[Access, Access]], reach: Callable[[Access], Reach], group: Group,
    path: Path,
) -> tuple[Access, Access, Data] | None:  # fmt: skip
    """The first that may meet, and what that depends on; None: none does, or the time is over."""
    between = group.between_blocks
    for a, b in pairs:
        if not conflicts.conflicting(a, b, not between) or not _compatible(trace, path, a, b, between):
            continue
        if critical_steps.one_lock(a, b, between):
            continue
        if group.comparing.over():
            return None
        if group.phases is not None and _all_ordered(group.phases, a, b, group):
            continue
        doubt = data_collision(a, b, reach(a), reach(b), between, trace)
        if doubt is not None:
            return a, b, doubt
    return None


def _all_ordered(path: Path, a: Access, b: Access, group: Group) -> bool:
    return barrier_replay.order_all(path, a, b, group.lanes.start // group.threads, group.threads)


def _unsure_pair(a: Access, b: Access, reason: str) -> str:
    lines = sorted({a.site.range.start.line, b.site.range.start.line})
    where = " and ".join(f"line {n}" for n in lines)
    return f"{where}: whether threads meet in {a.array.name} depends on {reason}"


def _compatible(trace: Trace, path: Path, a: Access, b: Access, between: bool) -> bool:
    """Whether two accesses can both happen with nothing of the ticket pattern ordering them.

    Guards are per block.
    """
    if not between:
        outcomes = dict(a.guards)
        if not all(outcomes.get(serial, outcome) == outcome for serial, outcome in b.guards):
            return False
    if a.drawn is None and b.drawn is None:
        return True
    apart = tickets.keeps_apart(path, a, b, between)
    if apart and between:
        trace.ticketed.add(frozenset((a.site.range, b.site.range)))
    return not apart


# -------------------------------------------------------------------------------------- findings


def _in_text_order(race: Race) -> tuple[Access, Access]:
    one, other = race.first, race.second
    swapped = (other.site.range.start, other.sequence) < (one.site.range.start, one.sequence)
    return (other, one) if swapped else (one, other)


def _swapped(race: Race) -> bool:
    """Whether what stands later in the text is executed first. Blocks are in no order."""
    c = race.collision
    if race.between_blocks or c is None:
        return False
    rounds = dict(zip((id(c.first), id(c.second)), c.rounds, strict=True))
    early, late = ((rounds[id(a)], a.sequence) for a in _in_text_order(race))
    return late < early


def race_findings(
    trace: Trace, comparing: Comparing | None = None, among: Callable[[Access], bool] | None = None
) -> tuple[Diagnosis, ...]:
    """All races: the squiggle is on the later access in the text, the other is related.

    ``among`` as in ``find_races``.

    A race at addresses that depend on data carries no witness. Every other witness has been checked.
    """
    races = find_races(trace, comparing, among=among)
    # where whole warps race too, the missing barrier is one of the block, for every pair it would order
    block_wide = {r.first.clock for r in races if r.collision is not None and not r.collision.same_warp}
    found = (_diagnosis(trace, race, race.first.clock not in block_wide) for race in races)
    return tuple(d for d in found if d is not None)


def _diagnosis(trace: Trace, race: Race, warp_only: bool) -> Diagnosis | None:
    early, late = _in_text_order(race)
    c = race.collision
    doubt = None if race.reason is None else OnData(race.reason)
    if c is None:
        seen = None if race.met is None else _somewhere(trace, race, early)
        same = race.same_value and seen is not None
        remedy = words.remedy(
            race.between_blocks, False, early is late, early.site == late.site, _in_cluster(trace, race)
        )
        return race_between(
            trace.kernel.name, trace.launch, early.array, early, late, seen, race.status, doubt=doubt,
            remedy=remedy, same_value=same,
        )  # fmt: skip
    if not _recheck(c):
        trace.not_decided(f"a witness on {early.array.name} did not hold when evaluated again")
        return None
    a, b = c.lanes if early is c.first else (c.lanes[1], c.lanes[0])
    round = c.rounds[0] if early is c.first else c.rounds[1]
    blocks = (trace.block(a), trace.block(b))
    witness = Witness(
        (trace.thread(a), trace.thread(b)),
        None if blocks == (trace.blocks[0], trace.blocks[0]) else blocks,  # what block 0 does, any block does
        early.array.name, words.element(early.array, c.byte), _values(early, a, round),
    )  # fmt: skip
    warp = warp_only and c.same_warp and not c.same_instruction and not race.between_blocks
    warp = warp and not trace.warp_synchronous
    first, second = (early, late) if early.sequence <= late.sequence else (late, early)
    again = stands_below(first.site, second.site)
    carried = again or late.site.range == early.site.range
    remedy = words.remedy(race.between_blocks, warp, c.same_instruction, carried, _in_cluster(trace, race))
    if critical_steps.without_fence(early, late):
        remedy = Remedy.UNFENCED
    return race_between(
        trace.kernel.name, trace.launch, early.array, early, late, witness, race.status, doubt=doubt,
        remedy=remedy, warp=warp, same_value=c.same_value, swapped=_swapped(race),
    )  # fmt: skip


def _in_cluster(trace: Trace, race: Race) -> bool:
    """Whether the two blocks could wait for one another at a barrier of their cluster."""
    lanes = race.met if race.collision is None else race.collision.lanes
    if lanes is None or not race.between_blocks:
        return race.between_blocks and race.first.array.space is Space.SHARED
    one, other = (trace.clusters[lane // trace.threads] for lane in lanes)
    return one == other


def _somewhere(trace: Trace, race: Race, early: Access) -> Witness:
    """Two threads that meet at a place that has no number."""
    assert race.met is not None
    a, b = race.met if early is race.first else race.met[::-1]
    blocks = (trace.block(a), trace.block(b))
    together = None if blocks == (trace.blocks[0], trace.blocks[0]) else blocks
    return Witness((trace.thread(a), trace.thread(b)), together, early.array.name, (), _values(early, a))


def _positions(a: Access, lane: int) -> Lanes:
    """Indices of the rounds in which ``lane`` may execute ``a``, flattened over the rounds' axes."""
    flat = np.reshape(a.may, (-1, a.may.shape[-1]))[:, lane]
    return np.flatnonzero(flat)


def _bytes_of(a: Access, lane: int) -> Lanes:
    assert not isinstance(a.offset, Data)
    offsets = np.reshape(spread_out(a.offset, a.may.shape), (-1, a.may.shape[-1]))
    return offsets[_positions(a, lane), lane]


def _recheck(c: Collision) -> bool:
    """Both lanes execute their access and both touch the witness byte."""
    for access, lane in zip((c.first, c.second), c.lanes, strict=True):
        starts = _bytes_of(access, lane)
        if not ((starts <= c.byte) & (c.byte < starts + access.size)).any():
            return False
    return c.lanes[0] != c.lanes[1]


def _values(a: Access, lane: int, round: int | None = None) -> dict[str, int]:
    """Loop counters of ``lane`` when it executes ``a``, in this round or the first."""
    result: dict[str, int] = {}
    rounds = _positions(a, lane)
    for name, value in a.loops:
        if isinstance(value, int):
            result[name] = value
        elif isinstance(value, np.ndarray) and len(rounds):
            lanes = np.reshape(spread_out(value, a.may.shape), (-1, a.may.shape[-1]))
            at = round if round is not None and round in rounds else rounds[0]
            result[name] = int(lanes[min(int(at), len(lanes) - 1), lane])
    return result
