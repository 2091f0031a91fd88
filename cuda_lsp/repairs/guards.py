"""An access behind the end of a shared array, made only where the index lies within.

That there is nothing behind the end says nothing of what was meant: the array may be too small.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.arrays import shared_array
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.insertion import guarded
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form


def guards(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """The statement under a condition; a value that is read is 0 where there is none."""
    del report
    if finding.code is not Code.SHARED_OUT_OF_BOUNDS or not source.has(finding.site.range):
        return
    access = source.extent(finding.site.range)
    array, statement = shared_array(source, access), source.statement_at(finding.site.range)
    if array is None or statement is None or statement.form is not Form.SIMPLE:
        return
    use = next((use for use in array.uses if use and access[0] <= use[0][0] < access[1]), ())
    for subscript, extent in reversed(list(zip(use, array.extents, strict=False))):
        index, size = (source.text[slice(*part)].strip() for part in (subscript, extent))
        for condition in (f"{index} < {size}", f"{index} >= 0", f"{index} >= 0 && {index} < {size}"):
            title = f"Guard {source.text[slice(*access)]} by {condition}"
            yield Candidate(
                RepairKind.GUARD, title, guarded(source, statement, access, condition), keeps_meaning=False
            )
