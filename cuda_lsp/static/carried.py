"""Findings outlive an edit until the new text's analysis has decided anew: nothing flickers while one types.

A keystroke is answered by executing the kernel for a few milliseconds; what only the solver, or a longer
execution, had found of the text before is not looked for in that time. Such findings stay where their code
went, marked as of the earlier text, until the kernel's analysis has finished. What executing had found and
does not find now is gone at once, and so is a finding whose own code was edited.
"""

from __future__ import annotations

from attrs import evolve, frozen

from cuda_lsp.frontend.source_text import differing
from cuda_lsp.model import Finding, KernelReport, Position, SourceRange, Status

_SUREST_FIRST = (Status.CONFIRMED, Status.PROVED, Status.CONDITIONAL, Status.NOT_OBSERVED, Status.POSSIBLE)


@frozen
class Edit:
    """The one stretch in which two texts differ: where it begins, and where it ends in either of them."""

    begin: Position
    before: Position
    after: Position

    @classmethod
    def between(cls, old: str, new: str) -> Edit:
        """The shortest one."""
        begin, before, after = differing(old, new)
        return cls(_position(old, begin), _position(old, before), _position(new, after))

    def moved(self, stretch: SourceRange) -> SourceRange | None:
        """Where a stretch of the old text is now; None: it was edited."""
        if stretch.end <= self.begin:
            return stretch
        if stretch.start < self.before:
            return None
        return SourceRange(stretch.path, self._behind(stretch.start), self._behind(stretch.end))

    def _behind(self, place: Position) -> Position:
        columns = self.after.column - self.before.column if place.line == self.before.line else 0
        return Position(place.line + self.after.line - self.before.line, place.column + columns)

    def finding(self, finding: Finding) -> Finding | None:
        """A finding of the old text in the new one; None: code that it speaks of was edited."""
        site = self.moved(finding.site.range)
        related = [(r, self.moved(r.site.range)) for r in finding.related]
        if site is None or any(place is None for _, place in related):
            return None
        moved = tuple(evolve(r, site=evolve(r.site, range=place)) for r, place in related if place)
        return evolve(finding, site=evolve(finding.site, range=site), related=moved)


def _position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


@frozen
class _Executed:
    """What executing told of a kernel, ``lines`` further up."""

    report: KernelReport
    lines: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.moved(self.lines).findings


@frozen
class _Told:
    """What was last told of a kernel of ``text``: found ``quick``, by executing it, or ``slow``."""

    text: str
    quick: _Executed | tuple[Finding, ...] = ()
    slow: tuple[Finding, ...] = ()


@frozen
class _Decided:
    """An analysis of ``text`` that has finished, and what executing told before."""

    text: str
    report: KernelReport
    first: _Executed

    def told(self) -> _Told:
        executed = {_key(finding) for finding in self.first.findings}
        parts = ([f for f in self.report.findings if (_key(f) in executed) is seen] for seen in (True, False))
        return _Told(self.text, *map(tuple[Finding, ...], parts))


class Carried:
    """What the kernels of one document were last known to have."""

    def __init__(self) -> None:
        self._known: dict[str, _Told | _Decided] = {}
        self._edit: tuple[str, str, Edit] | None = None  # the last one asked for, and its texts

    def shown(
        self, kernel: str, text: str, report: KernelReport, first: KernelReport, lines: int, cut: bool
    ) -> KernelReport:
        """``report`` of a kernel (whose name stays) of the newest ``text``, with what is open still.

        ``first``: what executing it tells, ``lines`` further up; ``cut``: not all of it was executed.
        """
        executed = _Executed(first, lines)
        if report.refined:
            self._known[kernel] = _Decided(text, report, executed)
            return report
        known = self._known.get(kernel) or _Told(text)
        told = known.told() if isinstance(known, _Decided) else known
        slow = self._moved(told.slow, told.text, text)
        if not cut:  # the usual case, of every kernel at every keystroke
            self._known[kernel] = _Told(text, executed, slow)
            return _with(report, slow)
        earlier = told.quick.findings if isinstance(told.quick, _Executed) else told.quick
        quick = self._moved(earlier, told.text, text)
        self._known[kernel] = _Told(text, quick, slow)
        return _with(report, (*quick, *slow))

    def _moved(self, findings: tuple[Finding, ...], old: str, new: str) -> tuple[Finding, ...]:
        """Findings of a text in a newer one."""
        if not findings or old is new:
            return findings
        if self._edit is None or self._edit[0] is not old or self._edit[1] is not new:
            self._edit = (old, new, Edit.between(old, new))
        moved = map(self._edit[2].finding, findings)
        return tuple(finding for finding in moved if finding is not None)


def _with(report: KernelReport, earlier: tuple[Finding, ...]) -> KernelReport:
    """``report`` with findings of an earlier text, but for those that it tells as surely itself."""
    if not earlier:
        return report
    known = {_key(finding): finding for finding in report.findings}
    added = {
        key: evolve(finding, earlier=True)
        for finding in earlier
        if (key := _key(finding)) not in known or _rank(known[key]) > _rank(finding)
    }
    if not added:
        return report
    findings = sorted((known | added).values(), key=lambda f: (f.site.range, f.code.value))
    return evolve(report, findings=tuple(findings))


def _rank(finding: Finding) -> int:
    return _SUREST_FIRST.index(finding.status)


def _key(finding: Finding) -> tuple[object, ...]:
    return (finding.code, finding.site.range, *(r.site.range for r in finding.related))
