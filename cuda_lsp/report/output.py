"""Reports on the standard output, in the style that was asked for: lines as they come, else one document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from attrs import frozen

from cuda_lsp.files import read_text
from cuda_lsp.model import FileReport
from cuda_lsp.repair import Repair
from cuda_lsp.report.defects import defects

STYLES = ("text", "concise", "json", "sarif", "github", "gitlab", "junit")


@frozen
class Output:
    """How reports are printed; the rest is for ``text``, but the last.

    ``verbose``: list race-free kernels with findings too. ``quiet``: no verdicts, no totals. ``statistics``:
    count findings at the end. ``explain``: say at the end what the codes mean that were found.
    ``documentation``: the address of that, for SARIF; empty: the pages go with it.
    """

    style: str = STYLES[0]
    verbose: bool = False
    quiet: bool = False
    statistics: bool = False
    explain: bool = False
    documentation: str = ""


Repairs = Mapping[Path, Sequence[Repair]]
"""Verified repairs of files; none where nobody asked for them."""


def print_reports(
    coming: Iterable[FileReport], output: Output, repairs: Repairs | None = None
) -> Sequence[FileReport]:
    """The reports, when they are printed. Styles that have no place for repairs leave them out."""
    if output.style == "text":
        return _text(coming, output, repairs or {})
    if output.style == "concise":
        reports = list(_concise(coming))
        _tell(repairs or {})
        return reports
    reports = list(coming)
    click.echo(_document(reports, output, repairs or {}))
    return reports


def _text(coming: Iterable[FileReport], output: Output, repairs: Repairs) -> Sequence[FileReport]:
    from rich.console import Console

    from cuda_lsp.report.terminal import explanations, render, statistics

    console = Console(highlight=False)
    reports = render(console, coming, _lines, verbose=output.verbose, quiet=output.quiet)
    for part in (statistics if output.statistics else None, explanations if output.explain else None):
        if part:
            console.print(part(reports))
    _tell(repairs)
    return reports


def _tell(repairs: Repairs) -> None:
    """A line a repair, where it begins."""
    for repair in (repair for of in repairs.values() for repair in of):
        doubt = "" if repair.keeps_meaning else " (unsafe)"
        cost = f" ({repair.cost})" if repair.cost else ""
        click.echo(f"{repair.edits[0].range.beginning}: verified repair: {repair.title}{cost}{doubt}")


def _concise(coming: Iterable[FileReport]) -> Iterator[FileReport]:
    """One line a finding or error, as compilers print them."""
    for report in coming:
        for error in report.errors:
            place = error.range.beginning if error.range else report.path
            click.echo(f"{place}: {error.severity.name.lower()}: {error.message}")
        for finding in defects(report.findings):
            level = finding.effective_severity.name.lower()
            click.echo(f"{finding.site.range.beginning}: {level}: {finding.message} [{finding.code.value}]")
        yield report


def _document(reports: Sequence[FileReport], output: Output, repairs: Repairs) -> str:
    """All reports in one."""
    style = output.style
    if style == "json":
        from cuda_lsp.report.document import document

        return json.dumps(document(reports), indent=2)
    if style == "sarif":
        from cuda_lsp.report.sarif import sarif

        return json.dumps(sarif(reports, Path.cwd(), repairs, output.documentation), indent=2)
    if style == "gitlab":
        from cuda_lsp.report.gitlab import code_quality

        return json.dumps(code_quality(reports, Path.cwd()), indent=1)
    if style == "junit":
        from cuda_lsp.report.junit import junit

        return junit(reports)
    from cuda_lsp.report.github import workflow_commands

    return workflow_commands(reports)


def _lines(path: Path) -> list[str]:
    try:
        return read_text(path).splitlines()
    except OSError:
        return []  # the excerpt is left out; the finding itself names the place
