"""From what a run saw to findings: confirmed, not observed, or new.

A race that the run saw and the static side knew becomes ``confirmed``; one that the static side did not
know is added and says so; one that the static side suspects, whose two places were executed and watched
and which was not seen, becomes ``not observed``. What was proved stays proved. Definitions:
``docs/semantics.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.dynamic.job import CheckResult, Shape, TrialResult
from cuda_lsp.dynamic.runs import (
    Place,
    PtxSite,
    RunOutcome,
    SeenBanks,
    SeenFault,
    SeenFlag,
    SeenRace,
    SiteKind,
    Stuck,
)
from cuda_lsp.model import (
    BankReport,
    Code,
    Dim3,
    Finding,
    KernelReport,
    LaunchConfig,
    Mode,
    Observation,
    RaceKind,
    Related,
    SourceRange,
    Space,
    Status,
    Verdict,
    Witness,
)

_WARP = 32
_RACES = frozenset({Code.SHARED_RACE, Code.GLOBAL_RACE, Code.WARP_RACE})
_DOUBTED = (Status.POSSIBLE, Status.CONDITIONAL)
_BLOCKS_TOLD = 3  # of those that wait
_VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.ATOMIC: "updates", Mode.ATOMIC_READ: "reads"}


@frozen
class _Race:
    """A race between two source places: the later one in the text second."""

    early: PtxSite
    late: PtxSite
    kind: RaceKind
    seen: SeenRace
    swapped: bool  # the late site is the seen race's first
    observation: Observation


def merged(report: KernelReport, result: CheckResult, shapes: Mapping[str, Shape]) -> KernelReport:
    """``report`` with what ``result`` saw."""
    if not result.results:
        return report
    findings = list(report.findings)
    executed: list[set[SourceRange]] = []  # of each run: both ends must have run in one
    for trial in result.results:
        if trial.races.failure is None:
            executed.append(set(_ranges(result.sites, trial.races.executed)))
        for race in _races(result, trial):
            _confirm(findings, race, report.name, shapes, trial)
        for fault in trial.races.faults:
            _add_fault(findings, fault, result, trial, report.name)
        for stuck in trial.races.stuck:
            _add_divergence(findings, stuck, result, trial, report.name)
        for seen in trial.banks.banks if trial.banks is not None else ():
            _add_conflict(findings, seen, result, trial, report.name)
    # A run under a condition may end early because its contents were made up: the others count all the same.
    complete = result.results[0].races.failure is None and not any(t.races.flags for t in result.results)
    findings = [_judged(f, executed, result.device) if complete else f for f in findings]
    racy = any(f.code in _RACES and f.status is Status.CONFIRMED for f in findings)
    racy = racy or any(t.races.flags for t in result.results)
    findings.sort(key=lambda f: (f.site.range, f.code.value))
    told = tuple(dict.fromkeys(note for note in notes(result) if note not in report.reasons))
    return evolve(
        report,
        verdict=Verdict.RACY if racy else report.verdict,
        findings=tuple(findings),
        reasons=(*report.reasons, *told),
        notes=(*report.notes, *told),
    )


def notes(result: CheckResult) -> Iterator[str]:
    """What a reader must know of the run: shares, failures, what was not covered."""
    if result.problem:
        yield result.problem
    for number, trial in enumerate(result.results):
        outcome = trial.races
        if outcome.failure:
            under = f", in the run for {trial.trial.why}" if number and trial.trial.why else ""
            first, *waits = ending(result, trial)
            yield f"{first}{under}"
            yield from waits
        if outcome.blocks_checked < outcome.blocks_total:
            yield f"{outcome.blocks_checked} of {outcome.blocks_total} blocks were checked dynamically"
        if outcome.flags:
            yield _flagged(outcome.flags)
        nowhere = sum(any(result.sites[k].site is None for k in race.sites) for race in outcome.races)
        if nowhere:
            yield f"{nowhere} pairs of instructions raced that stand in no file of yours"
        outside = [f for f in outcome.faults if _made_up(f, trial)]
        beyond = sorted({_line(result.sites[f.site]) for f in outside})
        if beyond:
            lines = ", ".join(map(str, beyond))
            yield f"accesses outside the buffers of the check were not carried out (line {lines})"
        yield from (with_lines(text, result.sites) for text in outcome.not_covered)
    yield from result.notes


def _flagged(flags: Sequence[SeenFlag]) -> str:
    """How many words raced, and an example."""
    one = min(flags, key=lambda flag: (flag.block, flag.place.offset))
    where = f"byte {one.place.offset} of {source_name(one.place.array or 'memory')}"
    first, second = sorted(one.warps)
    who = f"in warp {first}" if first == second else f"between warps {first} and {second}"
    count = len({flag.place for flag in flags})
    return (
        f"{count} words raced, as {where} {who} of block {one.block} (`flags` does not tell the statements)"
    )


def with_lines(text: str, sites: Sequence[PtxSite]) -> str:
    """What is not covered, and the lines of the instructions that it names."""
    named = [s for s in sites if s.kind in (SiteKind.OTHER, SiteKind.IMAGE) and s.opcode in text]
    lines = sorted({_line(site) for site in named if site.site is not None})
    return f"{text} (line {', '.join(map(str, lines))})" if lines else text


def ending(result: CheckResult, trial: TrialResult) -> Iterator[str]:
    """Why a run ended early, then where the threads of each block were that did not come to an end."""
    launch = trial.trial.launch
    yield f"{result.device}: {trial.races.failure}"
    for stuck in trial.races.stuck[:_BLOCKS_TOLD]:
        places = [
            f"{count} at line {_line(site)} ({_thread(_triple(one, launch.block), None)}, `{text}`)"
            for site, text, count, one in _waiting(stuck, result)
        ]
        left = [f"{stuck.exited} have returned"] if stuck.exited else []
        block = _triple(stuck.block, launch.grid or (1, 1, 1))
        yield f"threads of block ({block[0]},{block[1]},{block[2]}): {'; '.join([*places, *left])}"


def _line(site: PtxSite) -> int:
    return site.site.range.start.line if site.site is not None else 0


def _ranges(sites: Iterable[PtxSite], wanted: frozenset[int]) -> Iterator[SourceRange]:
    for k, site in enumerate(sites):
        if k in wanted and site.site is not None:
            yield site.site.range


# ------------------------------------------------------------------------------------------ races


def _races(result: CheckResult, trial: TrialResult) -> Iterator[_Race]:
    """One per pair of source places and kind, with the numbers of all its instructions added up."""
    found: dict[tuple[object, ...], _Race] = {}
    for seen in trial.races.races:
        first, second = (result.sites[k] for k in seen.sites)
        if first.site is None or second.site is None:
            continue
        swapped = first.site.range.start > second.site.range.start
        early, late = (second, first) if swapped else (first, second)
        modes = seen.modes[::-1] if swapped else seen.modes
        kind = _kind(*modes)
        assert early.site is not None
        assert late.site is not None
        key = (early.site.range, late.site.range)
        known = found.get(key)
        pairs = seen.pairs + (known.observation.pairs if known else 0)
        words = max(seen.words, known.observation.words if known else 0)
        observation = _observation(trial, result.device, pairs, words)
        if known is not None and (known.kind is RaceKind.WAW or kind is not RaceKind.WAW):
            found[key] = evolve(known, observation=observation)
        else:
            found[key] = _Race(early, late, kind, seen, swapped, observation)
    yield from found.values()


def _kind(early: Mode, late: Mode) -> RaceKind:
    if not early.writes:
        return RaceKind.WAR
    return RaceKind.WAW if late.writes else RaceKind.RAW


def _observation(trial: TrialResult, device: str, pairs: int, words: int) -> Observation:
    outcome = trial.races
    return Observation(
        device,
        trial.trial.launch,
        outcome.seconds,
        pairs,
        words,
        outcome.blocks_checked,
        outcome.blocks_total,
    )


def _confirm(
    findings: list[Finding], race: _Race, kernel: str, shapes: Mapping[str, Shape], trial: TrialResult
) -> None:
    assert race.early.site is not None
    assert race.late.site is not None
    for k, finding in enumerate(findings):
        if finding.code in _RACES and _same_pair(finding, race.early.site.range, race.late.site.range):
            if finding.status is Status.POSSIBLE:
                findings[k] = _certain_now(finding, _new_race(race, kernel, shapes, trial), trial)
            elif finding.status is not Status.CONFIRMED:
                findings[k] = _confirmed(finding, race.observation)
            return
    findings.append(_missed(_new_race(race, kernel, shapes, trial)))


def _missed(seen: Finding) -> Finding:
    """A finding of the run that the static analysis should have made."""
    return evolve(seen, message=f"{seen.message}, the static analysis had not found it", missed=True)


def _same_pair(finding: Finding, early: SourceRange, late: SourceRange) -> bool:
    ends = [finding.site.range, *(r.site.range for r in finding.related[:1])]
    if len(ends) == 1:
        ends *= 2
    return (_overlap(ends[0], late) and _overlap(ends[1], early)) or (
        _overlap(ends[0], early) and _overlap(ends[1], late)
    )


def _overlap(a: SourceRange, b: SourceRange) -> bool:
    return _real(a.path) == _real(b.path) and a.start < b.end and b.start < a.end


def _real(path: Path) -> str:
    return str(path.absolute())


def _confirmed(finding: Finding, observation: Observation) -> Finding:
    return evolve(
        finding,
        status=Status.CONFIRMED,
        severity=None,
        message=f"{finding.message}; {_seen(observation)}",
        observation=observation,
        reason=None,
    )


def _certain_now(finding: Finding, seen: Finding, trial: TrialResult) -> Finding:
    """A suspicion that was seen to be true: it says what was seen, not what might be.

    With arguments and data of ours it may be what the program never does, so it says what it depends on.
    """
    ours = finding.reason is not None and not trial.trial.own_memory
    doubt = f" with made-up inputs (depends on {finding.reason})" if ours else ""
    return evolve(
        finding,
        code=seen.code,
        status=Status.CONFIRMED,
        severity=None,
        message=f"{seen.message}{doubt}",
        kind=seen.kind,
        witness=seen.witness,
        same_value=seen.same_value,
        launch=seen.launch,
        observation=seen.observation,
        condition=None,
        reason=None,
    )


def _seen(observation: Observation) -> str:
    pairs = f"{observation.pairs} thread pair{'s' if observation.pairs != 1 else ''}"
    return f"seen on {observation.device} ({pairs})"


def _new_race(race: _Race, kernel: str, shapes: Mapping[str, Shape], trial: TrialResult) -> Finding:
    assert race.early.site is not None
    assert race.late.site is not None
    seen, launch = race.seen, trial.trial.launch
    order = (1, 0) if race.swapped else (0, 1)
    threads = [_triple(seen.threads[k], launch.block) for k in order]
    grid = launch.grid or (1, 1, 1)
    blocks = [_triple(seen.blocks[k], grid) for k in order]
    apart = seen.blocks[0] != seen.blocks[1]
    array, index = _element(seen.place, shapes, race.late.bytes)
    shown = f"{array}[{']['.join(map(str, index))}]"
    names = [_thread(t, b if apart else None) for t, b in zip(threads, blocks, strict=True)]
    modes = seen.modes[::-1] if race.swapped else seen.modes
    actions = [f"{_VERBS[m]} {s.text}" for m, s in zip(modes, (race.early.site, race.late.site), strict=True)]
    lanes = _between_lanes(seen, trial)
    remedy = "no __syncwarp() orders the lanes of this warp; " if lanes else ""
    message = (
        f"{race.kind.value} race on {shown}: {names[1]} {actions[1]} while {names[0]} {actions[0]};"
        f" {remedy}{_seen(race.observation)}"
    )
    memory = Code.SHARED_RACE if seen.place.space is Space.SHARED else Code.GLOBAL_RACE
    code = Code.WARP_RACE if lanes else memory
    own = {n: v for n, v in trial.trial.scalars.items() if n not in launch.arguments}
    witness = Witness((threads[0], threads[1]), (blocks[0], blocks[1]) if apart else None, array, index, own)
    return Finding(
        code,
        Status.CONFIRMED,
        message,
        kernel,
        race.late.site,
        (Related(race.early.site, f"the other access: {actions[0]}"),),
        kind=race.kind,
        witness=witness,
        same_value=seen.same_value and race.kind is RaceKind.WAW,
        launch=launch,
        observation=race.observation,
    )


def _between_lanes(seen: SeenRace, trial: TrialResult) -> bool:
    """Whether a ``__syncwarp`` is what is missing: the static side's rule for ``warp-race``.

    Lanes of one warp of several raced, at different instructions, where no two warps raced with each other.
    """
    if trial.trial.launch.threads <= _WARP or seen.blocks[0] != seen.blocks[1]:
        return False
    if seen.warp_only is not None:
        return seen.warp_only

    def within(race: SeenRace) -> bool:
        return race.threads[0] // _WARP == race.threads[1] // _WARP

    here = [race for race in trial.races.races if race.blocks[0] == race.blocks[1]]
    return seen.sites[0] != seen.sites[1] and all(map(within, here))


def _thread(thread: Dim3, block: Dim3 | None) -> str:
    text = f"thread ({thread[0]},{thread[1]},{thread[2]})"
    return text if block is None else f"{text} of block ({block[0]},{block[1]},{block[2]})"


def _triple(linear: int, extents: Dim3) -> Dim3:
    x, y, _ = extents
    return (linear % x, linear // x % y, linear // (x * y))


def _element(place: Place, shapes: Mapping[str, Shape], access: int) -> tuple[str, tuple[int, ...]]:
    """The array's name in the source and the subscripts of the element."""
    name = source_name(place.array) if place.array is not None else "memory"
    shape = shapes.get(name)
    flat = place.offset // max(shape.element if shape else access, 1)
    if shape is None or len(shape.extents) < 2:
        return name, (flat,)
    indices: list[int] = []
    for extent in reversed(shape.extents[1:]):
        flat, rest = divmod(flat, max(extent, 1))
        indices.append(rest)
    return name, (flat, *reversed(indices))


