"""Whether no two agents touch one byte: all their stretches of bytes looked at together.

In order of their first bytes, stretches of one agent that follow one another are one run. Two agents share
a byte where a run begins before all runs ahead of it have ended: the one that ends last is another agent's,
or another agent's run begins in it.
"""

from __future__ import annotations

import numpy as np

from cuda_lsp.static.execution.values import Flags, Lanes


def owned(low: Lanes, high: Lanes, agent: Lanes) -> bool:
    """Stretches ``low <= byte < high`` of different agents are apart; none of them is empty."""
    if len(low) == 0:
        return True
    order = np.argsort(low, kind="stable")
    low, high, agent = low[order], high[order], agent[order]
    begins: Flags = np.concatenate(([False], agent[1:] != agent[:-1]))
    ended = np.maximum.accumulate(high)
    return not bool((low[1:] < ended[:-1])[begins[1:]].any())
