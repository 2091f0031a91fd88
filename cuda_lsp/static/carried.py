"""Findings outlive an edit until the new text's analysis has decided anew: nothing flickers while one types.

A keystroke is answered by executing the kernel for a few milliseconds; what only the solver, or a longer
execution, had found of the text before is not looked for in that time. Such findings stay where their code
went, marked as of the earlier text, until the kernel's analysis has finished. What executing had found and
does not find now is gone at once, and so is a finding whose own code was edited. A text that is broken
decides nothing, and one that differs in white space and comments alone was decided before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.frontend.same_code import SameCode
from cuda_lsp.frontend.source_text import differing
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import (
    RACES,
    Code,
    Finding,
    KernelReport,
    LaunchConfig,
    Position,
    SourceRange,
    Status,
    Verdict,
    line_now,
)
from cuda_lsp.static.same_program import Program
from cuda_lsp.told_lines import with_lines

_REMEMBERED = 3  # analyses before the last one
Moved = Callable[[SourceRange], "SourceRange | None"]
Followed = Callable[[], Kernel]

_SUREST_FIRST = (Status.CONFIRMED, Status.PROVED, Status.CONDITIONAL, Status.NOT_OBSERVED, Status.POSSIBLE)

_CERTAIN = (Status.CONFIRMED, Status.PROVED, Status.CONDITIONAL)


@frozen
class Edit:
    """The one stretch in which two texts of a file differ: where it begins, where it ends in either."""

    path: Path
    begin: Position
    before: Position
    after: Position

    @classmethod
    def between(cls, path: Path, old: str, new: str) -> Edit:
        """The shortest one."""
        begin, before, after = differing(old, new)
        return cls(path, _position(old, begin), _position(old, before), _position(new, after))

    def moved(self, stretch: SourceRange) -> SourceRange | None:
        """Where a stretch of the old text is now; None: it was edited. Other files stay as they are."""
        if stretch.end <= self.begin or stretch.path != self.path:
            return stretch
        if stretch.start < self.before:
            return None
        return SourceRange(stretch.path, self._behind(stretch.start), self._behind(stretch.end))

    def _behind(self, place: Position) -> Position:
        columns = self.after.column - self.before.column if place.line == self.before.line else 0
        return Position(place.line + self.after.line - self.before.line, place.column + columns)


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
class _Decided:
    """An analysis of ``text`` that has finished, and what executing told before.

    ``before``: of texts before, whose code was another: the one behind a lone ``/``, or without the statement
    that somebody began to type, may be that again. ``respelled``: findings quote code whose white space or
    comments were edited since. ``program``: what was analysed.
    """

    text: str
    report: KernelReport
    first: _Executed
    before: _Decided | None = None
    respelled: bool = False
    program: Program | None = None

    def cut(self, many: int) -> _Decided:
        """With so many before it at most."""
        return evolve(self, before=self.before.cut(many - 1) if self.before and many else None)

    def told(self) -> _Told:
        executed = {_key(finding): finding.message for finding in self.first.findings}
        quick = tuple(f for f in self.report.findings if _key(f) in executed)
        slow = tuple(f for f in self.report.findings if _key(f) not in executed)
        better = tuple(f for f in quick if executed[_key(f)] != f.message)
        return _Told(self.text, quick, slow, better, self)


@frozen
class _Told:
    """What was last told of a kernel of ``text``: found ``quick``, by executing it, or ``slow``.

    ``better``: what the solver says of findings that executing has too. ``decided``: the last text of which
    all was known.
    """

    text: str
    quick: _Executed | tuple[Finding, ...] = ()
    slow: tuple[Finding, ...] = ()
    better: tuple[Finding, ...] = ()
    decided: _Decided | None = None

    @property
    def is_something(self) -> bool:
        return bool(self.quick or self.slow or self.better)


def _told(known: _Decided | _Told) -> _Told:
    return known.told() if isinstance(known, _Decided) else known


class Carried:
    """What the kernels of one document were last known to have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, _Told | _Decided] = {}
        self._edits: tuple[str, dict[int, tuple[str, Edit]]] = (
            "",
            {},
        )  # to a text, from older ones
        self._same: tuple[str, dict[int, tuple[str, SameCode | None]]] = ("", {})  # with which older texts

    def shown(
        self,
        kernel: str,
        text: str,
        report: KernelReport,
        first: KernelReport,
        lines: int,
        *,
        cut: bool,
        program: Program,
    ) -> KernelReport:
        """``report`` of a kernel (whose name stays) of the newest ``text``, with what is open still.

        ``first``: what executing it tells, ``lines`` further up; ``cut``: not all of it was executed.
        Of broken text, what is not found may be there all the same.
        """
        executed, known = _Executed(first, lines), self._known.get(kernel) or _Told(text)
        decided = known if isinstance(known, _Decided) else known.decided
        broken = program.is_broken(decided.program if decided else None)
        if report.refined and not (broken and (decided or _told(known).is_something)):
            before = decided.before if decided and decided.report is report else decided
            kept = before and before.cut(_REMEMBERED)
            self._known[kernel] = _Decided(text, report, executed, kept, program=program)
            return report
        again = None if broken else self._again(decided, text, report)
        if again is not None:
            self._known[kernel] = again
            return again.report
        told = _told(known)
        if not (cut or broken):  # the usual case, of every kernel at every keystroke
            slow, better = (self._moved(found, told.text, text) for found in (told.slow, told.better))
            there = {_key(finding) for finding in report.findings} if better else ()
            better = tuple(finding for finding in better if _key(finding) in there)
            self._known[kernel] = _Told(text, executed, slow, better, told.decided)
            return _with(report, slow, better)
        # While somebody types, half a statement accuses nobody whom the whole text did not.
        half_typed = broken and not report.refined and decided is not None
        return _with(evolve(report, findings=()) if half_typed else report, self._follow(kernel, told, text))

    def same(self, kernel: str, text: str, report: KernelReport) -> KernelReport | None:
        """What was decided of a kernel whose newest ``text`` has the code of that; None: nothing was.

        ``report`` has the place that the kernel has now.
        """
        known = self._known.get(kernel)
        decided = known.decided if isinstance(known, _Told) else known
        again = self._again(decided, text, report)
        if again is None:
            return None
        self._known[kernel] = again
        return again.report

    def respelled(self, kernels: Iterable[str], before: str, text: str) -> SameCode | None:
        """Where the code of the text ``before`` is in a newer one; None: something has to be looked at anew.

        All of these kernels were decided then, and their findings quote nothing that is written differently.
        """
        decided = [self._known.get(kernel) for kernel in kernels]
        if not all(isinstance(k, _Decided) and k.text == before and not k.respelled for k in decided):
            return None
        same = self._same_code(before, text)
        findings = (f for k in decided if isinstance(k, _Decided) for f in k.report.findings)
        if same is None or any(same.respelled(place) for f in findings for place in f.places):
            return None
        return same

    def shifted(self, kernel: str, text: str, lines: int) -> KernelReport | None:
        """What was decided of a kernel that is what it was in the text before, ``lines`` further down."""
        known = self._known.get(kernel)
        if not isinstance(known, _Decided):
            return None
        executed = evolve(known.first, lines=known.first.lines + lines)
        moved = evolve(known, text=text, report=known.report.moved(lines), first=executed)
        self._known[kernel] = moved
        return moved.report

    def is_respelled(self, kernel: str) -> bool:
        """Whether findings that were decided quote code that is written in another way now."""
        known = self._known.get(kernel)
        return isinstance(known, _Decided) and known.respelled

    def put_off(self, kernel: str, text: str, report: KernelReport) -> KernelReport:
        """``report`` of a kernel of ``text`` that is looked at later, with all that was told of it."""
        known = self._known.get(kernel)
        if known is None:
            return report
        told, launches = _told(known), tuple[LaunchConfig, ...]()
        if told.decided:
            moved = self._edit(told.decided.text, text).moved
            launches = tuple(_launched(moved, launch) for launch in told.decided.report.launches)
        return _with(evolve(report, launches=launches), self._follow(kernel, told, text))

    def alike(
        self, kernel: str, text: str, report: KernelReport, program: Program, followed: Followed
    ) -> KernelReport | None:
        """What was decided of a kernel that is the same program in a newer ``text``; None: nothing was.

        ``report`` has the place that the kernel has now. ``followed``: the ``program`` with values of floats,
        which is asked for where these were looked at.
        """
        known = self._known.get(kernel)
        decided = known.decided if isinstance(known, _Told) else known
        while decided is not None:
            moved = self._edit(decided.text, text).moved
            blamed = any(finding.code is Code.LAUNCH_LIMIT for finding in decided.report.findings)
            kept = decided.program if not (blamed or decided.respelled) else None
            if kept is not None and kept.is_like(program, followed):
                again = _placed(decided, text, report, moved)
                if again is not None:
                    self._known[kernel] = again
                    return again.report
            decided = decided.before
        return None

    def half_typed(
        self, kernel: str, text: str, report: KernelReport, complaints: Set[str]
    ) -> KernelReport | None:
        """``report`` of a kernel whose newest ``text`` is broken, with all that was told.

        Executing what is left of it would accuse nobody whom the whole text did not. None: that was not
        decided, or clang had the same ``complaints`` of it.
        """
        known = self._known.get(kernel)
        decided = known.decided if isinstance(known, _Told) else known
        if decided is None or (decided.program is not None and complaints <= decided.program.complaints):
            return None
        shown = self.put_off(kernel, text, report)
        racy = any(f.code in RACES and f.status in _CERTAIN for f in shown.findings)
        return evolve(shown, verdict=Verdict.RACY) if racy else shown

    def surroundings_changed(self) -> None:
        """Headers, or launches in other files: the same code may mean something else now."""
        for kernel, known in self._known.items():
            told = _told(known)
            self._known[kernel] = evolve(told, decided=None)

    def hidden(self, kernel: str, text: str, report: KernelReport) -> KernelReport:
        """The last ``report`` of a kernel that clang cannot make out in the newest ``text``."""
        known = self._known.get(kernel)
        if known is None:
            return report
        told = _told(known)
        return _with(evolve(report, findings=()), self._follow(kernel, told, text))

    def _again(self, decided: _Decided | None, text: str, report: KernelReport) -> _Decided | None:
        """What was decided, for a text with the same code: none of it has to be found anew."""
        if decided is None:
            return None
        if decided.text == text:  # found before, unless something else than the text has changed
            return decided if decided.report.key == report.key else None
        same = self._same_code(decided.text, text)
        if same is None:
            return self._again(decided.before, text, report)
        quoted = [place for finding in decided.report.findings for place in finding.places]
        moved = _placed(decided, text, report, same.moved)
        return moved and evolve(moved, respelled=decided.respelled or any(map(same.respelled, quoted)))

    def _same_code(self, old: str, text: str) -> SameCode | None:
        """Compared once, however many kernels are of the old text."""
        if self._same[0] is not text:
            self._same = (text, {})
        compared = self._same[1]
        if id(old) not in compared:  # it is kept there, so that no other text has its number
            compared[id(old)] = (old, SameCode.of(self._path, old, text))
        return compared[id(old)][1]

    def _follow(self, kernel: str, told: _Told, text: str) -> tuple[Finding, ...]:
        """All that was told, in a newer text."""
        earlier = told.quick.findings if isinstance(told.quick, _Executed) else told.quick
        best = {_key(finding): finding for finding in (*earlier, *told.better)}
        quick = self._moved(tuple(best.values()), told.text, text)
        slow, better = (self._moved(found, told.text, text) for found in (told.slow, told.better))
        self._known[kernel] = _Told(text, quick, slow, better, told.decided)
        return (*quick, *slow)

    def _moved(self, findings: tuple[Finding, ...], old: str, new: str) -> tuple[Finding, ...]:
        """Findings of a text in a newer one."""
        if not findings or old is new:
            return findings
        return _all_moved(findings, self._edit(old, new).moved)

    def _edit(self, old: str, new: str) -> Edit:
        if self._edits[0] is not new:
            self._edits = (new, {})
        made = self._edits[1]
        if id(old) not in made:  # it is kept there, so that no other text has its number
            made[id(old)] = (old, Edit.between(self._path, old, new))
        return made[id(old)][1]


