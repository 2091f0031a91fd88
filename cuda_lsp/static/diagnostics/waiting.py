"""Locks, and flags that threads wait for: where what memory holds may order one thread behind another.

What such loops order is not followed; accesses that they may order are not decided. A lock is taken by a
compare-and-swap or exchange in a loop, and given back by any other store or atomic to its array. A thread
waits in a loop that stores nothing, counts nothing, and ends when one place of memory that the kernel writes
holds the right thing.
"""

from __future__ import annotations

import numpy as np

from cuda_lsp.ir.program import (
    Array,
    Assign,
    Atomic,
    Barrier,
    BarrierScope,
    Copy,
    Expr,
    If,
    Leave,
    Load,
    Loop,
    Stmt,
    Store,
)
from cuda_lsp.ir.walk import assigned, used, variables, walk
from cuda_lsp.static.execution.trace import Access, LockEvent, Path
from cuda_lsp.static.execution.values import Flags
from cuda_lsp.static.slicing import Slice, tracked

_WARP = (BarrierScope.WARP, BarrierScope.TILE, BarrierScope.COALESCED)


def find(facts: Slice) -> None:
    """Adds to ``facts`` where locks are taken, their arrays, and the loops that wait."""
    for loop in facts.statements:
        if not isinstance(loop, Loop):
            continue
        inside = list(walk(loop.test + loop.body + loop.step))
        for s in inside:
            if _takes_lock(facts, s):
                assert isinstance(s, Atomic)
                facts.acquiring.add(id(s))
                facts.lock_arrays |= facts.roots(s.pointer)
        if _waits(facts, loop, inside):
            facts.waiting.add(id(loop))


def _takes_lock(facts: Slice, s: Stmt) -> bool:
    if not isinstance(s, Atomic) or s.var is None or s.var.id not in facts.relevant:
        return False
    return s.row.swaps


def _waits(facts: Slice, loop: Loop, inside: list[Stmt]) -> bool:
    if any(isinstance(s, (Store, Copy)) or (isinstance(s, Barrier) and s.scope not in _WARP) for s in inside):
        return False
    if any(isinstance(s, Atomic) and not s.only_reads for s in inside):
        return False
    changing = {v.id for s in inside if (v := assigned(s)) is not None}
    needed = _deciding(loop, inside)
    counted = (s for s in inside if isinstance(s, Assign) and s.var.id in needed)
    if any(v.id == s.var.id for s in counted for v in variables(s.value)):
        return False  # it ends by itself
    for s in inside:
        if not isinstance(s, (Load, Atomic)) or s.var is None or s.var.id not in needed:
            continue
        roots = facts.roots(s.pointer)
        fixed = all(v.id not in changing for v in variables(s.pointer))
        if fixed and (not roots or any(tracked(facts, a) for a in roots)):
            return True
    return False


def _deciding(loop: Loop, inside: list[Stmt]) -> set[int]:
    """Variables that decide whether the loop goes on."""
    pending: list[Expr] = [loop.condition]
    ways_out = (
        s
        for s in inside
        if isinstance(s, If) and any(isinstance(e, Leave) and e.label == loop.label for e in walk((s,)))
    )
    pending += (s.condition for s in ways_out)
    needed: set[int] = set()
    while pending:
        for v in variables(pending.pop()):
            if v.id in needed:
                continue
            needed.add(v.id)
            pending += [e for s in inside if isinstance(s, Assign) and s.var.id == v.id for e in used(s)]
    return needed


# ------------------------------------------------------------------------------- in an execution


def lock_held(path: Path, a: Access, between_blocks: bool) -> LockEvent | None:
    """A lock that may have been taken before ``a`` and not been given back."""
    held: dict[Array, LockEvent] = {}
    for event in path.locks:
        if event.sequence >= a.sequence:
            break
        if event.takes:
            held[event.array] = event
        elif event.array in held and not (_lanes(a.may) & ~event.must).any():
            del held[event.array]
    found = (e for e in held.values() if between_blocks or e.clock == a.clock)
    return next(found, None)


def may_order(path: Path, a: Access, b: Access, between_blocks: bool) -> str | None:
    """What may order two accesses by what memory holds, for people."""
    first, second = (lock_held(path, x, between_blocks) for x in (a, b))
    if first is not None and second is not None:
        return f"a lock taken in the loop of line {first.line}"
    late = max(a.sequence, b.sequence)
    return next((f"what the loop of line {line} waits for" for at, line in path.waits if at < late), None)


def _lanes(flags: Flags) -> Flags:
    return np.asarray(np.reshape(flags, (-1, flags.shape[-1])).any(axis=0))
