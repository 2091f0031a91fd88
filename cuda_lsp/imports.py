"""Imports at the start of a process, without looking for rubbish among what they make."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importing() -> Generator[None]:
    """While modules are imported nothing is collected, and what they made is not looked at again.

    All of it stays: to search it again and again is a tenth of what imports take. For processes of our own.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
