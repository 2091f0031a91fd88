"""Reports on the standard output, in the style that was asked for: text as they come, else one document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from cuda_lsp.files import read_text
from cuda_lsp.model import FileReport

STYLES = ("text", "json", "sarif", "github")


def print_reports(coming: Iterable[FileReport], style: str, *, verbose: bool) -> Sequence[FileReport]:
    """The reports, when they are printed. ``verbose``: text lists race-free kernels with findings too."""
    if style == "text":
        from rich.console import Console

        from cuda_lsp.report.terminal import render

        return render(Console(highlight=False), coming, _lines, verbose=verbose)
    reports = list(coming)
    if style == "json":
        from cuda_lsp.report.document import document

        click.echo(json.dumps(document(reports), indent=2))
    elif style == "sarif":
        from cuda_lsp.report.sarif import sarif

        click.echo(json.dumps(sarif(reports, Path.cwd()), indent=2))
    else:
        from cuda_lsp.report.github import workflow_commands

        click.echo(workflow_commands(reports))
    return reports


def _lines(path: Path) -> list[str]:
    try:
        return read_text(path).splitlines()
    except OSError:
        return []  # the excerpt is left out; the finding itself names the place
