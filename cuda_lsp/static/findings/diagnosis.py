"""What an analysis says of one place: data until it is shown, and one maker for races of every engine.

The tiers merge, demote and condition diagnoses by what they hold; ``Diagnosis.finding`` makes them words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import evolve, field, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import Array
from cuda_lsp.model import (
    BankReport,
    Code,
    Dim3,
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
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Condition, Conditions, Doubt, parameters_of

RACES = frozenset({Code.SHARED_RACE, Code.GLOBAL_RACE, Code.WARP_RACE})
_CERTAIN = (Status.PROVED, Status.CONDITIONAL)
Key = tuple[Code | None, SourceRange, SourceRange]
"""A code and its place twice, or None and the two places of a race."""


@frozen
class Diagnosis:
    """A ``Finding`` in the making: ``story`` is what happens, without what it needs and depends on.

    ``told_same``: the message says that both write the same value.
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
    told_same: bool = False
    launch: LaunchConfig | None = None

    @property
    def certain(self) -> bool:
        return self.status in _CERTAIN

    @property
    def key(self) -> Key:
        """Equal for the same thing found twice: races by their pair of places, others by place."""
        first, second = self.site.range, self.site.range
        if self.code in RACES:
            first, second = sorted([first, *(r.site.range for r in self.related[:1])])
        return (None if self.code in RACES else self.code, first, second)

    @property
    def effective_severity(self) -> Severity:
        return severity_of(self.code, self.status, same_value=self.same_value)

    @property
    def message(self) -> str:
        race, met = self.code in RACES, self.witness is not None
        same = self.told_same
        return self.story + words.ending(self.conditions, self.doubt, race=race, met=met, same=same)

    @property
    def condition(self) -> str | None:
        """What it needs, in words."""
        return words.conditions(self.conditions) or None

    @property
    def reason(self) -> str | None:
        """What it depends on, in words."""
        return None if self.doubt is None else words.doubt(self.doubt)

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
            severity=severity,
        )  # fmt: skip


class Deed(Protocol):
    """An access, whichever engine tells of it."""

    @property
    def site(self) -> Site: ...
    @property
    def mode(self) -> Mode: ...


@frozen
class Meeting:
    """Two threads at one byte of an array, the one whose access stands first in the text first.

    ``blocks``: None when any block will do. ``counters``: of the first one's loops. ``arguments`` and
    ``cells`` (array, byte offset, value): what was assumed. ``warp``: only lanes of one warp meet so.
    """

    array: Array
    byte: int
    threads: tuple[Dim3, Dim3]
    blocks: tuple[Dim3, Dim3] | None
    remedy: str
    warp: bool = False
    counters: Mapping[str, int] = field(factory=dict[str, int])
    arguments: Mapping[str, int] = field(factory=dict[str, int])
    cells: tuple[tuple[str, int, int], ...] = ()

    def witness(self, conditions: Conditions) -> Witness:
        """With the values of the parameters that the conditions speak of."""
        named = parameters_of(conditions)
        values = self.counters or {n: v for n, v in self.arguments.items() if n in named}
        index = words.element(self.array, self.byte)
        return Witness(self.threads, self.blocks, self.array.name, index, values, self.arguments, self.cells)


def race_between(
    kernel: str, launch: LaunchConfig | None, array: Array, early: Deed, late: Deed, met: Meeting | None,
    status: Status, conditions: Conditions = (), doubt: Doubt | None = None, *,
    same_value: bool = False, told_same: bool = False,
) -> Diagnosis:  # fmt: skip
    """The race of two accesses in the order of the text: the squiggle is on the later one.

    Without a meeting (``met``) it has no witness, and only says what both do.
    """
    kind = conflicts.kind(early.mode, late.mode)
    actions = (words.doing(late.mode, late.site), words.doing(early.mode, early.site))
    code = Code.SHARED_RACE if array.space is Space.SHARED else Code.GLOBAL_RACE
    witness = None
    if met is None:
        story = words.suspicion(kind, array.name, actions)
    else:
        witness = met.witness(conditions)
        late_block, early_block = met.blocks[::-1] if met.blocks else (None, None)
        who = (words.thread(met.threads[1], late_block), words.thread(met.threads[0], early_block))
        story = words.race(kind, str(witness), who, actions, met.counters, met.remedy)
        code = Code.WARP_RACE if met.warp else code
    other = Related(early.site, f"the other access: {actions[1]}")
    return Diagnosis(
        code, status, story, kernel, late.site, (other,), kind, witness, None, conditions, doubt,
        same_value, told_same, launch,
    )  # fmt: skip
