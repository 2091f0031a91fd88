"""A suggestion for loops over tiles: two buffers in turns, so that one barrier a round is enough.

A round ends with a barrier because the next one overwrites what others still read. With two buffers it writes
where nobody reads, and the barrier of the next round comes before the one after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.arrays import SharedArray, constant, shared_array
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.insertion import before, removed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import unused

_BARRIER = re.compile(r"__syncthreads\s*\(\s*\)\s*;")
_ROUND = re.compile(r"\(.*;\s*(?:\+\+\s*(\w+)|(\w+)\s*\+\+)\s*\)", re.DOTALL)
_DECLARED = re.compile(r"__shared__\b[^;{}=]{0,400};")
_NAMES = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s{0,9}\[")


def double_buffers(source: Source, report: FileReport, offset: int) -> Iterator[Candidate]:
    """For the barrier at ``offset``, when it is the last of its loop, in a kernel that is race-free."""
    line = source.position(offset).line
    path = source.statements.path(offset)
    free = any(k.verdict is Verdict.RACE_FREE and k.range.has_line(line) for k in report.kernels)
    if not free or len(path) < 4 or not _BARRIER.fullmatch(source.plain, path[-1].start, path[-1].end):
        return
    barrier, body, loop, around = path[-1], path[-2], path[-3], path[-4]
    is_last = loop.form is Form.LOOP and body.parts[-1:] == [barrier] and around.form is Form.BLOCK
    first = any(_BARRIER.fullmatch(source.plain, part.start, part.end) for part in body.parts[:-1])
    arrays = list(_arrays(source, path[0], loop)) if is_last and first else []
    if not arrays:
        return
    counter = _ROUND.fullmatch(source.plain, *loop.head) if loop.head else None
    names = " and ".join(array.name for array in arrays)
    title = f"Double-buffer {names}: one barrier a round is enough{_bytes(source, arrays)}"
    if counter:
        index = f"{counter[1] or counter[2]} & 1"
        edits = (*_in_turns(arrays, index), *removed(source, barrier))
        yield Candidate(RepairKind.DOUBLE_BUFFER, title, edits)
    name = unused("buffer", source.plain)
    turned = Edit(barrier.start, barrier.end, f"{name} ^= 1;")
    edits = (*_in_turns(arrays, name), *before(source, loop, f"int {name} = 0;"), turned)
    yield Candidate(RepairKind.DOUBLE_BUFFER, title, edits)


def _arrays(source: Source, function: Statement, loop: Statement) -> Iterator[SharedArray]:
    """Those of the function that only this loop uses, element by element."""
    for declaration in _DECLARED.finditer(source.plain, function.start, loop.start):
        for name in _NAMES.findall(declaration[0]):
            use = re.compile(rf"(?<![\w.])(?<!->){name}\s*\[").search(source.plain, loop.start, loop.end)
            array = shared_array(source, (use.start(), use.end())) if use else None
            uses = [part[0][0] for part in array.uses if part] if array else []
            if array and array.subscripted and uses and all(loop.around(at) for at in uses):
                yield array


def _in_turns(arrays: list[SharedArray], index: str) -> Iterator[Edit]:
    for array in arrays:
        opening = array.extents[0][0] - 1
        yield Edit(opening, opening, "[2]")
        for use in array.uses:
            yield Edit(use[0][0] - 1, use[0][0] - 1, f"[{index}]")


def _bytes(source: Source, arrays: list[SharedArray]) -> str:
    """What it costs, as far as the text tells."""
    total = 0
    for array in arrays:
        extents = [constant(source, source.text[slice(*extent)]) for extent in array.extents]
        if array.element is None or None in extents:
            return ""
        total += array.element * math.prod(extent for extent in extents if extent)
    return f" ({total} bytes of shared memory more)"
