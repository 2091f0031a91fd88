"""Two elements that two threads swap, swapped by one of them: ``if (i < n - 1 - i) { … }``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import RACES, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.elements import subscripts
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_DECLARED = re.compile(r"[A-Za-z_][\w:]*(?:\s+\w+)*\s+(\w+)\s*=(?!=)(.+);\Z", re.DOTALL)
_ASSIGNED = re.compile(r"([^=;]{1,200}?)\s{0,9}=(?!=)([^;]{1,400});\Z", re.DOTALL)


def swaps(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Of the three statements of a swap, made where the first element comes before the second."""
    del report
    if finding.code not in RACES or not source.here(finding):
        return
    path = source.statements.path(source.offset(finding.site.range.start))
    block = path[-2] if len(path) > 1 else None
    if block is None or block.form is not Form.BLOCK:
        return
    number = block.parts.index(path[-1])
    for first in range(max(0, number - 2), number + 1):
        three = block.parts[first : first + 3]
        condition = _condition(source, three)
        if condition is not None:
            line = source.position(three[0].start).line
            edits = (
                Edit(three[0].start, three[0].start, f"if ({condition}) {{ "),
                Edit(three[-1].end, three[-1].end, " }"),
            )
            title = f"Swap on line {line} where {condition}"
            yield Candidate(RepairKind.ONE_STORES, title, edits)


def _condition(source: Source, three: list[Statement]) -> str | None:
    """That the one element comes before the other; None: these statements do not swap any."""
    if len(three) != 3:
        return None
    kept, first, second = (source.plain[s.start : s.end].strip() for s in three)
    declared, one, other = _DECLARED.match(kept), _ASSIGNED.match(first), _ASSIGNED.match(second)
    if declared is None or one is None or other is None:
        return None
    here, there = one[1].strip(), one[2].strip()
    if (declared[2].strip(), other[1].strip(), other[2].strip()) != (here, there, declared[1]):
        return None
    mine, theirs = subscripts(here), subscripts(there)
    return f"{mine[0]} < {theirs[0]}" if len(mine) == len(theirs) == 1 else None
