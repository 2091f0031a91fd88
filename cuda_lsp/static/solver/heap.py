"""What Z3 gives back is kept for its next question: from the system it would come anew, page by page.

Each question has a context of its own (``Encoder.context``), which begins with pieces of some megabytes. The
C library takes pieces so large from the system and returns them at once; to clear their pages again took a
sixth of the processor's time of a check.
"""

from __future__ import annotations

import ctypes
import functools

from cuda_lsp.static import budgets

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of glibc's ``mallopt``."""


@functools.cache
def keep_memory() -> None:
    """From now on this process, and what it forks, returns memory to the system only when much is free."""
    try:
        choose = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library: it decides by itself
        return
    choose(_MMAP_THRESHOLD, budgets.LARGE_PIECE)
    choose(_TRIM_THRESHOLD, budgets.KEPT_FREE)
