"""Shared memory used wrongly: indices outside the array, and elements read that nobody has written.

Only accesses that surely happen are judged, at addresses that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cuda_lsp.ir.program import STRETCH, Incomplete, Loop
from cuda_lsp.ir.walk import accesses, inside, walk
from cuda_lsp.model import Code, Space, Status, Witness
from cuda_lsp.static.diagnostics.ranks import from_first_rank
from cuda_lsp.static.execution.trace import Access, Path, Trace, array_bytes, spread_out
from cuda_lsp.static.execution.values import Data, Flags, Lanes
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis

_MAX_BYTES = 1 << 20


def bounds_findings(trace: Trace) -> tuple[Diagnosis, ...]:
    """``shared-out-of-bounds``: one per access site."""
    found: dict[object, Diagnosis] = {}
    partly = any(isinstance(s, Incomplete) and not s.harmless for s in walk(trace.kernel.body))
    for path in trace.paths:
        for a in {a.signature: a for a in path.accesses}.values():
            size = array_bytes(a.array, trace.launch)
            if partly and a.array.dynamic and not size:
                continue  # what was not translated may be what it lies over
            if a.array.space is not Space.SHARED or isinstance(a.offset, Data) or size is None:
                continue
            if a.site.range not in found:
                offset = spread_out(a.offset, a.must.shape)
                nowhere = np.zeros(a.must.shape, bool)
                if a.array in trace.reached:
                    offset, nowhere = _in_whichever_block(trace, a)
                outside = a.must & (nowhere | (offset < 0) | (offset + a.size > size))
                if outside.any():
                    leaves = _diagnosis(
                        Code.SHARED_OUT_OF_BOUNDS, Status.PROVED, trace, a, offset, outside,
                        partial(_leaves, a, None if bool((outside & nowhere).any()) else size),
                    )  # fmt: skip
                    if path.choices and a.decided:
                        leaves = _up_to(leaves, path.choices[a.decided - 1][1])
                    found[a.site.range] = leaves
    return tuple(found.values())


def _up_to(found: Diagnosis, reason: str) -> Diagnosis:
    """It hangs on how a condition comes out, of which nobody knows."""
    return found.doubted(OnData(reason, in_story=False))


def leaves_arrays(trace: Trace) -> bool:
    """Some thread surely accesses shared memory outside the array."""
    return any(finding.status is Status.PROVED for finding in bounds_findings(trace))


def misuses_arrays(trace: Trace) -> bool:
    """Some thread surely leaves a shared array, or reads what no thread has written there."""
    return leaves_arrays(trace) or any(f.status is Status.PROVED for f in uninitialised_findings(trace))


def uninitialised_findings(trace: Trace) -> tuple[Diagnosis, ...]:
    """``shared-uninitialised``: reads of shared bytes that no access before them may have written."""
    found: dict[object, Diagnosis] = {}
    for path in trace.paths:
        if not path.orders:  # barriers of some threads: what is executed first need not come first
            _read_before_write(trace, path, found)
    if found and any(isinstance(s, Incomplete) and not s.harmless for s in walk(trace.kernel.body)):
        return ()  # what was not translated may write anything
    return tuple(found.values())


def _read_before_write(trace: Trace, path: Path, found: dict[object, Diagnosis]) -> None:
    written: dict[int, Flags] = {}
    blind = (
        path.blind
        | {a.id for a in trace.reached}
        | {a.array.id for a in path.accesses if a.mode.writes and isinstance(a.offset, Data)}
        | (_filled_by_rounds(trace, path) if path.cut else set[int]())
    )
    volatile = {a.array.id for a in path.accesses if a.copied}
    rounds = _writes_by_rounds(path)
    seen: set[object] = set()
    for a in path.accesses:
        if (a.signature, a.mode) in seen:  # what is written stays written
            continue
        seen.add((a.signature, a.mode))
        if a.array.space is not Space.SHARED or a.array.id in blind | volatile or isinstance(a.offset, Data):
            continue
        size = max(0, array_bytes(a.array, trace.launch) or int(np.max(a.offset, initial=0)) + a.size)
        known = written.get(a.array.id)
        if known is None or len(known) < min(size, _MAX_BYTES):
            grown = np.zeros(min(size, _MAX_BYTES), bool)
            grown[: 0 if known is None else len(known)] = False if known is None else known
            known = written[a.array.id] = grown
        lanes = slice(0, trace.threads)
        if a.mode.writes:
            _note_written(trace, a, known)
        elif a.site.range not in found and len(known):
            offset = spread_out(a.offset, a.may.shape)[..., lanes]
            active = a.must[..., lanes] & (offset >= 0) & (offset + a.size <= len(known))
            fresh = active & ~known[np.where(active, offset, 0)]
            if together := _together(a):  # an earlier round may have written what a later one reads
                for b in (b for loop in together for b in rounds.pop((loop, a.array.id), ())):
                    _note_written(trace, b, known)
                later = slice(1 if len(together) == 1 else 0, None)
                fresh[later] &= ~known[np.where(active, offset, 0)][later]
            if fresh.any():
                code, story = Code.SHARED_UNINITIALISED, partial(_reads, a)
                found[a.site.range] = _diagnosis(code, Status.PROVED, trace, a, offset, fresh, story)


def _note_written(trace: Trace, a: Access, known: Flags) -> None:
    """``known``: the bytes of its array that something may have written."""
    assert not isinstance(a.offset, Data)
    lanes = slice(0, trace.threads)
    start = spread_out(a.offset, a.may.shape)[..., lanes][a.may[..., lanes]]
    for i in range(a.size):
        inside = start + i
        known[inside[(inside >= 0) & (inside < len(known))]] = True


def _writes_by_rounds(path: Path) -> dict[tuple[int, int], list[Access]]:
    """The writes within loops whose rounds are walked as one, by such a loop and the array."""
    found: dict[tuple[int, int], list[Access]] = {}
    for a in path.accesses:
        if a.mode.writes and a.array.space is Space.SHARED and not isinstance(a.offset, Data):
            for together in _together(a):
                found.setdefault((together, a.array.id), []).append(a)
    return found


def _together(a: Access) -> tuple[int, ...]:
    """The loops around it whose rounds it stands for all at once, each by what its counter counts."""
    return tuple(id(v) for _, v in a.loops if isinstance(v, np.ndarray) and v.ndim > 1)


def _filled_by_rounds(trace: Trace, path: Path) -> set[int]:
    """Arrays, by id, that loops write to: later rounds of one left early may write the rest."""
    loops = (s for s in walk(trace.kernel.body) if isinstance(s, Loop))
    repeated = {site.range for loop in loops for s in inside(loop) for _, _, site in accesses(s)}
    return {a.array.id for a in path.accesses if a.mode.writes and a.site.range in repeated}


def _in_whichever_block(trace: Trace, a: Access) -> tuple[Lanes, Flags]:
    """Where in a block's memory the lanes are, and whether their cluster has no such block."""
    (moved,) = from_first_rank(trace, [a])
    assert not isinstance(moved.offset, Data)
    offset = spread_out(moved.offset, a.must.shape) + STRETCH // 2
    rank = offset // STRETCH
    return offset % STRETCH - STRETCH // 2, (rank < 0) | (rank >= trace.together // trace.threads)


def _leaves(a: Access, size: int | None, thread: str, where: str) -> str:
    """``size`` None: it is in no block of the cluster."""
    if size is None:
        return f"{thread} {words.doing(a.mode, a.site)}: its cluster has no block of that rank"
    extent = size // max(a.array.element.size, 1)
    outside = f"{where} is outside its {extent} elements"
    return f"{thread} {words.doing(a.mode, a.site)}: {outside}"


def _reads(a: Access, thread: str, where: str) -> str:
    return f"{thread} reads {a.site.text or where}: no thread has written {where} before"


def _diagnosis(
    code: Code, status: Status, trace: Trace, a: Access, offset: Lanes, wrong: Flags,
    story: Callable[[str, str], str],
) -> Diagnosis:  # fmt: skip
    """Of the first lane that is ``wrong``; ``story`` of it and of the element that it reaches."""
    at = tuple(int(i[0]) for i in np.nonzero(wrong))
    thread, byte = trace.thread(at[-1]), int(offset[at])
    text = story(words.thread(thread), words.place(a.array, byte))
    witness = Witness((thread, thread), None, a.array.name, words.element(a.array, byte))
    return Diagnosis(code, status, text, trace.kernel.name, a.site, witness=witness, launch=trace.launch)
