"""Locks and waits in an execution: where what memory holds may order one access behind another."""

from __future__ import annotations

import numpy as np

from cuda_lsp.ir.program import Array, Kernel, Store
from cuda_lsp.model import Space
from cuda_lsp.static.data_flow import Accessed, DataFlow, data_flow
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


def may_be_told(kernel: Kernel, a: Access, b: Access) -> str | None:
    """What a flag that the kernel waits for elsewhere may have told before one of two accesses, if it did not
    read the flag itself; for people. Threads of one block pass what they find on in shared memory."""
    flow = data_flow(kernel)
    flags = _telling(flow) if flow.awaited else flow.awaited
    here = [x for access in (a, b) for x in flow.at(access.site.range)]
    if any((x.arrays & flow.awaited) or (flow.arrays_in(x.guard) & flags) for x in here):
        return f"what `{min(array.name for array in flow.awaited)}` tells, for which a loop waits"
    return None


def _telling(flow: DataFlow) -> frozenset[Array]:
    """The flags, and shared memory in which something that they say is kept."""
    found, before = flow.awaited, frozenset[Array]()
    while found != before:
        before = found
        found |= {array for x in flow.accesses for array in _kept_of(flow, x, before)}
    return found


def _kept_of(flow: DataFlow, x: Accessed, flags: frozenset[Array]) -> frozenset[Array]:
    if not x.mode.writes or any(array.space is not Space.SHARED for array in x.arrays):
        return frozenset()
    stores = (s for s in flow.slice.statements if isinstance(s, Store) and s.site.range == x.site.range)
    told = x.guard.union(*(flow.of(s.value) for s in stores))
    return x.arrays if flow.arrays_in(told) & flags else frozenset()


def _lanes(flags: Flags) -> Flags:
    return np.asarray(np.reshape(flags, (-1, flags.shape[-1])).any(axis=0))
