"""Bank conflicts in arrays of several dimensions: rows that begin at other banks, or permuted columns.

A pad column moves each row by a bank; where shared memory is short, the exclusive or of column and row does
the same without a byte (rows of a power of two only). Both need every use of the array to be a whole
subscript: through a pointer, rows would not be where they are looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.arrays import Extent, SharedArray, constant, shared_array
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source

_PADS = (1, 2, 4)


def padding(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Another layout of the array, everywhere."""
    del report
    if finding.code is not Code.BANK_CONFLICT or not source.has(finding.site.range):
        return
    array = shared_array(source, source.extent(finding.site.range))
    if array is None or not array.subscripted or len(array.extents) < 2:
        return
    saved = f" ({finding.bank.wavefronts} → {finding.bank.ideal} wavefronts" if finding.bank else " ("
    start, end = array.extents[-1]
    written = source.text[start:end]
    for pad in _PADS:
        text = f" + {pad}" if re.fullmatch(r"[\w\s+*]+", written) else f") + {pad}"
        opening = [Edit(start, start, "(")] if text.startswith(")") else []
        title = f"Pad the rows of {array.name} by {pad}{saved}{_bytes(source, array, pad)})"
        yield Candidate(RepairKind.PADDING, title, (*opening, Edit(end, end, text)))
    columns = constant(source, written)
    if columns and columns & (columns - 1) == 0:
        edits = tuple(_permuted(source, use, written.strip()) for use in array.uses)
        yield Candidate(
            RepairKind.SWIZZLE, f"Permute the columns of {array.name}{saved}, no more memory)", edits
        )


def _bytes(source: Source, array: SharedArray, pad: int) -> str:
    """What a pad costs, as far as the text tells."""
    rows = 1
    for start, end in array.extents[:-1]:
        extent = constant(source, source.text[start:end])
        if extent is None:
            return ""
        rows *= extent
    return f", {rows * pad * array.element} bytes more" if array.element else ""


def _permuted(source: Source, subscripts: tuple[Extent, ...], columns: str) -> Edit:
    """The last subscript of one use."""
    row, column = (source.text[slice(*subscript)].strip() for subscript in subscripts[-2:])
    return Edit(*subscripts[-1], f"({column}) ^ (({row}) % {columns})")
