"""Findings as a code quality report of GitLab, which shows them in merge requests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cuda_lsp.model import FileReport, Finding, Severity, ToolError
from cuda_lsp.report.defects import defects
from cuda_lsp.report.identity import identified

_SEVERITY = {
    Severity.ERROR: "critical",
    Severity.WARNING: "major",
    Severity.INFORMATION: "minor",
    Severity.HINT: "info",
}


def code_quality(reports: Iterable[FileReport], root: Path) -> list[dict[str, Any]]:
    """One object a finding or error; paths relative to ``root``, where GitLab runs it."""
    found: list[dict[str, Any]] = []
    for report in reports:
        found += (_error(error, report.path, root) for error in report.errors)
        found += (_issue(f, known, root) for f, known in identified(defects(report.findings)))
    return found


def _issue(finding: Finding, fingerprint: str, root: Path) -> dict[str, Any]:
    extent = finding.site.range
    path = _path(extent.path, root)
    return {
        "description": finding.message,
        "check_name": finding.code.value,
        "fingerprint": f"{path}:{fingerprint}",
        "severity": _SEVERITY[finding.effective_severity],
        "location": {"path": path, "lines": {"begin": extent.start.line, "end": extent.end.line}},
    }


def _error(error: ToolError, path: Path, root: Path) -> dict[str, Any]:
    where = _path(error.range.path if error.range else path, root)
    return {
        "description": error.message,
        "check_name": "not-analysed",
        "fingerprint": f"{where}:{error.message}",
        "severity": _SEVERITY[error.severity],
        "location": {"path": where, "lines": {"begin": error.range.start.line if error.range else 1}},
    }


def _path(path: Path, root: Path) -> str:
    absolute, start = path.absolute(), root.absolute()
    return (absolute.relative_to(start) if absolute.is_relative_to(start) else absolute).as_posix()
