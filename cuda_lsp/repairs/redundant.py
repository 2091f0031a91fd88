"""A barrier that orders nothing, removed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding, Verdict
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.insertion import removed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form

_ONLY_A_BARRIER = re.compile(
    r"(?:__syncthreads\s*\(\s*\)|__syncwarp\s*\([^()]*\)|[\w.]+\.sync\s*\(\s*\))\s*;"
)


def redundant(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Of a kernel that is proved race-free. Under a launch that is only assumed another one may need it."""
    if finding.code is not Code.REDUNDANT_BARRIER:
        return
    path = source.statements.path(source.offset(finding.site.range.start))
    free = any(k.name == finding.kernel and k.verdict is Verdict.RACE_FREE for k in report.kernels)
    if not free or not source.has(finding.site.range) or len(path) < 2 or path[-2].form is not Form.BLOCK:
        return
    statement = path[-1]
    text = source.plain[statement.start : statement.end]
    if _ONLY_A_BARRIER.fullmatch(text):
        told = finding.launch is not None and not finding.launch.assumed
        title = f"Remove {text} of line {finding.site.range.start.line}, which orders nothing"
        edits = removed(source, statement)
        yield Candidate(RepairKind.REMOVED_BARRIER, title, edits, keeps_meaning=told)
