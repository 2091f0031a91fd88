"""Asynchronous copies that nobody has waited for when others read what they bring.

Who has issued a copy waits for it; the barrier that orders threads comes behind the wait. All copies are
waited for: how many may stay under way is the author's to say; where that is said, one fewer is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.insertion import before
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_BY_THREAD = re.compile(r"\b__pipeline_memcpy_async\s*\(")
_BY_GROUP = re.compile(r"\b((?:cooperative_groups|cg)::)memcpy_async\s*\(\s*(\w+)\s*,")
_BY_PIPE = re.compile(r"\bmemcpy_async\s*\((?:[^;()]|\([^()]*\))*,\s*(\w+)\s*\)")
_PRIOR = re.compile(
    r"(?:consumer_wait_prior\s{0,9}<|\b__pipeline_wait_prior\s{0,9}\(|\bwait_group\s)\s{0,9}(\d)"
)
_BARRIER = re.compile(r"\b__sync(?:threads|warp)\s*\(|\b\w+\.sync\s*\(|\bsync\s*\(")


def waits(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """A wait before the barrier behind the copy, or else with a barrier before the other access."""
    del report
    if finding.code not in (Code.SHARED_RACE, Code.WARP_RACE) or not source.here(finding):
        return
    extents = [finding.site.range, *(related.site.range for related in finding.related[:1])]
    starts = sorted(source.offset(extent.start) for extent in extents)
    paths = [source.statements.path(start) for start in starts]
    if len(paths) != 2 or not all(paths) or paths[0][0] is not paths[1][0]:
        return
    yield from _earlier(source, paths[0][0])
    for wait in _waits(source, paths[0][-1]):
        barrier = _last_barrier(source, paths[0][-1].end, starts[1])
        at = source.statements.path(barrier) if barrier is not None else paths[1]
        added = wait if barrier is not None else f"{wait} __syncthreads();"
        place = next(
            (s for around, s in zip(at[-2::-1], at[:0:-1], strict=True) if around.form is Form.BLOCK), None
        )
        if place is not None:
            line = source.position(place.start).line
            yield Candidate(
                RepairKind.WAIT, f"Insert {added} before line {line}", before(source, place, added)
            )


def _waits(source: Source, copy: Statement) -> Iterator[str]:
    """How who makes this copy waits for it."""
    text = source.plain[copy.start : copy.end]
    group = _BY_GROUP.search(text)
    pipe = _BY_PIPE.search(text)
    if group:
        yield f"{group[1]}wait({group[2]});"
    elif pipe and re.search(
        rf"\b{pipe[1]}\s{{0,9}}=[^;]{{0,200}}\bmake_pipeline\s{{0,9}}\(", source.plain[: copy.start]
    ):
        yield f"{pipe[1]}.consumer_wait();"
    elif _BY_THREAD.search(text):
        yield "__pipeline_wait_prior(0);"
        yield "__pipeline_commit(); __pipeline_wait_prior(0);"


def _earlier(source: Source, function: Statement) -> Iterator[Candidate]:
    """One copy fewer that may still be under way where somebody waits."""
    for match in _PRIOR.finditer(source.plain, function.start, function.end):
        for fewer in range(int(match[1]) - 1, -1, -1):
            line = source.position(match.start()).line
            edit = Edit(match.start(1), match.end(1), str(fewer))
            title = f"Leave {fewer} copies under way on line {line}"
            yield Candidate(RepairKind.WAIT, title, (edit,))


def _last_barrier(source: Source, start: int, end: int) -> int | None:
    found = [match.start() for match in _BARRIER.finditer(source.plain, start, end)]
    return found[-1] if found else None
