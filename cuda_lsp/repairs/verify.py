"""Whether an edit of a text mends a finding, by the reports of both texts.

Findings are compared by what they say of which places, and places by where they were before the edit. A
race is its two accesses: it has gone when nothing says of these two, in the whole kernel, that they race.
Nobody is made to wait in a kernel in which threads are known to miss a barrier or to wait for ever already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from cuda_lsp.model import (
    Code,
    FileReport,
    Finding,
    KernelReport,
    Severity,
    Site,
    SourceRange,
    Status,
    Verdict,
)
from cuda_lsp.repairs.candidate import Edit, Places
from cuda_lsp.repairs.source import Source

_CERTAIN = (Status.PROVED, Status.CONDITIONAL, Status.CONFIRMED)


@frozen(eq=False)
class Comparison:
    """The reports of a text before and after edits. ``after`` may be of the first tier only.

    ``waits``: the edits make threads wait for others.
    """

    before: FileReport
    after: FileReport
    old: Source
    new: Source
    edits: Sequence[Edit]
    waits: bool = False

    @cached_property
    def _places(self) -> Places:
        return Places(self.edits)

    def promises(self, aim: Finding) -> bool:
        """Whether nothing that is certain yet speaks against the edit."""
        certain = [f for f in self.after.findings if f.status in _CERTAIN]
        return (
            self.is_readable()
            and self._is_gone(aim, certain)
            and not self._added(certain)
            and not self._waits_in_vain(aim)
        )

    def mends(self, aim: Finding) -> bool:
        """Whether the finding has gone, nothing is new, and no verdict is weaker; of finished reports."""
        return (
            self.is_readable()
            and self._is_gone(aim, self.after.findings)
            and not self._added(self.after.findings)
            and not self._waits_in_vain(aim)
            and self._keeps_verdicts()
        )

    def keeps(self) -> bool:
        """Whether nothing is new and no verdict is weaker; of finished reports."""
        return self.is_readable() and not self._added(self.after.findings) and self._keeps_verdicts()

    def gone(self) -> tuple[Finding, ...]:
        """The findings that the edited text does not have."""
        return tuple(f for f in self.before.findings if self._is_gone(f, self.after.findings))

    def is_readable(self) -> bool:
        """Nothing more is wrong with the text, wherever: an inserted line moves it."""
        known = {error.message for error in self.before.errors}
        return all(error.message in known for error in self.after.errors)

    def _is_gone(self, aim: Finding, left: Iterable[Finding]) -> bool:
        identity = self._identity(aim, old=True)
        return all(self._identity(finding, old=False) != identity for finding in left)

    def _waits_in_vain(self, aim: Finding) -> bool:
        """Whether who is to wait may wait for threads that are stuck elsewhere in the kernel."""
        there = (f for f in self.after.findings if f.kernel == aim.kernel and f.status in _CERTAIN)
        return self.waits and any(f.code is Code.BARRIER_DIVERGENCE for f in there)

    def _added(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those that are new, or worse than they were."""
        known = _worst((self._identity(f, old=True), f.effective_severity) for f in self.before.findings)
        return [
            finding
            for finding in findings
            if finding.effective_severity < known.get(self._identity(finding, old=False), Severity.HINT + 1)
        ]

    def _keeps_verdicts(self) -> bool:
        after = {kernel.name: kernel for kernel in self.after.kernels}
        return all(
            (found := after.get(kernel.name)) is not None and _is_no_weaker(kernel, found)
            for kernel in self.before.kernels
        )

    def _identity(self, finding: Finding, *, old: bool) -> object:
        what = "race" if finding.kind is not None else finding.code
        sites = [finding.site]
        if finding.kind is not None:  # elsewhere they are remarks
            sites += [related.site for related in finding.related[:1]]
        return what, finding.kernel, frozenset(self._place(site, old=old) for site in sites)

    def _place(self, site: Site, *, old: bool) -> object:
        extent: SourceRange = site.range
        source = self.old if old else self.new
        if not source.has(extent):
            return extent
        at = source.offset(extent.start)
        return self._places.before(at) if old else self._places.after(at)


def _worst(findings: Iterable[tuple[object, Severity]]) -> Mapping[object, Severity]:
    known: dict[object, Severity] = {}
    for identity, severity in findings:
        known[identity] = min(severity, known.get(identity, severity))
    return known


def _is_no_weaker(before: KernelReport, after: KernelReport) -> bool:
    """A kernel stays race-free, or becomes it; what is open was open before, for the same reasons."""
    if after.verdict is Verdict.RACE_FREE:
        return True
    if after.verdict is Verdict.RACY:
        return before.verdict is Verdict.RACY
    return before.verdict is not Verdict.RACE_FREE and _reasons(after) <= _reasons(before)


def _reasons(kernel: KernelReport) -> set[str]:
    """Without the numbers of lines, which move."""
    return {re.sub(r"\d+", "#", reason) for reason in kernel.reasons}
