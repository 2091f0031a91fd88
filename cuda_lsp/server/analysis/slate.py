"""A page of memory that the analysis process writes and the server reads: what it is at, at this moment.

Writing costs no message, and what stands there outlives a crash.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import threading
from collections.abc import Generator

_RECEIVED, _AT, _TURN, _THREAD = range(4)


class Slate:
    """Whole numbers in shared memory; each is written at once."""

    def __init__(self, descriptor: int) -> None:
        self._page = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE)).cast("Q")

    @staticmethod
    def file() -> int:
        """A new file for a slate; its descriptor is the caller's to close."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("cuda-lsp", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as unnamed:
                descriptor = os.dup(unnamed.fileno())
        os.write(descriptor, bytes(mmap.PAGESIZE))
        return descriptor

    def received(self, number: int) -> None:
        """This message was taken."""
        self._page[_RECEIVED] = number

    @contextlib.contextmanager
    def at(self, number: int) -> Generator[None]:
        """While the calling thread works on the text of this message."""
        self._page[_THREAD] = threading.get_native_id()
        self._page[_TURN] += 1
        self._page[_AT] = number
        try:
            yield
        finally:
            self._page[_AT] = 0

    @property
    def last(self) -> int:
        """The last message that was taken; 0: none yet."""
        return self._page[_RECEIVED]

    @property
    def text(self) -> int:
        """The message with the text that is worked on; 0: none."""
        return self._page[_AT]

    @property
    def turn(self) -> int:
        """Counts pieces of work."""
        return self._page[_TURN]

    @property
    def thread(self) -> int:
        """The system's number of the thread that works; 0: nothing was done yet."""
        return self._page[_THREAD]
