"""A statement that orders threads, moved to where it orders these two accesses.

A lock that is given back before the last access is given back behind it; a wait that comes behind the
access which needs it comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import RACES, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.insertion import before, behind, removed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_RELEASES = re.compile(
    r"(?:(?<!\w)\w{0,60}(?:unlock|release)\w{0,60}\s{0,9}\("
    r"|atomicExch(?:_block)?\s{0,9}\([^;]{0,300},\s{0,9}0u?\s{0,9}\)\s{0,9};)",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"(?:\w{1,60}\s{0,9}(?:\.|->)\s{0,9})?"
    r"(?:arrive_and_wait|wait|consumer_wait|__pipeline_wait_prior|wait_prior)\s{0,9}(?:<\w{1,60}>)?\s{0,9}\("
)
_BARRIER = re.compile(r"__syncthreads\s*\(|\w+\s*\.\s*sync\s*\(")


def moving(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """The statement moved within the block that holds it and the access."""
    del report
    if finding.code not in RACES or not source.here(finding):
        return
    sites = (finding.site, *(related.site for related in finding.related[:1]))
    offsets = sorted({source.offset(site.range.start) for site in sites})
    yield from _locks(source, offsets)
    yield from _waits(source, offsets)


def _locks(source: Source, offsets: list[int]) -> Iterator[Candidate]:
    """Of a block's statements the release, behind the last access."""
    for block, number in _places(source, offsets[-1]):
        for release in block.parts[:number]:
            if release.form is Form.SIMPLE and _RELEASES.match(source.plain, release.start, release.end):
                text = source.text[release.start : release.end]
                last = block.parts[number]
                fence = (
                    "" if "__threadfence" in source.plain[last.end : last.end + 40] else "__threadfence(); "
                )
                line = source.position(last.start).line
                for added in dict.fromkeys((text, f"{fence}{text}")):
                    edits = (*removed(source, release), *behind(source, last, added))
                    yield Candidate(RepairKind.UNDER_LOCK, f"Give the lock back behind line {line}", edits)


def _waits(source: Source, offsets: list[int]) -> Iterator[Candidate]:
    """A wait behind the second access, before it, and before the barrier that stands there."""
    for block, number in _places(source, offsets[-1]):
        for wait in block.parts[number + 1 :]:
            if wait.form is not Form.SIMPLE or not _WAITS.match(source.plain, wait.start, wait.end):
                continue
            text, later = source.text[wait.start : wait.end], block.parts[number]
            between = [p for p in block.parts[:number] if p.start > offsets[0] and _is_barrier(source, p)]
            for place in (*between[-1:], later):
                line = source.position(place.start).line
                edits = (*before(source, place, text), *removed(source, wait))
                yield Candidate(RepairKind.WAIT, f"Wait before line {line}", edits)


def _is_barrier(source: Source, statement: Statement) -> bool:
    return statement.form is Form.SIMPLE and _BARRIER.match(source.plain, statement.start) is not None


def _places(source: Source, offset: int) -> Iterator[tuple[Statement, int]]:
    """The blocks around a place, from the inside out, and which of their statements it is in."""
    path = source.statements.path(offset)
    for block, part in zip(path[-2::-1], path[:0:-1], strict=True):
        if block.form is Form.BLOCK:
            yield block, block.parts.index(part)
