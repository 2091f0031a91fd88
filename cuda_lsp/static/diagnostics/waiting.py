"""Locks and waits in an execution: where what memory holds may order one access behind another."""

from __future__ import annotations

import numpy as np

from cuda_lsp.ir.program import Array
from cuda_lsp.static.execution.trace import Access, LockEvent, Path
from cuda_lsp.static.execution.values import Flags


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
