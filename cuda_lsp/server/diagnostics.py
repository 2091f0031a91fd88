"""Findings as LSP diagnostics, and the JSON of those that one keystroke leaves as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.config import SettingsProblem
from cuda_lsp.model import Code, FileReport, Finding, KernelReport, SourceRange, Status, ToolError
from cuda_lsp.report.defects import defects
from cuda_lsp.report.explain import page_url
from cuda_lsp.server.positions import path_of, to_client, uri_of

SOURCE = "cuda-lsp"


def diagnostics(report: FileReport, document: TextDocument, base: str) -> list[lsp.Diagnostic]:
    """Every finding and error of a report in the client's units; ``base``: where codes are documented."""
    found = [_diagnostic(finding, document, base) for finding in defects(report.findings)]
    return found + _beside(report, document)


def identity(items: Sequence[lsp.Diagnostic], version: int | None) -> str:
    """What a client that pulled diagnostics of a version is told to know them by."""
    return f"{version}:{hash(str(items))}"


class DiagnosticsJson:
    """The diagnostics of documents as JSON; those of a kernel are written once for each report of it.

    A large file has hundreds of findings and an edit changes those of one kernel: making all of them
    anew would cost more than analysing it. Kernels that may share a defect are one here: instances of a
    template, and those that call a function in which something is found.
    """

    def __init__(self, encode: Callable[[lsp.Diagnostic], str], base: str = "") -> None:
        self._encode = encode
        self._base = base
        self._made: dict[Path, dict[tuple[int, ...], tuple[list[KernelReport], list[str]]]] = {}

    def of(self, report: FileReport, document: TextDocument) -> str:
        """What ``diagnostics`` gives, as a JSON array."""
        before = self._made.get(report.path, {})
        made: dict[tuple[int, ...], tuple[list[KernelReport], list[str]]] = {}
        for kernels in _together(report.kernels):
            key = tuple(map(id, kernels))  # of reports that are kept here, so that nothing else has it
            made[key] = before.get(key) or (kernels, self._told(kernels, document))
        self._made[report.path] = made
        items = [item for _, told in made.values() for item in told]
        items += self._json(_beside(report, document))
        return f"[{', '.join(items)}]"

    def forget(self, path: Path) -> None:
        """The document is closed."""
        self._made.pop(path, None)

    def _told(self, kernels: Iterable[KernelReport], document: TextDocument) -> list[str]:
        findings = defects(finding for kernel in kernels for finding in kernel.findings)
        return self._json(_diagnostic(finding, document, self._base) for finding in findings)

    def _json(self, found: Iterable[lsp.Diagnostic]) -> list[str]:
        return [self._encode(item) for item in found]


def templates(kernels: Iterable[KernelReport]) -> list[list[KernelReport]]:
    """Kernels in their order, instances of one template together."""
    found: dict[SourceRange, list[KernelReport]] = {}
    for kernel in kernels:
        found.setdefault(kernel.range, []).append(kernel)
    return list(found.values())


def _together(kernels: Iterable[KernelReport]) -> list[list[KernelReport]]:
    """Kernels in their order, those together whose findings may be one defect."""
    found: list[list[KernelReport]] = []
    at: dict[SourceRange, int] = {}  # of findings in functions: the first of ``found`` that has one there
    for group in templates(kernels):
        places = {f.site.range for k in group for f in k.findings if not _is_in(f.site.range, k.range)}
        same = sorted({at[place] for place in places if place in at})
        number = same[0] if same else len(found)
        if not same:
            found.append([])
        for other in same[1:]:
            found[number] += found[other]
            found[other] = []
            at.update({place: number for place, known in at.items() if known == other})
        found[number] += group
        at.update(dict.fromkeys(places, number))
    return [group for group in found if group]


def _is_in(place: SourceRange, kernel: SourceRange) -> bool:
    return kernel.start.line <= place.start.line <= kernel.end.line and place.path == kernel.path


def _diagnostic(finding: Finding, document: TextDocument, base: str) -> lsp.Diagnostic:
    page = page_url(finding.code, base)
    fades = finding.code is Code.REDUNDANT_BARRIER or finding.status is Status.NOT_OBSERVED
    tags = [lsp.DiagnosticTag.Unnecessary] if fades else None
    return lsp.Diagnostic(
        range=to_client(finding.site.range, document),
        message=finding.message,
        severity=lsp.DiagnosticSeverity(int(finding.effective_severity)),
        code=finding.code.value,
        code_description=lsp.CodeDescription(href=page) if page else None,
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
    told = {"code": finding.code.value, "kernel": finding.kernel, "status": finding.status.value}
    return {**told, **({"missed": True} if finding.missed else {})}


def settings_diagnostic(problem: SettingsProblem) -> lsp.Diagnostic:
    """A mistake in a settings file, as a diagnostic of that file: its whole line."""
    start, end = lsp.Position(problem.line - 1, 0), lsp.Position(problem.line, 0)
    severity = lsp.DiagnosticSeverity.Information if problem.refused else lsp.DiagnosticSeverity.Warning
    message = problem.said
    return lsp.Diagnostic(lsp.Range(start, end), message, severity=severity, source=SOURCE)


def _beside(report: FileReport, document: TextDocument) -> list[lsp.Diagnostic]:
    """What there is to say besides findings: errors, and comments that silence nothing."""
    idle = [
        lsp.Diagnostic(
            range=to_client(place, document),
            message="nothing is found here that this comment could silence",
            severity=lsp.DiagnosticSeverity.Hint,
            source=SOURCE,
            tags=[lsp.DiagnosticTag.Unnecessary],
        )
        for place in report.unused
    ]
    return [*(_problem(error, document) for error in report.errors), *idle]


def _problem(error: ToolError, document: TextDocument) -> lsp.Diagnostic:
    start, message = lsp.Position(0, 0), error.message
    place, related = lsp.Range(start, start), None
    if error.range is not None and error.range.path == path_of(document.uri).absolute():
        place = to_client(error.range, document)
    elif error.range is not None:  # of a header: the place is a link
        there = lsp.Location(uri_of(error.range.path), to_client(error.range, None))
        related = [lsp.DiagnosticRelatedInformation(there, message)]
        message = f"{error.range.path.name}:{error.range.start.line}: {message}"
    return lsp.Diagnostic(
        range=place,
        message=message,
        severity=lsp.DiagnosticSeverity(int(error.severity)),
        source=SOURCE,
        related_information=related,
    )
