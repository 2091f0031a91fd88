"""Strides and bounds that are often mistaken: how far blocks are apart, and where loops go on and end.

``blockIdx.x * F`` next to ``threadIdx.x`` is the block's size, a loop that begins at the thread's number in
the grid goes on by all threads of the grid, and ``<=`` is one element more than ``<``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import RACES, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.elements import names_around
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_OF_BLOCKS = re.compile(r"\bblockIdx\.([xyz])\s*\*\s*(\d+|blockDim\.[xyz])(?!\s*[\w.(\[])")
_STEP = re.compile(r"\+=\s*(blockDim\.([xyz]))\s*$")
_AT_MOST = re.compile(r"(?<![<>])<=(?!>)")
_MOST = 4  # factors


def strides(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Corrections of what the accesses of a race hang on."""
    del report
    if finding.code not in RACES or not source.here(finding):
        return
    paths = [
        source.statements.path(source.offset(site.range.start))
        for site in (finding.site, *(related.site for related in finding.related[:1]))
    ]
    if not all(paths):
        return
    around = list(dict.fromkeys(statement for path in paths for statement in path if statement.head))
    yield from _steps(source, around)
    yield from _bounds(source, around)
    if finding.witness is not None and finding.witness.blocks is not None:
        yield from _block_sizes(source, paths[0][0])


def _steps(source: Source, around: list[Statement]) -> Iterator[Candidate]:
    """Loops over the grid that go on by one block."""
    for loop in around:
        assert loop.head is not None
        head = source.plain[loop.head[0] + 1 : loop.head[1] - 1]
        step = _STEP.search(head.rstrip())
        names = names_around(source, loop.start)
        if loop.form is Form.LOOP and step and names:
            axis = step[2]
            if f"blockIdx.{axis}" in names.origins(head.split(";")[0].partition("=")[2]).ids:
                at = loop.head[0] + 1 + step.end(1)
                line = source.position(loop.start).line
                title = f"Let the loop of line {line} go on by all threads of the grid"
                yield Candidate(
                    RepairKind.STRIDE, title, (Edit(at, at, f" * gridDim.{axis}"),), keeps_meaning=False
                )


def _bounds(source: Source, around: list[Statement]) -> Iterator[Candidate]:
    """``<`` for ``<=``."""
    for statement in reversed(around):
        assert statement.head is not None
        for match in _AT_MOST.finditer(source.plain, *statement.head):
            line = source.position(match.start()).line
            edits, title = (Edit(match.start(), match.end(), "<"),), f"End one element earlier on line {line}"
            yield Candidate(RepairKind.STRIDE, title, edits, keeps_meaning=False)


def _block_sizes(source: Source, function: Statement) -> Iterator[Candidate]:
    """Blocks that are as far apart as they are wide, all at once or one factor alone."""
    found: dict[tuple[str, str], list[Edit]] = {}
    for match in _OF_BLOCKS.finditer(source.plain, function.start, function.end):
        if match[2] != f"blockDim.{match[1]}":
            found.setdefault((match[1], match[2]), []).append(
                Edit(match.start(2), match.end(2), f"blockDim.{match[1]}")
            )
    for (axis, factor), edits in list(found.items())[:_MOST]:
        title = f"Take blockDim.{axis} for {factor} as the distance of blocks"
        yield Candidate(RepairKind.STRIDE, title, tuple(edits), keeps_meaning=False)
    if len(found) > 1:
        every = tuple(edit for edits in found.values() for edit in edits)
        title = "Take the blocks' sizes as their distances"
        yield Candidate(RepairKind.STRIDE, title, every, keeps_meaning=False)
