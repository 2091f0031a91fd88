"""Races that a run saw: which finding each one confirms, or the new finding that it is.

Definitions: ``docs/semantics.md``. The instructions of one pair of source places are one race.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.dynamic.job import CheckResult, Shape, Trial, TrialResult, places_of
from cuda_lsp.dynamic.observations.places import (
    element_of,
    missed,
    observation_of,
    overlap,
    thread_words,
    triple,
)
from cuda_lsp.dynamic.runs import WARP, PtxSite, SeenRace
from cuda_lsp.model import (
    RACES,
    Code,
    Finding,
    Mode,
    Observation,
    RaceKind,
    Related,
    SourceRange,
    Space,
    Status,
    Witness,
    severity_of,
)
from cuda_lsp.source_names import called

_ARGUMENTS_TOLD = 4
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


def all_races(result: CheckResult, instance: str = "") -> Iterator[tuple[_Race, TrialResult]]:
    """One per pair of source places, with the first run that showed it and what all runs saw of it."""
    found: dict[tuple[object, ...], tuple[_Race, TrialResult]] = {}
    for trial in result.results:
        for race in races_of(result, trial, instance):
            assert race.early.site is not None
            assert race.late.site is not None
            key = (race.early.site.range, race.late.site.range)
            known = found.get(key)
            if known is None:
                found[key] = race, trial
            else:
                seen, more = known[0].observation, race.observation
                seen = evolve(
                    seen,
                    pairs=seen.pairs + more.pairs,
                    words=max(seen.words, more.words),
                    launches=(*seen.launches, *more.launches),
                    blocks=max(seen.blocks, more.blocks),
                )
                found[key] = evolve(known[0], observation=seen), known[1]
    yield from found.values()


def races_of(result: CheckResult, trial: TrialResult, instance: str = "") -> Iterator[_Race]:
    """One per pair of source places of one run, with the numbers of all its instructions added up."""
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
        observation = evolve(
            observation_of(trial, result.device, pairs, words, instance),
            blocks=max(seen.in_blocks, known.observation.blocks if known else 0),
            values=known.observation.values if known else _values(seen, swapped),
        )
        if known is not None and (known.kind is RaceKind.WAW or kind is not RaceKind.WAW):
            found[key] = evolve(known, observation=observation)
        else:
            found[key] = _Race(early, late, kind, seen, swapped, observation)
    yield from found.values()


def _values(seen: SeenRace, swapped: bool) -> tuple[str, str] | None:
    """What the threads of the example did, the later place first as in messages; None: not all is known."""
    did = {Mode.READ: "read", Mode.WRITE: "wrote", Mode.ATOMIC_READ: "read", Mode.ATOMIC: "stored"}
    early, late = (
        value and f"{did[mode]} {value}" for mode, value in zip(seen.modes, seen.values, strict=True)
    )
    if early is None or late is None:
        return None
    return (early, late) if swapped else (late, early)


def _kind(early: Mode, late: Mode) -> RaceKind:
    if not early.writes:
        return RaceKind.WAR
    return RaceKind.WAW if late.writes else RaceKind.RAW


def confirm(
    findings: list[Finding],
    race: _Race,
    kernel: str,
    shapes: Mapping[str, Shape],
    trial: TrialResult,
    *,
    doubted: bool = False,
) -> None:
    """Change, in place, the finding that a race confirms, or add the one that it is.

    ``doubted``: the static side could not decide the kernel, for arguments and data that may be ours.
    """
    assert race.early.site is not None
    assert race.late.site is not None
    for k, finding in enumerate(findings):
        if finding.code in RACES and same_pair(finding, race.early.site.range, race.late.site.range):
            if finding.status is Status.POSSIBLE:
                findings[k] = _certain_now(finding, _new_race(race, kernel, shapes, trial), trial)
            elif finding.status is not Status.CONFIRMED:
                findings[k] = _confirmed(finding, race.observation)
            return
    new = _new_race(race, kernel, shapes, trial)
    if doubted and not trial.trial.own_memory:
        severity = severity_of(new.code, Status.POSSIBLE)
        new = evolve(new, message=f"{new.message}, with made-up inputs", severity=severity)
    relies = new.code is Code.WARP_RACE and any(f.code is Code.WARP_SYNCHRONOUS for f in findings)
    findings.append(missed(evolve(new, code=Code.WARP_SYNCHRONOUS) if relies else new))


def same_pair(finding: Finding, early: SourceRange, late: SourceRange) -> bool:
    """Whether a finding is about these two places, in either order."""
    ends = [finding.site.range, *(r.site.range for r in finding.related[:1])]
    if len(ends) == 1:
        ends *= 2
    return (overlap(ends[0], late) and overlap(ends[1], early)) or (
        overlap(ends[0], early) and overlap(ends[1], late)
    )


def _confirmed(finding: Finding, observation: Observation) -> Finding:
    return evolve(
        finding,
        status=Status.CONFIRMED,
        severity=None,
        message=f"{finding.message}; {observation.told}",
        observation=observation,
        reason=None,
    )


def _certain_now(finding: Finding, seen: Finding, trial: TrialResult) -> Finding:
    """A suspicion that was seen to be true: it says what was seen, not what might be.

    With arguments and data of ours it may be what the program never does: it says what it depends on, and is
    as grave as the suspicion was.
    """
    ours = finding.reason is not None and not trial.trial.own_memory
    doubt = f", with made-up inputs (depends on {finding.reason})" if ours else ""
    return evolve(
        finding,
        code=finding.code if finding.code is Code.WARP_SYNCHRONOUS else seen.code,
        status=Status.CONFIRMED,
        severity=finding.effective_severity if ours else None,
        message=f"{seen.message}{doubt}",
        kind=seen.kind,
        witness=seen.witness,
        same_value=seen.same_value,
        launch=seen.launch,
        observation=seen.observation,
        condition=None,
        reason=None,
    )


def _new_race(race: _Race, kernel: str, shapes: Mapping[str, Shape], trial: TrialResult) -> Finding:
    assert race.early.site is not None
    assert race.late.site is not None
    seen, launch = race.seen, trial.trial.launch
    order = (1, 0) if race.swapped else (0, 1)
    threads = [triple(seen.threads[k], launch.block) for k in order]
    grid = launch.grid or (1, 1, 1)
    blocks = [triple(seen.blocks[k], grid) for k in order]
    apart = seen.blocks[0] != seen.blocks[1]
    array, index = element_of(seen.place, shapes, race.late.bytes)
    element = f"{array}[{']['.join(map(str, index))}]"
    shown = called(element, array, (race.early.site.text, race.late.site.text))
    names = [thread_words(t, b if apart else None) for t, b in zip(threads, blocks, strict=True)]
    modes = seen.modes[::-1] if race.swapped else seen.modes
    actions = [f"{_VERBS[m]} {s.text}" for m, s in zip(modes, (race.early.site, race.late.site), strict=True)]
    lanes = _between_lanes(seen, trial)
    remedy = "no __syncwarp() orders the lanes of this warp; " if lanes else ""
    message = (
        f"{race.kind.value} race on {shown}: {names[1]} {actions[1]} while {names[0]} {actions[0]};"
        f" {remedy}{race.observation.told}"
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
        array=array,
    )


def _between_lanes(seen: SeenRace, trial: TrialResult) -> bool:
    """Whether a ``__syncwarp`` is what is missing: the static side's rule for ``warp-race``.

    Lanes of one warp of several raced, at different instructions, where no two warps raced with each other.
    """
    if trial.trial.launch.threads <= WARP or seen.blocks[0] != seen.blocks[1]:
        return False
    if seen.warp_only is not None:
        return seen.warp_only

    def within(race: SeenRace) -> bool:
        return race.threads[0] // WARP == race.threads[1] // WARP

    here = [race for race in trial.races.races if race.blocks[0] == race.blocks[1]]
    return seen.sites[0] != seen.sites[1] and all(map(within, here))


@frozen
class Ran:
    """A run that came to its end, and the ``places`` that its threads came to."""

    places: frozenset[SourceRange]
    trial: Trial

    def meant_for(self, finding: Finding) -> bool:
        """Whether it was to show this race, if anything can."""
        return self.trial.shows is None or places_of(finding) in self.trial.shows


def judged(finding: Finding, runs: list[Ran], device: str) -> Finding:
    """A suspicion whose own run was made, and whose two places ran, in one, without being seen to race."""
    if finding.code not in RACES or finding.status not in (Status.POSSIBLE, Status.CONDITIONAL):
        return finding
    ends = [finding.site.range, *(r.site.range for r in finding.related[:1])]
    met = (ran for ran in runs if all(any(overlap(end, place) for place in ran.places) for end in ends))
    meant = next((ran for ran in runs if ran.meant_for(finding)), None)
    if meant is None or next(met, None) is None:
        return finding
    return evolve(
        finding,
        status=Status.NOT_OBSERVED,
        severity=None,
        message=f"{finding.message}; not seen on {device}{_made_up(meant.trial)}, which proves nothing",
    )


def _made_up(trial: Trial) -> str:
    """The arguments that a run had from nobody, in words."""
    own = [f"`{n}` == {v}" for n, v in sorted(trial.scalars.items()) if n not in trial.launch.arguments]
    told = own if len(own) <= _ARGUMENTS_TOLD else [*own[: _ARGUMENTS_TOLD - 1], "…"]
    return f" with {', '.join(told)}" if told else ""
