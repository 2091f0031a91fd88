"""Can two accesses meet when an address depends on data?  Only "no" and "perhaps, because …".

"No" needs a reason: the two addresses come from one counter that never hands out a number twice, their
bounds never overlap for different threads, or one thread alone executes both.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.owned_stretches import owned
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Flags, Lanes, Spread, Ticket, bounds_of


def data_collision(
    a: Access, b: Access, lanes: slice, agent: Lanes, between_blocks: bool, trace: Trace
) -> Data | None:
    """The unknown that decides whether ``a`` and ``b`` collide; None: they cannot."""
    unknown = next(x.offset for x in (a, b) if isinstance(x.offset, Data))
    active_a, active_b = _active(a, lanes), _active(b, lanes)
    if not active_a.any() or not active_b.any():
        return None
    agents_a, agents_b = set(agent[active_a].tolist()), set(agent[active_b].tolist())
    if len(agents_a | agents_b) < 2:
        return None
    if _distinct(a, b, Spread.GRID if between_blocks else Spread.BLOCK):
        return None
    if _apart(a, b, lanes, agent, active_a, active_b):
        return None
    weak = [x for x in (a.offset, b.offset, a.doubt, b.doubt) if isinstance(x, Data) and x.weak]
    return weak[0] if weak else unknown


def all_apart(accesses: Iterable[Access], lanes: slice, agent: Lanes) -> bool:
    """By the bounds of their addresses no two agents touch one byte, in whichever of these accesses."""
    ranges: list[tuple[Lanes, Lanes, Lanes]] = []
    for access in accesses:
        found = _range(access, lanes, agent, _active(access, lanes))
        if found is None:
            return False
        ranges.append(found)
    low, high, agents = (np.concatenate(parts) for parts in zip(*ranges, strict=True))
    return owned(low, high, agents)


def _active(a: Access, lanes: slice) -> Flags:
    """Lanes of the stretch that may execute ``a`` in some round."""
    may = a.may[..., lanes]
    return np.asarray(np.reshape(may, (-1, may.shape[-1])).any(axis=0))


def _ticket(a: Access) -> Ticket | None:
    return a.offset.ticket if isinstance(a.offset, Data) else None


def _distinct(a: Access, b: Access, within: Spread) -> bool:
    """Both addresses are drawn from one counter, far enough apart."""
    one, other = _ticket(a), _ticket(b)
    if one is None or other is None or one.within < within:
        return False
    if within is Spread.BLOCK and (one.by_block or other.by_block):
        return False
    same = one.family == other.family and one.base == other.base
    return same and min(one.gap, other.gap) >= max(a.size, b.size)


def _apart(a: Access, b: Access, lanes: slice, agent: Lanes, active_a: Flags, active_b: Flags) -> bool:
    """The byte ranges of different agents never overlap, by their bounds."""
    ranges: list[tuple[Lanes, Lanes, Lanes]] = []
    for access, active in ((a, active_a), (b, active_b)):
        found = _range(access, lanes, agent, active)
        if found is None:
            return False
        ranges.append(found)
    (low_a, high_a, agent_a), (low_b, high_b, agent_b) = ranges
    if len(low_a) > budgets.MOST_COMPARED_LANES or len(low_b) > budgets.MOST_COMPARED_LANES:
        return bool(low_a.min() >= high_b.max() or low_b.min() >= high_a.max())
    overlap = (low_a[:, None] < high_b) & (low_b < high_a[:, None]) & (agent_a[:, None] != agent_b)
    return not overlap.any()


def _range(access: Access, lanes: slice, agent: Lanes, active: Flags) -> tuple[Lanes, Lanes, Lanes] | None:
    """The bytes that each active lane may touch, from and to, and whose they are; None: nobody knows."""
    low, high = bounds_of(access.offset)
    if low is None or high is None:
        return None
    low, high = np.asarray(low, np.int64), np.asarray(high, np.int64)
    if max(low.ndim, high.ndim) > 1:
        return None
    shape = access.may.shape[-1:]
    first = np.broadcast_to(low, shape)[lanes][active]
    return first, np.broadcast_to(high, shape)[lanes][active] + access.size, agent[active]
