"""Barrier objects that wait for the wrong number of threads, or for the wrong phase.

A further barrier would order the accesses, too, and leave threads that wait for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source

_COUNT = re.compile(
    r"\binit\s{0,9}\(\s{0,9}[^,;()]{1,200}(?:\[[^\]]{0,200}\])?\s{0,9},\s{0,9}([^;]{1,200}?)\s{0,9}\)\s{0,9};"
)
_PHASE = re.compile(
    r"\b\w{0,60}wait\w{0,60}\s{0,9}\(\s{0,9}&?\s{0,9}\w{1,60}(?:\[[^\]]{0,200}\])?\s{0,9},\s{0,9}([01])\s{0,9}\)"
)
_ALL = "blockDim.x"


def barrier_objects(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """All threads of the block for ``init``'s count; the other parity where a phase is named."""
    del report
    path = source.statements.path(source.offset(finding.site.range.start)) if source.here(finding) else []
    if finding.code is not Code.SHARED_RACE or not path:
        return
    launch = finding.launch
    for match in _COUNT.finditer(source.plain, path[0].start, path[0].end):
        if launch is not None and launch.block[1:] == (1, 1) and match[1] != _ALL:
            line = source.position(match.start()).line
            edit = Edit(match.start(1), match.end(1), _ALL)
            yield Candidate(
                RepairKind.OBJECT, f"Let the barrier of line {line} wait for {_ALL} threads", (edit,)
            )
    for match in _PHASE.finditer(source.plain, path[0].start, path[0].end):
        line, other = source.position(match.start()).line, "1" if match[1] == "0" else "0"
        edit = Edit(match.start(1), match.end(1), other)
        yield Candidate(RepairKind.OBJECT, f"Wait for parity {other} on line {line}", (edit,))
