"""Data behind a flag or counter: fences and barriers that an atomic needs to publish what was stored.

Who stores makes it visible before the atomic (``__threadfence()``); when all threads of a block have
stored, one that speaks for them waits for them first. Who has seen the flag takes a fence before it reads,
and those that it speaks for wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.insertion import before, behind
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_ATOMIC = re.compile(r"\batomic[A-Z]\w*\s*\(")
_FENCE = "__threadfence();"
_BARRIER = "__syncthreads();"
_MOST = 4  # atomics of a function

_Way = tuple[str, tuple[Edit, ...]]


def publishing(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Fences and barriers around the atomics of the function, alone and together."""
    del report
    if finding.code not in (Code.GLOBAL_RACE, Code.SHARED_RACE) or not source.here(finding):
        return
    sites = (finding.site, *(related.site for related in finding.related[:1]))
    offsets = sorted({source.offset(site.range.start) for site in sites})
    path = source.statements.path(offsets[0])
    if not path:
        return
    atomics = [m.start() for m in _ATOMIC.finditer(source.plain, path[0].start, path[0].end)][:_MOST]
    ways = list(_ways(source, atomics, offsets))
    singles = dict(ways)
    for said, edits in singles.items():
        yield Candidate(RepairKind.FENCE, f"Insert {said}", edits)
    told = list(singles.items())
    for number, (said, edits) in enumerate(told):
        for other, more in told[number + 1 :]:
            if not {(e.start, e.end) for e in edits} & {(e.start, e.end) for e in more}:
                yield Candidate(RepairKind.FENCE, f"Insert {said}, {other}", (*edits, *more))


def _ways(source: Source, atomics: list[int], accesses: list[int]) -> Iterator[_Way]:
    for at in atomics:
        path = source.statements.path(at)
        place = _in_block(path)
        if place is None:
            continue
        line = source.position(at).line
        waits = (
            place.form is Form.LOOP
            or re.match(r"(?:while|do|for)\b", source.plain[place.start :]) is not None
        )
        if waits and not _next_is_fence(source, place.end):
            yield f"{_FENCE} behind line {line}", behind(source, place, _FENCE)
        if not waits and not _is_behind_fence(source, place.start):
            yield f"{_FENCE} before line {line}", before(source, place, _FENCE)
        branch = next((s for s in reversed(path) if s.form is Form.IF), None)
        block = path[path.index(branch) - 1] if branch in path[1:] else None
        if branch is None or block is None or block.form is not Form.BLOCK:
            continue
        if any(offset < branch.start for offset in accesses):
            yield (
                f"{_BARRIER} before line {source.position(branch.start).line}",
                before(source, branch, _BARRIER),
            )
        if any(offset >= branch.end for offset in accesses):
            last = source.position(branch.end - 1).line
            yield f"{_BARRIER} behind line {last}", behind(source, branch, _BARRIER)


def _in_block(path: list[Statement]) -> Statement | None:
    """The innermost statement of a block around a place."""
    return next(
        (s for block, s in zip(path[-2::-1], path[:0:-1], strict=True) if block.form is Form.BLOCK), None
    )


def _next_is_fence(source: Source, at: int) -> bool:
    return re.compile(r"\s*__threadfence\w*\s*\(").match(source.plain, at) is not None


def _is_behind_fence(source: Source, at: int) -> bool:
    return (
        re.search(
            r"__threadfence\w{0,9}\s{0,9}\(\s{0,9}\)\s{0,9};\s{0,9}\Z", source.plain[max(0, at - 80) : at]
        )
        is not None
    )
