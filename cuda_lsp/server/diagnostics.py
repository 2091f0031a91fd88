"""Findings as LSP diagnostics."""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import Code, FileReport, Finding, ToolError
from cuda_lsp.report.explain import page_url
from cuda_lsp.server.positions import path_of, to_client, uri_of

SOURCE = "cuda-lsp"


def diagnostics(report: FileReport, document: TextDocument) -> list[lsp.Diagnostic]:
    """Every finding and error of a report in the client's units."""
    found = [_diagnostic(finding, document) for finding in report.findings]
    return found + [_problem(error, document) for error in report.errors]


def _diagnostic(finding: Finding, document: TextDocument) -> lsp.Diagnostic:
    tags = [lsp.DiagnosticTag.Unnecessary] if finding.code is Code.REDUNDANT_BARRIER else None
    return lsp.Diagnostic(
        range=to_client(finding.site.range, document),
        message=finding.message,
        severity=lsp.DiagnosticSeverity(int(finding.effective_severity)),
        code=finding.code.value,
        code_description=lsp.CodeDescription(href=page_url(finding.code)),
        source=SOURCE,
        tags=tags,
        related_information=_related(finding, document) or None,
        data=_data(finding),
    )


def _related(finding: Finding, document: TextDocument) -> list[lsp.DiagnosticRelatedInformation]:
    here = path_of(document.uri)
    places: list[lsp.DiagnosticRelatedInformation] = []
    for related in finding.related:
        extent = related.site.range
        same = extent.path == here
        location = lsp.Location(
            document.uri if same else uri_of(extent.path), to_client(extent, document if same else None)
        )
        places.append(lsp.DiagnosticRelatedInformation(location=location, message=related.message))
    return places


def _data(finding: Finding) -> dict[str, Any]:
    """What code actions need to find the finding again."""
    return {"code": finding.code.value, "kernel": finding.kernel, "status": finding.status.value}


def _problem(error: ToolError, document: TextDocument) -> lsp.Diagnostic:
    start = lsp.Position(0, 0)
    return lsp.Diagnostic(
        range=to_client(error.range, document) if error.range else lsp.Range(start, start),
        message=error.message,
        severity=lsp.DiagnosticSeverity.Information,
        source=SOURCE,
    )
