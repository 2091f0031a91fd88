"""What an analysis says of one place: data until it is shown, and one maker for races of every engine.

The tiers merge, demote and condition diagnoses by what they hold; ``Diagnosis.finding`` makes them words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from attrs import evolve, field, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import Array
from cuda_lsp.model import (
    WARP_SIZE,
    BankReport,
    Code,
    Finding,
    LaunchConfig,
    Mode,
    RaceKind,
    Related,
    Severity,
    Site,
    SourceRange,
    Space,
    Status,
    Witness,
    severity_of,
)
from cuda_lsp.source_names import called
from cuda_lsp.static.findings import steps, words
from cuda_lsp.static.findings.conditions import (
    Condition,
    Conditions,
    Doubt,
    Needs,
    Setting,
    Undecided,
    along_an_axis,
    parameters_of,
    without_cells,
)
from cuda_lsp.static.findings.steps import Remedy

_CERTAIN = (Status.PROVED, Status.CONDITIONAL)
_OF_THE_SOURCE = (Code.ANALYSIS_INCOMPLETE, Code.LAUNCH_LIMIT, Code.REDUNDANT_BARRIER)
Key = tuple[Code | None, SourceRange, SourceRange]
"""A code and its place twice, or None and the two places of a race."""


@frozen
class Diagnosis:
    """A ``Finding`` in the making: ``story`` is what happens, without what it needs and depends on.

    ``same_value``: both write one. ``lanes_only``: of a race, that lanes of
    one warp alone meet, at different instructions. ``apart``: how many elements lie from lane to lane.
    ``guessed``: what is read is a guess that a compare-and-swap checks. ``parted`` as of findings.
    ``remedy``: what would order two accesses. ``advised``: what to do, where only who found it knows.
    ``under``: of its numbers; the launch is its own.
    """

    code: Code
    status: Status
    story: str
    kernel: str
    site: Site
    related: tuple[Related, ...] = ()
    kind: RaceKind | None = None
    witness: Witness | None = None
    bank: BankReport | None = None
    conditions: Conditions = ()
    doubt: Doubt | None = None
    same_value: bool = False
    launch: LaunchConfig | None = None
    array: str | None = None
    lanes_only: bool = False
    apart: int | None = None
    guessed: bool = False
    parted: tuple[SourceRange, ...] = ()
    remedy: Remedy | None = None
    advised: str = ""
    under: Setting = field(factory=Setting)

    @property
    def certain(self) -> bool:
        return self.status in _CERTAIN

    @property
    def key(self) -> Key:
        """Equal for the same thing found twice: races by their pair of places, others by place."""
        places = sorted([self.site.range, *(r.site.range for r in self.related[:1])])
        return (None if self.kind else self.code, places[0], places[-1])

    @property
    def effective_severity(self) -> Severity:
        return severity_of(self.code, self.status, harmless=self.same_value or self.guessed)

    @property
    def message(self) -> str:
        """Where there is no room for all that arrays hold, their names: some of it is no condition."""
        told = self._message(self._needed)
        briefly = tuple(without_cells(condition) for condition in self._needed)
        if briefly == self._needed or not words.leaves_out(told):
            return told
        shorter = self._message(briefly)
        return told if words.leaves_out(shorter) else shorter

    def _message(self, needed: Conditions) -> str:
        race, met = self.kind is not None, self.witness is not None
        ending = words.ending(
            needed, self.doubt, race=race, met=met, same=self.same_value,
            under=evolve(self.under, launch=self.launch), numbers=self._has_numbers,
            shown=None if self.witness is None else self.witness.values,
        )  # fmt: skip
        texts = (self.site.text, *(r.site.text for r in self.related[:1]))
        return words.fitted(self.story + ending, texts)

    @property
    def _has_numbers(self) -> bool:
        """Its story tells threads, or costs, that hold under its launch."""
        disagree = self.code is Code.BARRIER_DIVERGENCE and not self.certain
        return self.code not in _OF_THE_SOURCE and not disagree

    @property
    def condition(self) -> str | None:
        """What it needs, in words."""
        return words.conditions(self._needed, self.launch and self.launch.block) or None

    @property
    def _needed(self) -> Conditions:
        """The conditions, as far as its two threads tell them closer."""
        blocks = self.witness.blocks if self.witness is not None else None
        if blocks is None or self.launch is None:
            return self.conditions
        return along_an_axis(self.conditions, blocks, self.launch.grid_axes)

    @property
    def reason(self) -> str | None:
        """What it depends on, in words."""
        return None if self.doubt is None else words.doubt(self.doubt)

    @property
    def step(self) -> str:
        """What to do next."""
        return self.advised or steps.of_finding(
            self.code, self.remedy, self.conditions, self.doubt, same=self.same_value
        )

    @property
    def open_reason(self) -> str | None:
        """Why a kernel that it is left open in is undecided: where, on what it hangs, what to do."""
        if self.doubt is None:
            return None
        places = dict.fromkeys((*(r.site.range for r in self.related[:1]), self.site.range))
        lines = tuple(place.start.line for place in places)
        pair = Undecided(self.array, lines, self.doubt) if self.array is not None else None
        return words.reason(self.doubt) if pair is None else words.undecided(pair)

    @property
    def for_every_argument(self) -> bool:
        """Nothing but a launch, or template arguments, like those assumed is needed."""
        return self.status is Status.PROVED or (
            self.certain and set(self.conditions) <= {Needs.LAUNCH, Needs.TEMPLATE}
        )

    def needing(self, *conditions: Condition) -> Diagnosis:
        """The same, conditional."""
        return evolve(self, status=Status.CONDITIONAL, conditions=conditions, doubt=None)

    def doubted(self, doubt: Doubt) -> Diagnosis:
        """The same, only possible; what it needs stays told."""
        return evolve(self, status=Status.POSSIBLE, doubt=doubt)

    def finding(self, severity: Severity | None = None) -> Finding:
        """In words, with the severity that settings give its code."""
        return Finding(
            self.code, self.status, self.message, self.kernel, self.site, self.related, self.kind,
            self.witness, self.bank, self.condition, self.reason, self.same_value, self.launch,
            severity=severity, array=self.array, guessed=self.guessed,
            parted=self.parted, step=self.step,
        )  # fmt: skip


def open_reasons(findings: Iterable[Diagnosis]) -> list[str]:
    """What leaves findings open, each doubt once: where else it has a part they say themselves."""
    told: dict[Doubt | None, str] = {}
    for finding in findings:
        if (why := finding.open_reason) is not None:
            told.setdefault(finding.doubt, why)
    return list(told.values())


class Deed(Protocol):
    """An access, whichever engine tells of it."""

    @property
    def site(self) -> Site: ...
    @property
    def mode(self) -> Mode: ...


def race_between(
    kernel: str, launch: LaunchConfig | None, array: Array, early: Deed, late: Deed, seen: Witness | None,
    status: Status, conditions: Conditions = (), doubt: Doubt | None = None, *, remedy: Remedy | None = None,
    warp: bool = False, same_value: bool = False, swapped: bool = False,
) -> Diagnosis:  # fmt: skip
    """The race of two accesses in the order of the text: the squiggle is on the later one.

    ``swapped``: the later one is executed first, as in a loop's next round.

    ``seen``: two threads that meet, the earlier access's first, with its loops' counters; None: it only says
    what both do. ``remedy``: what would order them. ``warp``: only lanes of one warp meet, at different
    instructions.
    """
    if seen is not None and status is Status.POSSIBLE and min(seen.index, default=0) < 0:
        seen = None  # contents that lead in front of the array are none that anybody has
    guessed = conflicts.guessed(early, late)
    remedy = Remedy.GUESSED if guessed else remedy
    kind = conflicts.kind(late.mode, early.mode) if swapped else conflicts.kind(early.mode, late.mode)
    actions = (words.doing(late.mode, late.site, array), words.doing(early.mode, early.site, array))
    story = words.suspicion(kind, array.name, actions)
    if seen is not None:
        blocks = seen.blocks or (None, None)
        who = (words.thread(seen.threads[1], blocks[1]), words.thread(seen.threads[0], blocks[0]))
        where = called(str(seen), array.name, (early.site.text, late.site.text))
        story = words.race(kind, where, who, actions, seen.values, remedy.told if remedy else "")
        named = {n: v for n, v in seen.arguments.items() if n in parameters_of(conditions)}
        seen = evolve(seen, values={**seen.values, **named})
    code = Code.SHARED_RACE if array.space is Space.SHARED else Code.GLOBAL_RACE
    if warp and launch is not None and launch.threads > WARP_SIZE:
        code = Code.WARP_RACE
    other = Related(early.site, f"the other access: {actions[1]}")
    return Diagnosis(
        code, status, story, kernel, late.site, (other,), kind, seen, None, conditions, doubt, same_value,
        launch, array.name, warp, None, guessed, remedy=remedy,
    )  # fmt: skip
