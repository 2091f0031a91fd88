"""An index that is larger than 32 bits hold, computed in 64."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import RACES, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source

_NARROW = re.compile(
    r"(?<![\w:])(?:unsigned\sint|unsigned|int|uint32_t|int32_t|uint|size_t)\b(?=\s{1,9}\w{1,60}\s{0,9}=[^;,]{0,300};)"
)
_BLOCK = re.compile(r"\bblockIdx\.[xyz]\b")


def wide_indices(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Numbers of elements that blocks are multiplied into, as ``size_t``."""
    del report
    if finding.code not in RACES or not source.here(finding) or not _is_large(finding):
        return
    path = source.statements.path(source.offset(finding.site.range.start))
    if not path:
        return
    edits: list[Edit] = []
    for match in _NARROW.finditer(source.plain, path[0].start, path[0].end):
        end = source.plain.index(";", match.end())
        blocks = list(_BLOCK.finditer(source.plain, match.end(), end))
        if blocks and re.search(r"[*]|<<", source.plain[match.end() : end]):
            edits.append(Edit(match.start(), match.end(), "size_t"))
            edits += [Edit(block.start(), block.start(), "(size_t)") for block in blocks]
    if edits:
        yield Candidate(RepairKind.WIDE_INDEX, "Compute the index in 64 bits", tuple(edits))


def _is_large(finding: Finding) -> bool:
    """Whether the launch, or what is far apart in it, may have more elements than 31 bits count."""
    witness = finding.witness
    blocks = [*witness.blocks] if witness is not None and witness.blocks is not None else []
    return any(max(block) >= 1 << 12 for block in blocks)
