"""Accesses whose addresses are no multiples of their size, at which the GPU ends the kernel.

CUDA C++ Programming Guide, device memory accesses: words of 1, 2, 4, 8 and 16 bytes have to be aligned.
Judged are accesses wider than the array's elements (``reinterpret_cast<float4*>``) that surely happen: where
two addresses differ by no multiple of the alignment, one is wrong, wherever the array begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import is_word
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Code, Mode, SourceRange, Status
from cuda_lsp.static.execution.trace import Path, Trace, spread_out
from cuda_lsp.static.execution.values import Data, Flags, Lanes
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.diagnosis import Diagnosis

Wide = ir.Load | ir.Store | ir.Atomic


@frozen(eq=False)
class _Done:
    """One execution of an access by the lanes that surely do it; offsets in bytes, ``(…, lanes)``."""

    statement: Wide
    mode: Mode
    array: Array
    offsets: Lanes
    lanes: Flags


def alignment_findings(trace: Trace) -> tuple[Diagnosis, ...]:
    """``misaligned-access``: one per access site."""
    wide = {s.site.range: s for s in walk(trace.kernel.body) if isinstance(s, Wide) and is_word(s.type)}
    first: dict[object, tuple[int, int]] = {}  # address and lane, by site and array
    found: dict[object, Diagnosis] = {}
    for done in (d for path in trace.paths for d in _done(path, wide)) if wide else ():
        place = done.statement.site.range
        offsets = np.broadcast_to(done.offsets, done.lanes.shape)[done.lanes]
        if place in found or not offsets.size:
            continue
        lanes = np.nonzero(done.lanes)[-1]
        byte, lane = first.setdefault((place, done.array.id), (int(offsets[0]), int(lanes[0])))
        apart = np.flatnonzero((offsets - byte) % done.statement.type.size)
        if apart.size:
            other = int(apart[0])
            found[place] = _misaligned(trace, done, int(offsets[other]) - byte, (int(lanes[other]), lane))
    return tuple(found.values())


def _done(path: Path, wide: Mapping[SourceRange, Wide]) -> Iterator[_Done]:
    if not path.choices:
        for load, array, offset, lanes in path.reads.values():
            if load.site.range in wide and _reinterpreted(load, array):
                yield _Done(load, Mode.READ, array, spread_out(offset, lanes.shape), lanes)
    for a in path.accesses:
        statement = wide.get(a.site.range)
        if statement is None or isinstance(a.offset, Data) or (path.choices and a.decided):
            continue
        if _reinterpreted(statement, a.array) and a.size == statement.type.size:
            yield _Done(statement, a.mode, a.array, spread_out(a.offset, a.must.shape), a.must)


def _reinterpreted(s: Wide, array: Array) -> bool:
    """It touches several elements, so it is no member of a packed record."""
    return s.type.size > array.element.size and not array.surface


def _misaligned(trace: Trace, done: _Done, apart: int, lanes: tuple[int, int]) -> Diagnosis:
    late, early = (words.thread(trace.thread(lane), trace.block(lane)) for lane in lanes)
    if trace.block(lanes[0]) == trace.block(lanes[1]):
        late, early = (words.thread(trace.thread(lane)) for lane in lanes)
    s = done.statement
    distance = "1 byte" if abs(apart) == 1 else f"{abs(apart)} bytes"
    direction = "behind" if apart > 0 else "before"
    return Diagnosis(
        Code.MISALIGNED_ACCESS, Status.PROVED,
        f"{late} {words.doing(done.mode, s.site)} {distance} {direction} {early}: "
        f"one of the two addresses is no multiple of {s.type.size}, as {s.type} needs",
        trace.kernel.name, s.site, launch=trace.launch,
    )  # fmt: skip
