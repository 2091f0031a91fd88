"""The missing barrier of a race within a block: where it may stand, best place first.

Between the two accesses, in the innermost block that holds both, when no barrier is there yet; else once per
round of a loop around both, at its end: what follows is the next round's access. Then both, for races that
take two barriers, and then farther out, where more threads come. A statement that reads what another thread
writes in it is taken apart. Of the places within functions called, those of the innermost that holds both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from cuda_lsp.model import Code, FileReport, Finding, RaceKind, Site, SourceRange
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.branches import lifted
from cuda_lsp.repairs.candidate import Candidate, Edit, edited
from cuda_lsp.repairs.difference import difference
from cuda_lsp.repairs.insertion import at_beginning, at_end, before, behind
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import taken_apart, unused, value_of, written_at
from cuda_lsp.repairs.whole_warps import BARRIER, come_to_barriers

_BLOCK = "__syncthreads();"
BARRIERS = {
    Code.SHARED_RACE: (_BLOCK,),
    Code.GLOBAL_RACE: (_BLOCK,),
    Code.WARP_RACE: (BARRIER, _BLOCK),
    Code.WARP_SYNCHRONOUS: (BARRIER, _BLOCK),
}
_SYNCHRONISES = re.compile(r"\b__sync\w*\s*\(|[.>]\s*sync\s*\(|\b(?:arrive_and_)?wait\s*\(|\bbar\.sync\b")
_GRID = re.compile(r"\bgrid_group\s+(\w+)\s*=|\bauto\s+(\w+)\s*=\s*(?:\w+\s*::\s*)?this_grid\s*\(")
_CLUSTER = re.compile(r"\bcluster_group\s+(\w+)\s*=|\bauto\s+(\w+)\s*=\s*(?:\w+\s*::\s*)?this_cluster\s*\(")
_MOST_LOOPS = 3
_MOST_BRANCHES = 2


@frozen
class _Place:
    """``said``: behind "Insert …;", for people."""

    edits: tuple[Edit, ...]
    said: str


def barriers(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Barriers that may order the two accesses of a race."""
    del report
    if _is_one_moment(source, finding):
        return
    between = _between_blocks(finding)
    words = () if between else BARRIERS.get(finding.code, ())
    of_cluster = _of_cluster(source, finding) if between else ()
    of_grid = _of_grid(source, finding) if finding.code is Code.GLOBAL_RACE else ()
    for barrier in (*of_cluster, *of_grid, *words):
        kind = RepairKind.GRID_BARRIER if barrier in of_grid else RepairKind.BARRIER
        for first, second in _anchors(source, finding):
            for place in _places(source, barrier, first, second):
                if barrier != BARRIER or come_to_barriers(source, place.edits):
                    yield Candidate(kind, f"Insert {barrier} {place.said}", place.edits)


def _is_one_moment(source: Source, finding: Finding) -> bool:
    """Whether threads store in one statement that each comes to once: nothing can stand between them."""
    there = finding.related[0].site if finding.related else finding.site
    if finding.kind is not RaceKind.WAW or _chain(finding.site) != _chain(there):
        return False
    path = source.statements.path(source.offset(finding.site.range.start)) if source.has(there.range) else []
    return bool(path) and not finding.site.calls and all(s.form is not Form.LOOP for s in path)


def _of_cluster(source: Source, finding: Finding) -> tuple[str, ...]:
    """The barrier of the cluster that the kernel has a name for."""
    name = _group(source, finding, _CLUSTER)
    return () if name is None else (f"{name}.sync();",)


def _group(source: Source, finding: Finding, declared: re.Pattern[str]) -> str | None:
    """What the kernel calls a group that is declared so."""
    at = source.offset(finding.site.range.start) if source.has(finding.site.range) else None
    path = [] if at is None else source.statements.path(at)
    group = declared.search(source.plain, path[0].start, path[0].end) if path else None
    return None if group is None else group[1] or group[2]


def _of_grid(source: Source, finding: Finding) -> tuple[str, ...]:
    """The barrier of a grid that is launched to have one: elsewhere it ends the program."""
    name = _group(source, finding, _GRID)
    if name is None:
        return ()
    used = re.search(rf"\b{name}\s*\.\s*sync\s*\(|\bsync\s*\(\s*{name}\s*\)", source.plain)
    return (f"{name}.sync();",) if used or "cudaLaunchCooperativeKernel" in source.plain else ()


def _between_blocks(finding: Finding) -> bool:
    """No barrier of a block orders these."""
    blocks = finding.witness.blocks if finding.witness else None
    return blocks is not None and blocks[0] != blocks[1]


def _anchors(source: Source, finding: Finding) -> Iterator[tuple[SourceRange, SourceRange]]:
    """Both accesses, or the calls through which they are reached, function by function, innermost first."""
    here = finding.site
    there = finding.related[0].site if finding.related else here
    one, other = (_chain(here), _chain(there))
    shared = 0
    while shared < min(len(one), len(other)) - 1 and one[shared] == other[shared]:
        shared += 1
    for level in range(shared, -1, -1):
        if source.has(one[level]) and source.has(other[level]):
            yield one[level], other[level]


def _chain(site: Site) -> tuple[SourceRange, ...]:
    return (*site.calls, site.range)


