"""Findings as GitHub workflow commands, which annotate a pull request's lines."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_lsp.model import FileReport, Finding, Severity

_COMMAND = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}


def workflow_commands(files: Iterable[FileReport]) -> str:
    """One ``::level file=…::message`` line a finding."""
    return "\n".join(_annotation(finding) for file in files for finding in file.findings)


def _annotation(finding: Finding) -> str:
    extent = finding.site.range
    where = (
        f"file={_property(str(extent.path))},line={extent.start.line},endLine={extent.end.line},"
        f"col={extent.start.column},endColumn={extent.end.column},title={finding.code.value}"
    )
    return f"::{_COMMAND[finding.effective_severity]} {where}::{_data(finding.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
