"""From findings to repairs that are borne out: candidates tried, best first, until one verifies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from attrs import define, evolve, frozen

from cuda_lsp.barrier_intervals import Meeting, meeting_of
from cuda_lsp.model import Code, FileReport, Finding, KernelReport, Severity, Site, SourceRange
from cuda_lsp.repair import Repair, SourceEdit
from cuda_lsp.repairs.candidate import Candidate, Places, edited
from cuda_lsp.repairs.cost import cost
from cuda_lsp.repairs.double_buffer import double_buffers
from cuda_lsp.repairs.kinds import candidates
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.verify import Comparison
from cuda_lsp.report.identity import identified

_MOST_CANDIDATES = 20
"""Of one finding, of those that keep the meaning and of the others: the right place is among the first few,
and each costs an execution."""
_MOST_PROOFS = 8
"""Likewise, of candidates that do not verify then: each may cost seconds of the solver's."""
_MOST_PROOFS_OF_FILE, _OF_KERNEL = 80, 10
"""The same of a file whose repairs are composed, or so many for each of its kernels."""


def every_one(_: object) -> bool:
    """What it is asked of, whatever that is."""
    return True


class Trials(Protocol):
    """Analyses texts as if each were the file's. None: nobody waits for it any more, or not so long."""

    def first(self, text: str) -> FileReport | None:
        """What the first tier says, soon."""
        ...

    def finished(self, text: str) -> FileReport | None:
        """What both tiers say, when the solver has finished."""
        ...


@frozen
class Mended:
    """A repair, and the text and report that it leads to; of an unverified one what is known so far."""

    repair: Repair
    candidate: Candidate
    text: str
    report: FileReport


def mended(
    source: Source,
    report: FileReport,
    finding: Finding,
    trials: Trials,
    wanted: Callable[[Candidate], bool] = every_one,
) -> Mended | None:
    """The best repair of a finding that verifies; else one that the first tier finds no fault with, or None.

    ``report``: the finished one of the text.
    """
    unverified: Mended | None = None
    tried, proofs = Counter[bool](), Counter[bool]()
    for candidate in filter(wanted, candidates(source, report, finding)):
        keeps = candidate.keeps_meaning
        tried[keeps] += 1
        if tried[keeps] > _MOST_CANDIDATES or proofs[keeps] == _MOST_PROOFS:
            continue
        text = edited(source.text, candidate.edits)
        first = trials.first(text)
        if first is None or not _comparison(source, report, candidate, text, first).promises(finding):
            continue
        last = trials.finished(text)
        proofs[keeps] += 1
        if last is None:
            unverified = unverified or _mended(source, candidate, text, first, (finding,))
            continue
        compared = _comparison(source, report, candidate, text, last)
        if compared.mends(finding):
            found = _mended(source, candidate, text, last, compared.gone())
            return evolve(found, repair=evolve(found.repair, verified=True))
    return unverified


def suggested(source: Source, report: FileReport, offset: int, trials: Trials) -> Mended | None:
    """A faster form of what is right, at a place: the finished analysis finds nothing wrong with it."""
    for candidate in double_buffers(source, report, offset):
        text = edited(source.text, candidate.edits)
        first = trials.first(text)
        if first is None or not _comparison(source, report, candidate, text, first).is_readable():
            continue
        last = trials.finished(text)
        if last is not None and _comparison(source, report, candidate, text, last).keeps():
            found = _mended(source, candidate, text, last, ())
            return evolve(found, repair=evolve(found.repair, verified=True))
    return None


def _comparison(
    source: Source, report: FileReport, candidate: Candidate, text: str, after: FileReport
) -> Comparison:
    new = Source(source.path, text)
    return Comparison(report, after, source, new, candidate.edits, waits=candidate.kind.waits)


def _mended(
    source: Source, candidate: Candidate, text: str, report: FileReport, gone: tuple[Finding, ...]
) -> Mended:
    edits = tuple(
        SourceEdit(SourceRange(source.path, source.position(e.start), source.position(e.end)), e.text)
        for e in candidate.edits
    )
    keeps = candidate.keeps_meaning
    return Mended(
        Repair(
            candidate.kind,
            candidate.title,
            edits,
            gone,
            keeps_meaning=keeps,
            cost=cost(source, candidate.edits),
        ),
        candidate,
        text,
        report,
    )


@define
class _Counted:
    """Trials, and how many texts were analysed to the end."""

    _trials: Trials
    proofs: int = 0

    def first(self, text: str) -> FileReport | None:
        return self._trials.first(text)

    def finished(self, text: str) -> FileReport | None:
        self.proofs += 1
        return self._trials.finished(text)


@frozen
class Composition:
    """Repairs of one file, one after the other, each verified on the text that those before it left.

    ``text`` and ``report``: what they have made of it, and the finished analysis of the whole of that.
    """

    text: str
    report: FileReport
    repairs: tuple[Repair, ...] = ()


def composed(
    path: Path,
    text: str,
    report: FileReport,
    trials: Trials,
    wanted: Callable[[Candidate], bool] = every_one,
    of: Callable[[Finding], bool] = every_one,
) -> Composition:
    """All findings (``of`` which it is asked) mended that can be, the worst first. ``report``: finished.

    Of those that are as bad, missed barriers: before they are mended nobody is made to wait.
    """
    found = Composition(text, report)
    given_up: set[str] = set()
    counted, most = _Counted(trials), max(_MOST_PROOFS_OF_FILE, _OF_KERNEL * len(report.kernels))
    while True:
        left = [(f, name) for f, name in identified(found.report.findings) if of(f) and name not in given_up]
        if not left or counted.proofs - len(found.repairs) > most:
            return found
        finding, name = min(left, key=lambda known: _urgency(known[0]))
        step = mended(Source(path, found.text), found.report, finding, counted, wanted)
        if step is None or not step.repair.verified:
            given_up.add(name)
        else:
            found = Composition(step.text, step.report, (*found.repairs, step.repair))


def _urgency(finding: Finding) -> tuple[Severity, bool]:
    return finding.effective_severity, finding.code is not Code.BARRIER_DIVERGENCE


def conflict_free(
    source: Source, report: FileReport, kernel: KernelReport, line: int, trials: Trials
) -> str | None:
    """The text after a verified repair of the bank conflict on a line (from 1) that leaves lines in place."""
    for finding in kernel.findings:
        if finding.code is Code.BANK_CONFLICT and finding.site.range.start.line == line:
            found = mended(source, report, finding, trials)
            lines = source.text.count("\n")
            if found is not None and found.repair.verified and found.text.count("\n") == lines:
                return found.text
    return None


def ordered(
    source: Source, report: FileReport, finding: Finding, trials: Trials
) -> tuple[str, Meeting] | None:
    """The text after a verified repair of a race, and where its two accesses are in it."""
    meeting, found = meeting_of(finding), mended(source, report, finding, trials)
    if meeting is None or found is None or not found.repair.verified:
        return None
    new, places = Source(source.path, found.text), Places(found.candidate.edits)

    def moved(site: Site) -> Site:
        if site.range.path != source.path:
            return site
        ends = (new.position(places.now(source.offset(p))) for p in (site.range.start, site.range.end))
        return evolve(site, range=SourceRange(source.path, *ends))

    first, second = meeting.places
    return found.text, evolve(meeting, places=(moved(first), moved(second)))