def _places(source: Source, barrier: str, one: SourceRange, other: SourceRange) -> Iterator[_Place]:
    first, second = sorted((one, other), key=lambda extent: extent.start)
    paths = [source.statements.path(source.offset(extent.start)) for extent in (first, second)]
    shared = 0
    while shared < min(map(len, paths)) and paths[0][shared] is paths[1][shared]:
        shared += 1
    if shared == 0:
        return
    around = paths[0][:shared]
    between = None
    if around[-1].form is Form.BLOCK and all(len(path) > shared for path in paths):
        earlier, later = paths[0][shared], paths[1][shared]
        between = _Place(before(source, later, barrier), f"before line {source.position(later.start).line}")
        if not _SYNCHRONISES.search(source.plain, earlier.end, later.start):
            yield between
            yield from _lifted(source, between)
    loops = [s for s in reversed(around) if s.form is Form.LOOP and s.parts][:_MOST_LOOPS]
    ends = [_end_of(source, loop, barrier) for loop in loops]
    yield from ends
    yield from _apart(source, barrier, around[-1], first, [end.edits for end in ends])
    yield from _apart_in_branch(source, barrier, around, first, [end.edits for end in ends])
    if between:
        yield between
        for end in ends:
            yield _Place((*between.edits, *end.edits), f"{between.said} and {end.said}")
    yield from _farther(source, barrier, around, loops)


def _lifted(source: Source, between: _Place) -> Iterator[_Place]:
    """The barrier out of the branches that it came to stand in, one after the other."""
    (edit,) = between.edits
    at = Source(source.path, edited(source.text, between.edits))
    start = edit.start + len(edit.text) - len(edit.text.lstrip())
    barrier = edit.text.strip()
    for _ in range(_MOST_BRANCHES):
        edits = lifted(at, start)
        if edits is None:
            return
        text = edited(at.text, edits)
        said = f"{between.said}, out of the branch around it"
        yield _Place(difference(source.text, text), said)
        at, start = Source(source.path, text), text.find(barrier, min(e.start for e in edits))


def _end_of(source: Source, loop: Statement, barrier: str) -> _Place:
    line = source.position(loop.start).line
    return _Place(at_end(source, loop.parts[0], barrier), f"at the end of the loop on line {line}")


def _farther(
    source: Source, barrier: str, around: Sequence[Statement], loops: Sequence[Statement]
) -> Iterator[_Place]:
    """Before and behind the statements around both, at the beginnings of loops, at ends of blocks of theirs.

    Where a block ends, objects of it end.
    """
    if len(around) > 1 and around[-1].form is Form.BLOCK and around[-2].form is Form.BLOCK:
        said = f"at the end of the block of line {source.position(around[-1].start).line}"
        yield _Place(at_end(source, around[-1], barrier), said)
    for loop in loops:
        said = f"at the beginning of the loop on line {source.position(loop.start).line}"
        yield _Place(at_beginning(source, loop.parts[0], barrier), said)
    for block, statement in reversed(list(pairwise(around))):
        if block.form is Form.BLOCK and statement.form is not Form.BLOCK:
            line = source.position(statement.start).line
            yield _Place(before(source, statement, barrier), f"before line {line}")
            last = source.position(statement.end - 1).line
            yield _Place(behind(source, statement, barrier), f"behind line {last}")


def _apart(
    source: Source, barrier: str, statement: Statement, target: SourceRange, ends: Sequence[tuple[Edit, ...]]
) -> Iterator[_Place]:
    """A barrier within the one statement that has both accesses; then at the end of the round as well."""
    if statement.form is not Form.SIMPLE:
        return
    said = f"between the reads and the write of line {target.start.line}"
    for followed in (False, True):
        extent = source.extent(target)
        edit = taken_apart(source.text, extent, statement.end, barrier, followed=followed)
        if edit is not None:
            yield _Place((edit,), said)
            if ends and not followed and all(e.end <= edit.start or edit.end <= e.start for e in ends[0]):
                yield _Place((edit, *ends[0]), f"{said}, and at the end of the round")


def _apart_in_branch(
    source: Source,
    barrier: str,
    around: Sequence[Statement],
    target: SourceRange,
    ends: Sequence[tuple[Edit, ...]],
) -> Iterator[_Place]:
    """The same of a branch's only statement, with the barrier outside of it, where all threads come."""
    statement = around[-1]
    branch = next((s for s in around[-2:-4:-1] if s.form is not Form.BLOCK), None)
    alone = branch is not None and (branch.parts == [statement] or branch.parts[0].parts == [statement])
    if (
        branch is None
        or branch.form is not Form.IF
        or branch.head is None
        or not alone
        or len(branch.parts) > 1
    ):
        return
    update = written_at(source.text, statement.start, statement.end)
    if update is None:
        return
    body = source.text[branch.start : branch.end]
    taken, value = unused("taken", source.plain), unused("value", body)
    condition = source.text[branch.head[0] + 1 : branch.head[1] - 1].strip()
    pieces = (
        f"{{ const bool {taken} = {condition}; const auto {value} = {taken} ? {value_of(update)} : 0;"
        f" {barrier} if ({taken}) {update.target} = {value}; }}"
    )
    edit = Edit(branch.start, branch.end, pieces)
    said = f"between the reads and the write of line {target.start.line}"
    yield _Place((edit,), said)
    if ends and all(e.end <= edit.start or edit.end <= e.start for e in ends[0]):
        yield _Place((edit, *ends[0]), f"{said}, and at the end of the round")
