"""A barrier that not all threads reach, lifted out of the branches that it stands in."""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.branches import lifted
from cuda_lsp.repairs.candidate import Candidate, edited
from cuda_lsp.repairs.difference import difference
from cuda_lsp.repairs.source import Source

_DEEPEST = 3


def lifting(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """The barrier behind one branch after the other."""
    del report
    if finding.code is not Code.BARRIER_DIVERGENCE or not source.has(finding.site.range):
        return
    start, text, at = source.offset(finding.site.range.start), source.text, source
    for _ in range(_DEEPEST):
        edits = lifted(at, start)
        if edits is None:
            return
        barrier = at.plain[slice(*_statement(at, start))]
        text = edited(at.text, edits)
        line = finding.site.range.start.line
        title = f"Lift {barrier} out of the branch it stands in (line {line})"
        yield Candidate(RepairKind.LIFTED_BARRIER, title, difference(source.text, text))
        found = text.find(barrier, min(edit.start for edit in edits))
        at, start = Source(source.path, text), found


def _statement(source: Source, start: int) -> tuple[int, int]:
    statement = source.statements.path(start)[-1]
    return statement.start, statement.end
