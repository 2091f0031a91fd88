"""Whether this thread's processor time has come to a moment, for who asks at every step.

To ask the system for it takes a microsecond, and some tens where system calls are watched; the ordinary
clock takes a twentieth. No thread uses more time than passes, so the system is asked only when the moment
may have come.
"""

from __future__ import annotations

import math
import threading
import time


class _Seen(threading.local):
    """When the system was asked last, by the ordinary clock, and what it said."""

    at: float = -math.inf
    own: float = 0.0


_SEEN = _Seen()


def passed(until: float) -> bool:
    """Whether ``time.thread_time()`` is behind ``until``."""
    now = time.perf_counter()
    if _SEEN.own + (now - _SEEN.at) <= until:
        return False
    _SEEN.at, _SEEN.own = now, time.thread_time()
    return _SEEN.own > until