def _placed(decided: _Decided, text: str, report: KernelReport, moved: Moved) -> _Decided | None:
    """What was decided, of a ``text`` in which its places have ``moved``; None: one of them is gone."""
    before = decided.report
    findings, quick = (_all_moved(known.findings, moved) for known in (before, decided.first))
    if (len(findings), len(quick)) != (len(before.findings), len(decided.first.findings)):
        return None
    line = partial(line_now, report.range.path, moved)
    known = evolve(
        report,
        launches=report.launches or tuple(_launched(moved, launch) for launch in before.launches),
        verdict=before.verdict,
        reasons=tuple(with_lines(reason, line) for reason in before.reasons),
        findings=findings,
        refined=True,
        assumptions=tuple(with_lines(assumption, line) for assumption in before.assumptions),
    )
    return evolve(decided, text=text, report=known, first=_Executed(evolve(report, findings=quick), 0))


def _launched(moved: Moved, launch: LaunchConfig) -> LaunchConfig:
    """A launch where it is written now, if it is."""
    place = moved(launch.site.range) if launch.site else None
    return evolve(launch, site=evolve(launch.site, range=place) if launch.site and place else None)


def _all_moved(findings: Iterable[Finding], moved: Moved) -> tuple[Finding, ...]:
    """Findings where their places are now; without those of which one has none."""
    return tuple(placed for finding in findings if (placed := finding.placed(moved)) is not None)


