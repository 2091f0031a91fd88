"""What the commands share: options, failures, how a run ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from cuda_lsp.batch.sources import NoSource, sources
from cuda_lsp.model import Dim3, FileReport, Severity, ToolError
from cuda_lsp.report.output import STYLES, Output, print_reports

FOUND, BROKEN = 1, 2
INTERRUPTED = 130  # as shells tell of who was ended by Ctrl-C
_FAIL_ON = {"error": Severity.ERROR, "warning": Severity.WARNING, "information": Severity.INFORMATION}


class Failure(click.ClickException):
    """The tool could not do its work: one line, exit code 2."""

    exit_code = BROKEN


def _extents(context: click.Context, option: click.Parameter, text: str | None) -> Dim3 | None:
    """Up to three positive numbers."""
    del context
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise Failure(f"{option.opts[0]} wants up to three positive numbers like 16,16 — not {text!r}")
    x, y, z = [*numbers, 1, 1][:3]
    return (x, y, z)


def overrides(**values: Any) -> dict[str, Any]:
    """Settings given on the command line."""
    return {key: value for key, value in values.items() if value is not None and value != ()}


_COMMON = (
    click.option("--format", "style", type=click.Choice(STYLES), default=STYLES[0]),
    click.option(
        "--block-dim", callback=_extents, metavar="X[,Y[,Z]]",
        help="Threads of a block; overrides launches in the source.",
    ),
    click.option(
        "--grid-dim", callback=_extents, metavar="X[,Y[,Z]]",
        help="Blocks of the grid; overrides launches in the source.",
    ),
    click.option(
        "-I", "include_dirs", multiple=True, type=click.Path(path_type=Path), help="Add a folder of headers."
    ),
    click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro."),
    click.option("--arch", metavar="sm_NN", help="Target architecture."),
    click.option("--fail-on", type=click.Choice([*_FAIL_ON, "never"]), default="warning", show_default=True),
    click.option("--config", type=click.Path(path_type=Path, exists=True), help="Settings file."),
)  # fmt: skip


def options(*chosen: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds these options, in the order in which help lists them."""

    def added(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(chosen):
            command = option(command)
        return command

    return added


common = options(*_COMMON)
"""The options that ``check`` and ``run`` share; settings among them come as further arguments."""


def sources_of(paths: Iterable[Path]) -> list[Path]:
    """The files that are meant. Raises Failure."""
    try:
        return sources(paths)
    except NoSource as error:
        raise Failure(str(error)) from None


def finish(coming: Iterable[FileReport], ran: bool, output: Output, fail_on: str) -> None:
    """Print, and exit with what the reports ask for."""
    sys.exit(outcome(print_reports(coming, output), ran, fail_on))


def outcome(reports: Iterable[FileReport], ran: bool, fail_on: str) -> int:
    """The exit status for these reports; ``ran``: all that was asked for could be done."""
    reports = list(reports)
    if not ran or any(unusable(error, report) for report in reports for error in report.errors):
        return BROKEN
    limit = _FAIL_ON.get(fail_on)
    found = limit and any(f.effective_severity <= limit for report in reports for f in report.findings)
    return FOUND if found else 0


def unusable(error: ToolError, report: FileReport) -> bool:
    """Whether a file, or a kernel of it, has no analysis for this."""
    if error.range is not None:
        return error.severity is Severity.ERROR and bool(error.kernel)  # it is no C++
    return not report.kernels or error.severity is Severity.ERROR
