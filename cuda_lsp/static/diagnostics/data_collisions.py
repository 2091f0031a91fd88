"""Can two accesses meet when an address depends on data?  Only "no" and "perhaps, because …".

"No" needs a reason: the two addresses come from one counter that never hands out a number twice, their
bounds never overlap for different threads, or one thread alone executes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from attrs import frozen

from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.owned_stretches import owned
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Flags, Lanes, Spread, Ticket, bounds_of


@frozen(eq=False)
class Reach:
    """What one access may touch in a stretch of lanes, of those that may execute it.

    ``agent``: whose each lane is; ``low``, ``high``: bytes from and to, of each lane (None: nobody knows);
    ``first``, ``last``: the same of all of them together.
    """

    agents: frozenset[int]
    agent: Lanes
    low: Lanes | None = None
    high: Lanes | None = None
    first: int = 0
    last: int = 0


def reach_of(access: Access, lanes: slice, agent: Lanes) -> Reach:
    active = _active(access, lanes)
    agents = frozenset(agent[active].tolist())
    found = _range(access, lanes, agent, active) if agents else None
    if found is None:
        return Reach(agents, agent[active])
    low, high, whose = found
    return Reach(agents, whose, low, high, int(low.min()), int(high.max()))


def reaches(lanes: slice, agent: Lanes) -> Callable[[Access], Reach]:
    """``reach_of``, each access once: it is in pairs with many places, and as many as a loop has rounds."""
    known: dict[int, Reach] = {}

    def reach(access: Access) -> Reach:
        if id(access) not in known:
            known[id(access)] = reach_of(access, lanes, agent)
        return known[id(access)]

    return reach


def data_collision(
    a: Access, b: Access, of_a: Reach, of_b: Reach, between_blocks: bool, trace: Trace
) -> Data | None:
    """The unknown that decides whether ``a`` and ``b`` collide; None: they cannot."""
    unknown = next(x.offset for x in (a, b) if isinstance(x.offset, Data))
    if not of_a.agents or not of_b.agents or len(of_a.agents | of_b.agents) < 2:
        return None
    if _distinct(a, b, Spread.GRID if between_blocks else Spread.BLOCK):
        return None
    if _apart(of_a, of_b):
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


def _apart(a: Reach, b: Reach) -> bool:
    """The byte ranges of different agents never overlap, by their bounds."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    if a.first >= b.last or b.first >= a.last:
        return True
    if max(len(a.low), len(b.low)) > budgets.MOST_COMPARED_LANES:
        return False
    overlap = (a.low[:, None] < b.high) & (b.low < a.high[:, None]) & (a.agent[:, None] != b.agent)
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