def _with(
    report: KernelReport, earlier: tuple[Finding, ...], better: tuple[Finding, ...] = ()
) -> KernelReport:
    """``report`` with findings of an earlier text, but for those that it tells as surely itself.

    ``better``: those that stay also where it is as sure.
    """
    if not earlier and not better:
        return report
    known = {_key(finding): finding for finding in report.findings}
    added = {
        key: evolve(finding, earlier=True)
        for finding in earlier
        if (key := _key(finding)) not in known or _rank(known[key]) > _rank(finding)
    } | {
        key: evolve(finding, earlier=True)
        for finding in better
        if _rank(known[key := _key(finding)]) >= _rank(finding)
    }
    if not added:
        return report
    findings = sorted((known | added).values(), key=lambda f: (f.site.range, f.code.value))
    open_ = report.verdict is Verdict.RACE_FREE and any(f.code in RACES for f in added.values())
    return evolve(report, findings=tuple(findings), verdict=Verdict.UNDECIDED if open_ else report.verdict)


def _rank(finding: Finding) -> int:
    return _SUREST_FIRST.index(finding.status)


def _key(finding: Finding) -> tuple[object, ...]:
    """Equal for the same thing found twice: a race may have another code when more is known of it."""
    return (
        finding.code if finding.kind is None else None,
        finding.site.range,
        *(r.site.range for r in finding.related),
    )
