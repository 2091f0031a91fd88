"""How much slower this machine is, now, than those that the tests' bars of time were set on."""

from __future__ import annotations

import time

_ROUNDS = 1_000_000
_USUAL_S = 0.03
"""Of the processor, for so many rounds of the loop below, where nothing else runs (Python 3.11)."""


def slowness() -> float:
    """Times the usual time, at least 1; a machine that others use may be three times as slow."""
    begun = time.process_time()
    total = 0
    for number in range(_ROUNDS):
        total += number
    return max(1.0, (time.process_time() - begun) / _USUAL_S)
