"""What is known of a kernel under one launch, and how it becomes a verdict."""

from __future__ import annotations

from attrs import define, field

from cuda_lsp.model import SourceRange, Verdict
from cuda_lsp.static import budgets
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Doubt, Open, Undecided
from cuda_lsp.static.findings.diagnosis import Diagnosis, open_reasons
from cuda_lsp.static.solver.tactics.pair import Answer, GaveUp, OpenPair, Proved
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.intervals import Sites


@define
class Attempt:
    """One pass over a kernel under one setting."""

    findings: dict[Sites, Diagnosis] = field(factory=dict[Sites, Diagnosis])
    doubts: dict[Sites, Undecided] = field(factory=dict[Sites, Undecided])
    others: list[Diagnosis] = field(factory=list[Diagnosis])
    reasons: dict[str, None] = field(factory=dict[str, None])
    assumptions: dict[str, None] = field(factory=dict[str, None])
    not_settled: set[SourceRange] = field(factory=set[SourceRange])  # barriers that threads may miss
    mixed: bool = False  # threads may wait at different barriers
    barriers: bool = False  # all of them were looked at

    def take(self, pair: OpenPair, answer: Answer) -> None:
        """Notes what a tactic said of the pair; of two findings at its places the surer stays."""
        if isinstance(answer, Proved):
            self.assumptions.update(dict.fromkeys(answer.assumptions))
        elif isinstance(answer, GaveUp):
            self.doubts[pair.sites] = _undecided(pair.p, answer.why)
        else:
            self.assumptions.update(dict.fromkeys(answer.assumptions))
            known = self.findings.get(pair.sites)
            if known is None or answer.finding.effective_severity <= known.effective_severity:
                self.findings[pair.sites] = answer.finding

    @property
    def certain(self) -> frozenset[Sites]:
        """Places of races that are shown for sure."""
        return frozenset(sites for sites, finding in self.findings.items() if finding.certain)

    @property
    def open(self) -> list[Sites]:
        """Places of which it is not shown for sure whether they race."""
        return [*self.doubts, *(sites for sites in self.findings if sites not in self.certain)]

    @property
    def decided(self) -> bool:
        """Nothing is open, and nothing was found."""
        return not self.doubts and not self.reasons and not self.findings and not self.mixed

    def absorb(self, other: Attempt) -> None:
        """Adds what another launch showed; of two findings at one pair of sites the surer stays."""
        for sites, finding in other.findings.items():
            known = self.findings.get(sites)
            if known is None or finding.effective_severity < known.effective_severity:
                self.findings[sites] = finding
        causes = {s: d for s, d in self.doubts.items() if d.why is not Open.TIME}  # say more than that
        doubts = self.doubts | other.doubts | causes
        self.doubts = {s: d for s, d in doubts.items() if s not in self.findings}
        told = {(f.code, f.site) for f in self.others}
        self.others += [f for f in other.others if (f.code, f.site) not in told]
        self.reasons.update(other.reasons)
        self.assumptions.update(other.assumptions)
        self.not_settled |= other.not_settled
        self.mixed = self.mixed or other.mixed
        self.barriers = self.barriers and other.barriers

    def better_of(self, unrolled: Attempt) -> Attempt:
        """This attempt in closed form, or that round by round where it leaves less open.

        What is certain in closed form stays certain.
        """
        gave_up = set(unrolled.reasons) - set(self.reasons)
        better = len(unrolled.doubts) < len(self.doubts) or (
            not unrolled.doubts and len(unrolled.findings) <= len(self.findings)
        )
        if gave_up or not better:
            return self
        for sites in (s for s in self.findings if s in self.certain):
            if sites not in unrolled.certain:
                unrolled.findings[sites] = self.findings[sites]
            unrolled.doubts.pop(sites, None)
        shown = {f.key: f for f in self.others if f.certain}
        unrolled.others = [f if f.certain else shown.pop(f.key, f) for f in unrolled.others]
        told = {f.key for f in unrolled.others}
        unrolled.others += [f for key, f in shown.items() if key not in told]
        return unrolled

    def _doubts_told(self) -> list[str]:
        by_cause = sorted(self.doubts.values(), key=lambda doubt: doubt.why is Open.TIME)
        told = list(dict.fromkeys(map(words.undecided, by_cause)))
        shown, more = told[: budgets.MOST_DOUBTS], len(told) - budgets.MOST_DOUBTS
        return shown if more <= 0 else [*shown, f"{more} more pairs of accesses were not decided"]

    def verdict(self) -> tuple[Verdict, tuple[str, ...]]:
        """The verdict and what is not decided."""
        reasons = [*self.reasons, *self._doubts_told()]
        reasons += open_reasons(self.findings.values())
        if any(f.certain for f in self.findings.values()):
            return Verdict.RACY, tuple(dict.fromkeys(reasons))
        if self.decided:
            return Verdict.RACE_FREE, ()
        if self.mixed:
            reasons.append("a barrier that not all threads reach")
        return Verdict.UNDECIDED, tuple(dict.fromkeys(reasons))


def _undecided(p: Problem, why: Doubt) -> Undecided:
    first, second = p.pair.first, p.pair.second
    places = dict.fromkeys((first.site.range, second.site.range))
    return Undecided(first.array.name, tuple(place.start.line for place in places), why)
