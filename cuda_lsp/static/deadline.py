"""Whether this thread's processor time has come to a moment, for who asks at every step.

To ask the system for it takes a microsecond, and some tens where system calls are watched; the ordinary
clock takes a twentieth. No thread uses more time than passes, so the system is asked only when the moment
may have come.

Work that nobody waits for is done between two keystrokes, and ends when there is another one (``yielding``).
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Generator


class _Seen(threading.local):
    """When the system was asked last, by the ordinary clock, and what it said; see ``yielding``."""

    at: float = -math.inf
    own: float = 0.0
    wanted: Callable[[], bool] | None = None


_SEEN = _Seen()


@contextlib.contextmanager
def yielding(wanted: Callable[[], bool]) -> Generator[None]:
    """Within, each moment of this thread has passed once it is ``wanted`` elsewhere."""
    _SEEN.wanted = wanted
    try:
        yield
    finally:
        _SEEN.wanted = None


def interrupted() -> bool:
    """Whether this thread is wanted elsewhere: what it has found may be a part."""
    return _SEEN.wanted is not None and _SEEN.wanted()


def passed(until: float) -> bool:
    """Whether ``time.thread_time()`` is behind ``until``, or this thread ``interrupted``."""
    if interrupted():
        return True
    now = time.perf_counter()
    if _SEEN.own + (now - _SEEN.at) <= until:
        return False
    _SEEN.at, _SEEN.own = now, time.thread_time()
    return _SEEN.own > until