def source_name(mangled: str) -> str:
    """The last identifier of a mangled variable name (Itanium ABI: its length comes before it)."""
    for match in reversed(list(re.finditer(r"\d+", mangled))):
        for start in range(match.start(), match.end()):
            size = int(mangled[start : match.end()])
            name = mangled[match.end() : match.end() + size]
            if size and len(name) == size and name.isidentifier():
                return name
    return mangled


# ------------------------------------------------------------------------ barriers, banks, verdicts


def _add_divergence(
    findings: list[Finding], stuck: Stuck, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    places = _waiting(stuck, result)
    barriers = [place for place in places if place[0].kind is SiteKind.BARRIER]
    if not barriers:
        return
    site, _, count, _ = barriers[0]
    assert site.site is not None
    others = [f"{n} at line {_line(s)}" for s, _, n, _ in places if s is not site]
    left = [f"{stuck.exited} have returned"] if stuck.exited else []
    rest = " and ".join([*others, *left])
    message = (
        f"not all threads of a block reach {site.site.text}: {count} wait there, {rest};"
        f" seen on {result.device}"
    )
    observation = _observation(trial, result.device, 0, 0)
    for k, finding in enumerate(findings):
        if finding.code is Code.BARRIER_DIVERGENCE and _overlap(finding.site.range, site.site.range):
            findings[k] = evolve(
                finding, status=Status.CONFIRMED, severity=None, reason=None, observation=observation
            )
            return
    if (others or left) and not stuck.late:
        seen = Finding(
            Code.BARRIER_DIVERGENCE, Status.CONFIRMED, message, kernel, site.site,
            launch=trial.trial.launch, observation=observation,
        )  # fmt: skip
        findings.append(_missed(seen))


def _waiting(stuck: Stuck, result: CheckResult) -> list[tuple[PtxSite, str, int, int]]:
    """Where threads wait in the user's files, what stands there, how many, and one of them."""
    places = [(result.sites[k], count, one) for k, count, one in stuck.waiting]
    return [(site, site.site.text, count, one) for site, count, one in places if site.site is not None]


def _made_up(fault: SeenFault, trial: TrialResult) -> bool:
    """Memory of the check itself only has the size that we gave it: what lies outside tells nothing."""
    if fault.place.space is Space.SHARED:
        return trial.trial.spare_shared > 0
    return not trial.trial.own_memory


def _add_fault(
    findings: list[Finding], fault: SeenFault, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    """An access outside shared memory, or outside what a whole program has allocated."""
    site = result.sites[fault.site].site
    if site is None or _made_up(fault, trial):
        return
    shared = fault.place.space is Space.SHARED
    code = Code.SHARED_OUT_OF_BOUNDS if shared else Code.GLOBAL_OUT_OF_BOUNDS
    observation = _observation(trial, result.device, 0, 0)
    for k, finding in enumerate(findings):
        if finding.code is code and _overlap(finding.site.range, site.range):
            findings[k] = evolve(
                finding, status=Status.CONFIRMED, severity=None, reason=None, observation=observation
            )
            return
    space = "shared memory" if shared else "global memory"
    name = source_name(fault.place.array) if fault.place.array else space
    where = f"is not aligned in {name}" if fault.misaligned else f"is outside {name}"
    block = None if shared else _triple(fault.block, trial.trial.launch.grid or (1, 1, 1))
    thread = _thread(_triple(fault.thread, trial.trial.launch.block), block)
    message = f"{site.text} {where}: {thread} reaches byte {fault.place.offset}; seen on {result.device}"
    seen = Finding(
        code, Status.CONFIRMED, message, kernel, site,
        launch=trial.trial.launch, observation=observation,
    )  # fmt: skip
    findings.append(_missed(seen) if shared else seen)


def _add_conflict(
    findings: list[Finding], seen: SeenBanks, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    site = result.bank_sites[seen.site].site
    if site is None or trial.banks is None:
        return
    observation = _bank_observation(trial.banks, trial.trial.launch, result.device)
    mean = seen.wavefronts / max(seen.executions, 1)
    bank = BankReport(seen.worst_ways, seen.worst_wavefronts, seen.worst_ideal, mean, seen.histogram)
    for k, finding in enumerate(findings):
        if finding.code is Code.BANK_CONFLICT and _overlap(finding.site.range, site.range):
            if finding.status is not Status.CONFIRMED and seen.worst_wavefronts > seen.worst_ideal:
                findings[k] = evolve(finding, status=Status.CONFIRMED, severity=None, observation=observation)
            return
    if seen.worst_wavefronts > seen.worst_ideal:
        message = (
            f"{seen.worst_ways}-way bank conflict: {site.text} takes {seen.worst_wavefronts} wavefronts"
            f" instead of {seen.worst_ideal}; seen on {result.device}"
        )
        findings.append(
            Finding(
                Code.BANK_CONFLICT, Status.CONFIRMED, message, kernel, site,
                bank=bank, launch=trial.trial.launch, observation=observation,
            )
        )  # fmt: skip


def _bank_observation(outcome: RunOutcome, launch: LaunchConfig, device: str) -> Observation:
    return Observation(device, launch, outcome.seconds, 0, 0, outcome.blocks_checked, outcome.blocks_total)


def _judged(finding: Finding, executed: list[set[SourceRange]], device: str) -> Finding:
    """A suspicion whose two places ran, in one run, without being seen to race."""
    if finding.code not in _RACES or finding.status not in _DOUBTED:
        return finding
    ends = [finding.site.range, *(r.site.range for r in finding.related[:1])]
    if not any(all(any(_overlap(end, place) for place in ran) for end in ends) for ran in executed):
        return finding
    return evolve(
        finding,
        status=Status.NOT_OBSERVED,
        severity=None,
        message=f"{finding.message}; not seen on {device}, which proves nothing",
    )


__all__ = ["ending", "merged", "notes", "source_name", "with_lines"]
