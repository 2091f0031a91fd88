"""Which files are read in which units, and one report of each file however often it was read.

A file that is compiled is read on its own, a header's kernels in each unit that includes it. What all
readings say is said once. Where they differ (another macro, another launch) the worst verdict stays, with
the findings of all, and who says what.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.model import FileReport, Finding, KernelReport, LaunchConfig, ToolError, Verdict

MOST_UNITS = 4
"""In how many of the units that include it a header is read; the rest is said.

As many again are read for what none of these makes out: a template that others instantiate.
"""
_WORST = (Verdict.RACE_FREE, Verdict.UNDECIDED, Verdict.RACY)


@frozen
class Reading:
    """A file that is to be read as a part of ``unit``; None: as the front end sees fit.

    ``left_open``: lines of kernels that a reading before did not decide, which stay undecided whatever this
    one says.
    """

    path: Path
    unit: Path | None = None
    left_open: frozenset[int] = frozenset()


class Readings:
    """The readings of the files asked for, in waves: each has the jobs that the reports so far ask for."""

    def __init__(self, paths: Sequence[Path], parts: Collection[Path]) -> None:
        """``parts``: those of ``paths`` that are read in others, if these bring them."""
        self._parts = {_real(path) for path in parts}
        # Files that are read once come first: their reports need not wait for others.
        self._given = dict(sorted(((_real(p), p) for p in paths), key=self._is_part))
        self._reports: dict[Path, list[tuple[Path, FileReport]]] = {real: [] for real in self._given}
        self._units: dict[Path, list[Path]] = {}  # by header
        self._waves = iter((self._alone, self._in_a_unit, self._in_units, self._in_more_units, self._left))

    def wave(self) -> list[Reading]:
        """What to read next; none when all is read. The reports of one wave are taken before the next."""
        for wave in self._waves:
            if found := wave():
                return found
        return []

    def take(self, reading: Reading, report: FileReport) -> None:
        """What became of a reading."""
        self._reports.setdefault(_real(reading.path), []).append((reading.unit or reading.path, report))
        for header in report.kernel_headers if reading.unit is None else ():
            self._units.setdefault(header, []).append(reading.path)

    def whole(self) -> list[FileReport]:
        """The first of ``reports``, as far as nothing is added to them any more."""
        first = takewhile(lambda real: real not in self._parts and self._reports[real], self._given)
        return [self._report(real, self._reports[real]) for real in first]

    def reports(self) -> list[FileReport]:
        """One for each file: those that are read alone, then the others, each in the order asked for."""
        return [self._report(real, found) for real, found in self._reports.items() if found]

    def _is_part(self, file: tuple[Path, Path]) -> bool:
        return file[0] in self._parts

    def _alone(self) -> list[Reading]:
        return [Reading(path) for real, path in self._given.items() if real not in self._parts]

    def _in_a_unit(self) -> list[Reading]:
        return self._of_headers(slice(1), self._units)

    def _in_units(self) -> list[Reading]:
        return self._of_headers(slice(1, MOST_UNITS), self._units)

    def _in_more_units(self) -> list[Reading]:
        lacking = [header for header in self._units if self._lacks_kernels(header)]
        return self._of_headers(slice(MOST_UNITS, 2 * MOST_UNITS), lacking)

    def _of_headers(self, chosen: slice, headers: Iterable[Path]) -> list[Reading]:
        """Headers in some of their units."""
        order = {path: number for number, path in enumerate(self._given.values())}
        units = {header: sorted(self._units[header], key=lambda path: order[path]) for header in headers}
        return [
            Reading(self._given.get(header, header), unit, self._left_open(header))
            for header in sorted(units)
            if header in self._parts or header not in self._given
            for unit in units[header][chosen]
        ]

    def _left_open(self, real: Path) -> frozenset[int]:
        """Lines of kernels that were analysed, which one without a launch was not, and not decided."""
        kernels = (kernel for _, report in self._reports.get(real, ()) for kernel in report.kernels)
        return frozenset(k.range.start.line for k in kernels if k.launches and k.verdict is Verdict.UNDECIDED)

    def _lacks_kernels(self, real: Path) -> bool:
        """Whether there are kernels that no reading so far makes out."""
        unclear, clear = set[str](), set[str]()
        for _, report in self._reports[real]:
            told = {error.kernel for error in report.errors if error.kernel}
            unclear |= told
            clear |= {_base(kernel.name) for kernel in report.kernels} - told
        return not unclear <= clear

    def _left(self) -> list[Reading]:
        """Files that no unit made kernels of."""
        missing = (real for real in self._given if real in self._parts and not self._has_kernels(real))
        return [Reading(self._given[real]) for real in missing]

    def _has_kernels(self, real: Path) -> bool:
        return any(report.kernels for _, report in self._reports[real])

    def _report(self, real: Path, found: Sequence[tuple[Path, FileReport]]) -> FileReport:
        report = merged(sorted(found, key=lambda reading: reading[0]))
        units = len(self._units.get(real, ()))
        read_alone = real in self._given and real not in self._parts
        if units <= len(found) or read_alone:
            return report
        place = report.kernels[0].range if report.kernels else None
        told = ToolError(f"read in {len(found)} of the {units} files that include it", place)
        return evolve(report, errors=(*report.errors, told))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def merged(readings: Sequence[tuple[Path, FileReport]]) -> FileReport:
    """The report of one file; ``readings``: units with what they say of it, at least one."""
    if len(readings) == 1:
        return readings[0][1]
    found: dict[tuple[str, int], list[tuple[Path, KernelReport]]] = {}
    for unit, report in readings:
        for kernel in report.kernels:
            found.setdefault((kernel.name, kernel.range.start.line), []).append((unit, kernel))
    clearness = {(name, line): _clearness(name, reports) for (name, line), reports in found.items()}
    clearest: dict[tuple[str, int], int] = {}
    for (name, line), clear in clearness.items():
        clearest[_base(name), line] = max(clear, clearest.get((_base(name), line), 0))
    kernels = [
        _one(reports)
        for (name, line), reports in found.items()
        if clearness[name, line] == clearest[_base(name), line]
    ]
    reports = [report for _, report in readings]
    return evolve(
        reports[0],
        kernels=tuple(sorted(kernels, key=lambda k: k.range.start)),
        errors=_errors(reports),
        seconds=sum(report.seconds for report in reports),
    )


def _clearness(name: str, reports: Iterable[tuple[Path, KernelReport]]) -> int:
    """What is known of a template's arguments: an instance of some unit, a guess, or nothing.

    Who guesses makes up a program, which is of no interest where other units tell the real one.
    """
    return 2 * ("<" in name) - all(kernel.guessed for _, kernel in reports)


def _base(name: str) -> str:
    return name.partition("<")[0]


def _errors(reports: Sequence[FileReport]) -> tuple[ToolError, ...]:
    """Of all readings, without those about kernels that another one makes out."""
    told: dict[ToolError, None] = {}
    for report in reports:
        for error in report.errors:
            others = (other for other in reports if error not in other.errors)
            if not error.kernel or all(_lacks(other, error.kernel) for other in others):
                told[error] = None
    return tuple(told)


def _lacks(report: FileReport, kernel: str) -> bool:
    return all(_base(known.name) != kernel for known in report.kernels)


def _one(reports: Sequence[tuple[Path, KernelReport]]) -> KernelReport:
    """One kernel in several units."""
    verdicts = {kernel.verdict for _, kernel in reports}
    worst = next(k for _, k in reports if k.verdict is max(verdicts, key=_WORST.index))
    findings: dict[object, Finding] = {}
    for finding in (f for _, kernel in reports for f in kernel.findings):
        known = findings.setdefault(_place(finding), finding)
        if finding.effective_severity < known.effective_severity:
            findings[_place(finding)] = finding
    differ = _differences(reports) if len(verdicts) > 1 else ()
    reasons = dict.fromkeys(r for _, k in reports if k.verdict is worst.verdict for r in k.reasons)
    return evolve(
        worst,
        findings=tuple(findings.values()),
        reasons=(*reasons, *differ),
        notes=(*worst.notes, *differ),
        assumptions=tuple(dict.fromkeys(a for _, k in reports for a in k.assumptions)),
        launches=_launches(kernel for _, kernel in reports),
    )


def _launches(kernels: Iterable[KernelReport]) -> tuple[LaunchConfig, ...]:
    found: list[LaunchConfig] = []
    for launch in (launch for kernel in kernels for launch in kernel.launches):
        if launch not in found:  # they hold mappings, which have no hash
            found.append(launch)
    return tuple(found)


def _place(finding: Finding) -> object:
    """What makes two findings the same one."""
    ends = tuple(related.site.range for related in finding.related)
    return finding.code, finding.kind, finding.site.range, ends


def _differences(reports: Sequence[tuple[Path, KernelReport]]) -> tuple[str, ...]:
    by_verdict: dict[Verdict, list[str]] = {}
    for unit, kernel in reports:
        by_verdict.setdefault(kernel.verdict, []).append(unit.name)
    return tuple(f"{verdict.value} as included by {', '.join(u)}" for verdict, u in by_verdict.items())
