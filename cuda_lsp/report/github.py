"""Findings as GitHub workflow commands, which annotate a pull request's lines."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_lsp.model import FileReport, Finding, Severity, ToolError
from cuda_lsp.report.defects import defects

_COMMAND = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}


def workflow_commands(files: Iterable[FileReport]) -> str:
    """One ``::level file=…::message`` line a finding or error."""
    reports = list(files)
    errors = [_error(file, error) for file in reports for error in file.errors]
    return "\n".join(
        [*errors, *(_annotation(finding) for file in reports for finding in defects(file.findings))]
    )


def _error(file: FileReport, error: ToolError) -> str:
    extent = error.range
    where = f"file={_property(str(extent.path if extent else file.path))}"
    place = f",line={extent.start.line},col={extent.start.column}" if extent else ""
    return f"::{_COMMAND[error.severity]} {where}{place},title=cuda-lsp::{_data(error.message)}"


def _annotation(finding: Finding) -> str:
    extent = finding.site.range
    where = (
        f"file={_property(str(extent.path))},line={extent.start.line},endLine={extent.end.line},"
        f"col={extent.start.column},endColumn={extent.end.column},title={finding.code.value}"
    )
    told = _data(f"{finding.message}\nnext: {finding.next_step}")
    return f"::{_COMMAND[finding.effective_severity]} {where}::{told}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
