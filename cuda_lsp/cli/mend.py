"""``check --fix``, ``--diff`` and ``--repairs``: verified repairs written, shown, or told.

Only files that were asked for change. A header that several files include is mended where all of them ask for
the same.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from attrs import evolve, frozen

from cuda_lsp import files
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.check import checking
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.cli.common import BROKEN, FOUND, Failure, outcome
from cuda_lsp.model import Code, FileReport
from cuda_lsp.readings import Reading, merged
from cuda_lsp.repair import Repair
from cuda_lsp.repairs.plan import PlannedRepairs, Wish, planned_repairs
from cuda_lsp.repairs.writing import rewritten, write
from cuda_lsp.report.output import Output, print_reports
from cuda_lsp.report.progress import Progress
from cuda_lsp.report.selection import selected

_SHARE = 0.7
"""Of a file's processor time, for its analysis and for looking for repairs: what is found is then kept."""


@frozen
class Mending:
    """``fix``: write what is mended; ``diff``: show it; neither: tell of repairs.

    ``stdin``: the one text came from there, and goes to the standard output.
    """

    fix: bool
    diff: bool
    unsafe: bool
    select: frozenset[Code]
    ignore: frozenset[Code]
    stdin: bool


@frozen
class _Found:
    """Reports as the files are, and what can be mended in those that were asked for."""

    reports: Sequence[FileReport]
    plans: Mapping[Path, Sequence[tuple[Path, PlannedRepairs]]]
    """By file: each unit in which it was read, with its plan."""


def mend(
    which: Sequence[Path],
    asked: Asked,
    jobs: int | None,
    limits: FileLimits,
    how: Mending,
    output: Output,
    fail_on: str,
) -> int:
    """Analyse, mend, print; the exit status."""
    found = _found(which, asked, jobs, limits, how)
    if how.diff:
        return _show(found)
    if how.fix:
        return _fix(which, found, how, output, fail_on, partial(_again, which, asked, jobs, limits))
    repairs = {path: _told(plans) for path, plans in found.plans.items()}
    told = selected(found.reports, how.select, how.ignore)
    return outcome(print_reports(told, output, repairs), True, fail_on)


def _found(which: Sequence[Path], asked: Asked, jobs: int | None, limits: FileLimits, how: Mending) -> _Found:
    real = frozenset(map(os.path.realpath, which))
    codes = (how.select or frozenset(Code)) - how.ignore
    until = _SHARE * limits.seconds
    wish = Wish(real, codes, how.unsafe, together=how.fix or how.diff, until=until)
    asked = evolve(asked, plan=partial(planned_repairs, wish))
    plans: dict[Path, list[tuple[Path, PlannedRepairs]]] = {}

    def take(reading: Reading, found: Analysed) -> None:
        progress.heard(reading, found)
        if found.planned is not None:
            if not found.planned.whole:
                _say(f"{reading.path}: repairs were looked for only as long as {until:.0f} s of --deadline")
            plans.setdefault(reading.path, []).append((reading.unit or reading.path, found.planned))

    progress = Progress(len(which))
    with checking(which, asked, jobs, limits, take, cache=False, tick=progress.tick) as coming:
        reports = list(progress.beside(coming))
    for report in reports:
        if report.findings and os.path.realpath(report.path) not in real:
            _say(f"{report.path}: not among the files asked for, so it is not changed")
    by_unit = {path: sorted(plans[path], key=lambda read: read[0]) for path in sorted(plans)}
    return _Found(reports, by_unit)


def _told(plans: Sequence[tuple[Path, PlannedRepairs]]) -> tuple[Repair, ...]:
    """Those that all units have."""
    first, *others = (plan.repairs for _, plan in plans)
    edits = [{repair.edits for repair in repairs} for repairs in others]
    return tuple(repair for repair in first if all(repair.edits in of for of in edits))


def _agreed(found: _Found) -> dict[Path, PlannedRepairs]:
    """What is to be made of each file that something can be mended in."""
    agreed: dict[Path, PlannedRepairs] = {}
    for path, plans in found.plans.items():
        texts = {plan.text for _, plan in plans}
        if len(texts) > 1:
            units = ", ".join(unit.name for unit, _ in plans)
            _say(f"{path}: not changed, because {units} ask for different repairs")
        elif texts != {plans[0][1].original}:
            agreed[path] = plans[0][1]
    return agreed


def _show(found: _Found) -> int:
    """Print what would change; exit code 1 when something would."""
    agreed = _agreed(found)
    for path, plan in agreed.items():
        click.echo("".join(_unified(path, plan.original, plan.text)), nl=False)
    _say(f"would mend {_counted(agreed.values())}" if agreed else "nothing would be mended")
    if outcome(found.reports, True, "never") == BROKEN:
        return BROKEN
    return FOUND if agreed else 0


def _unified(path: Path, old: str, new: str) -> Iterable[str]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, str(path), str(path)):
        yield line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"


def _again(which: Sequence[Path], asked: Asked, jobs: int | None, limits: FileLimits) -> Sequence[FileReport]:
    """Reports of the files as they are now."""
    with checking(which, asked, jobs, limits) as coming:
        return list(coming)


def _fix(
    which: Sequence[Path],
    found: _Found,
    how: Mending,
    output: Output,
    fail_on: str,
    again: Callable[[], Sequence[FileReport]],
) -> int:
    agreed = _agreed(found)
    written = {path: plan for path, plan in agreed.items() if how.stdin or _write(path, plan)}
    if how.stdin:
        (path,) = which
        _print_text(path, agreed[path].text if path in agreed else None)
    if any(unit != path for path in written for unit, _ in found.plans[path]):
        reports = again()  # others read what has changed
    else:
        reports = [_after(report, found, written) for report in found.reports]
    where = contextlib.redirect_stdout(sys.stderr) if how.stdin else contextlib.nullcontext()
    with where:
        told = print_reports(selected(reports, how.select, how.ignore), output)
    if written:
        _say(f"mended {_counted(written.values())}")
    return outcome(told, len(written) == len(agreed), fail_on)


def _print_text(path: Path, text: str | None) -> None:
    """The one text, mended as far as it could be; as it came where there was no analysis."""
    try:
        data = files.read_bytes(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    sys.stdout.buffer.write(data if text is None else rewritten(data, text))
    sys.stdout.buffer.flush()


def _write(path: Path, plan: PlannedRepairs) -> bool:
    """Whether the file has its new text."""
    try:
        data = files.read_bytes(path)
        if data.decode("utf-8", "replace") != plan.original:
            _say(f"{path}: changed meanwhile, and is left as it is")
            return False
        write(path, rewritten(data, plan.text))
    except OSError as error:
        _say(f"{path}: cannot be written: {error.strerror}")
        return False
    return True


def _after(report: FileReport, found: _Found, written: Mapping[Path, PlannedRepairs]) -> FileReport:
    """The report of a file as it is now."""
    if report.path not in written:
        return report
    now = merged([(unit, plan.report) for unit, plan in found.plans[report.path]])
    settings = tuple(error for error in report.errors if error.range is None and error not in now.errors)
    return evolve(now, errors=(*settings, *now.errors), seconds=report.seconds)


def _counted(plans: Iterable[PlannedRepairs]) -> str:
    plans = list(plans)
    repairs = [repair for plan in plans for repair in plan.repairs]
    findings = sum(len(repair.findings) for repair in repairs)
    where = f"{_number(findings, 'finding')} in {_number(len(plans), 'file')}"
    return f"{where}, by {_number(len(repairs), 'repair')}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _say(line: str) -> None:
    click.echo(line, err=True)
