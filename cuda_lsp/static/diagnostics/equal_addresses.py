"""Threads that surely meet at a place that nobody knows: ``out[index[blockIdx.x]] = threadIdx.x``.

What an address is made of may be unknown, and yet be one and the same for two threads
(``execution.equal_values``): whatever the contents, these two collide.
"""

from __future__ import annotations

import numpy as np

from cuda_lsp.model import Mode
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Flags, Lanes

Lane = int


def meeting(
    a: Access, b: Access, lanes: slice, agent: Lanes, between_blocks: bool, trace: Trace
) -> tuple[Lane, Lane] | None:
    """A lane of the trace for each access, of two agents, that surely touch one place; None: none is known.

    ``agent``: of each lane of ``lanes``. Of one warp only at one instruction: what orders its lanes is not
    looked at.
    """
    here, there = _places(a, lanes, trace), _places(b, lanes, trace)
    if here is None or there is None or a.size != b.size:
        return None
    step = 1 if between_blocks or a is b else trace.gpu.warp_size
    apart = agent // step
    best: tuple[Lane, Lane] | None = None
    for number in np.intersect1d(here[0], there[0]).tolist():
        mine, others = (lanes_of[places == number] for places, lanes_of in (here, there))
        for one, other in ((mine[0], others[-1]), (mine[-1], others[0])):
            if apart[one] != apart[other]:
                found = (int(one), int(other))
                best = min(best, found) if best is not None else found
    base = lanes.start or 0
    return (best[0] + base, best[1] + base) if best is not None else None


def same_value(a: Access, b: Access, met: tuple[Lane, Lane], trace: Trace) -> bool:
    """Whether both store, and one value."""
    if not a.mode is b.mode is Mode.WRITE or a.stored is None or b.stored is None:
        return False
    if not all(isinstance(access.stored, (int, np.ndarray, Data)) for access in (a, b)):
        return False
    one, other = (trace.equal.of(access.stored)[lane] for access, lane in zip((a, b), met, strict=True))  # type: ignore[arg-type]
    return bool(one == other)


def _places(access: Access, lanes: slice, trace: Trace) -> tuple[Lanes, Lanes] | None:
    """Numbers of the places that lanes surely touch, and these lanes, ``(n,)`` each."""
    if not isinstance(access.offset, Data) or access.must.ndim > 1 or access.offset.weak:
        return None  # of several rounds it is not known which two are of one
    active: Flags = access.must[lanes]
    return trace.equal.of(access.offset)[lanes][active], np.flatnonzero(active)
