"""Findings as SARIF 2.1.0, for code-scanning services.

Levels follow SARIF §3.27.10: error, warning, note; hints are notes of rank zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuda_lsp import __version__
from cuda_lsp.model import CODES, FileReport, Finding, Severity, Site, SourceRange, ToolError
from cuda_lsp.repair import Repair
from cuda_lsp.report.defects import defects
from cuda_lsp.report.explain import page, page_url
from cuda_lsp.report.identity import identified

Json = dict[str, Any]

_LEVEL = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}


def sarif(
    files: Iterable[FileReport],
    root: Path | None = None,
    repairs: Mapping[Path, Sequence[Repair]] | None = None,
    base: str = "",
) -> Json:
    """One SARIF log with one run. Paths become relative to ``root`` where they lie under it.

    ``repairs``: of files; each is a fix of all results that it mends. ``base``: the address of the
    documentation; without it rules have their pages in them.
    """
    reports, known = list(files), repairs or {}
    errors = [(file.path, error) for file in reports for error in file.errors]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(base)},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": not any(e.severity is Severity.ERROR for _, e in errors),
                        "toolExecutionNotifications": [_notification(path, e, root) for path, e in errors],
                    }
                ],
                "results": [
                    _result(finding, fingerprint, root, known.get(file.path, ()))
                    for file in reports
                    for finding, fingerprint in identified(defects(file.findings))
                ],
            }
        ],
    }


def _driver(base: str) -> Json:
    return {
        "name": "cuda-lsp",
        "version": __version__,
        "rules": [
            {
                "id": info.code.value,
                "shortDescription": {"text": info.title},
                "help": {"text": f"cuda-lsp explain {info.code.value}", "markdown": page(info.code)},
                **({"helpUri": page_url(info.code, base)} if base else {}),
            }
            for info in CODES.values()
        ],
    }


def _result(finding: Finding, fingerprint: str, root: Path | None, repairs: Sequence[Repair]) -> Json:
    return {
        "ruleId": finding.code.value,
        "level": _LEVEL[finding.effective_severity],
        "message": {"text": finding.message},
        "partialFingerprints": {"cuda-lsp/1": fingerprint},
        "locations": [
            {
                **_location(finding.site, root),
                "logicalLocations": [{"name": finding.kernel, "kind": "function"}],
            }
        ],
        "relatedLocations": [
            {"id": number, "message": {"text": related.message}, **_location(related.site, root)}
            for number, related in enumerate(finding.related, 1)
        ],
        **_code_flows(finding, root),
        **_fixes(finding, root, repairs),
        "properties": {
            "status": finding.status.value,
            "kernel": finding.kernel,
            "next": finding.next_step,
            **({"missed": True} if finding.missed else {}),
        },
    }


def _code_flows(finding: Finding, root: Path | None) -> Json:
    """What the two threads of a witness do, a thread flow each (SARIF §3.37)."""
    if finding.witness is None or finding.witness.alone or not finding.related:
        return {}
    witness, sites = finding.witness, (finding.site, finding.related[0].site)
    blocks = witness.blocks or (None, None)
    flows: list[Json] = []
    for thread, block, site in zip(witness.threads, blocks, sites, strict=True):
        who = f"thread {thread}" + (f" of block {block}" if block else "")
        step = {**_location(site, root), "message": {"text": f"{who} accesses {witness}"}}
        flows.append({"id": who, "locations": [{"location": step}]})
    return {"codeFlows": [{"threadFlows": flows}]}


def _fixes(finding: Finding, root: Path | None, repairs: Sequence[Repair]) -> Json:
    """Changes of the artifact after which a finding, or another one of its defect, has gone (SARIF §3.55)."""
    fixes = [
        _fix(repair, root)
        for repair in repairs
        if any(_is_of(one, mended) for one in (finding, *finding.also) for mended in repair.findings)
    ]
    return {"fixes": fixes} if fixes else {}


def _is_of(told: Finding, mended: Finding) -> bool:
    """Whether both are one finding; a defect's first has the related places of the others too."""
    return (told.code, told.kernel, told.site, told.message) == (
        mended.code, mended.kernel, mended.site, mended.message
    )  # fmt: skip


def _fix(repair: Repair, root: Path | None) -> Json:
    path = repair.edits[0].range.path
    replacements = [
        {"deletedRegion": _region(edit.range), "insertedContent": {"text": edit.text}}
        for edit in repair.edits
    ]
    change = {"artifactLocation": {"uri": _uri(path, root)}, "replacements": replacements}
    return {"description": {"text": repair.title}, "artifactChanges": [change]}


def _notification(path: Path, error: ToolError, root: Path | None) -> Json:
    place: Json = {"artifactLocation": {"uri": _uri(error.range.path if error.range else path, root)}}
    if error.range:
        place["region"] = _region(error.range)
    return {
        "level": _LEVEL[error.severity],
        "message": {"text": error.message},
        "locations": [{"physicalLocation": place}],
    }


def _location(site: Site, root: Path | None) -> Json:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(site.range.path, root)},
            "region": _region(site.range),
        }
    }


def _uri(path: Path, root: Path | None) -> str:
    absolute = path.absolute()
    if root and absolute.is_relative_to(root.absolute()):
        return absolute.relative_to(root.absolute()).as_posix()
    return absolute.as_uri()


def _region(extent: SourceRange) -> Json:
    return {
        "startLine": extent.start.line,
        "startColumn": extent.start.column,
        "endLine": extent.end.line,
        "endColumn": extent.end.column,
    }
