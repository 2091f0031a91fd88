"""The repair of code that relies on lock step: ``__syncwarp()`` behind the statements at which lanes meet.

A statement that itself reads what another lane's writes (``s[t] += s[t + 16];``) is taken apart, with a
barrier between. Lines stay lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.updates import taken_apart
from cuda_lsp.repairs.whole_warps import BARRIER, come_to_barriers

_LONGEST = 1000  # characters of a statement behind an access


def lock_step(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """All of the kernel's at once: the barriers that only some of them need order nothing."""
    if finding.code is not Code.WARP_SYNCHRONOUS:
        return
    races = [f for f in report.findings if (f.code, f.kernel) == (finding.code, finding.kernel)]
    if all(source.here(race) for race in races):
        title = f"Insert __syncwarp(); where {finding.kernel} relies on lock step"
        for edits in _edits(source, races):
            if come_to_barriers(source, edits):
                yield Candidate(RepairKind.LOCK_STEP, title, edits)


def _edits(source: Source, races: Sequence[Finding]) -> Iterator[tuple[Edit, ...]]:
    """Edits that may mend all of these races, the fewest first."""
    apart: dict[int, tuple[int, int]] = {}  # by a statement's end: the extent of what it assigns to
    first: set[int] = set()
    every: set[int] = set()
    for race in races:
        places = sorted([race.site.range, *(related.site.range for related in race.related[:1])])
        extents = [source.extent(place) for place in places]
        ends = [end for end in (_end_of_statement(source.text, behind) for _, behind in extents) if end]
        if not ends:
            return  # the lanes meet in no plain statement
        every.update(ends)
        if len(ends) == len(extents) and ends[0] == ends[-1]:
            apart[ends[0]] = extents[0]
        else:
            first.add(ends[0])
    for followed in (first, every):
        whole = [
            taken_apart(source.text, extent, end, BARRIER, followed=end in followed)
            for end, extent in apart.items()
        ]
        added = [Edit(end, end, f" {BARRIER}") for end in followed - apart.keys()]
        if None not in whole:
            yield (*(edit for edit in whole if edit), *added)


def _end_of_statement(text: str, at: int) -> int | None:
    """Behind the semicolon of the statement at ``at``, unless a brace comes first."""
    match = re.compile(r"[^;{}]*;").match(text, at, at + _LONGEST)
    return match.end() if match else None
