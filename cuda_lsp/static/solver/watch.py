"""Ends questions of Z3 for which the processor has worked long enough.

Z3 counts its work in units that leave parts of it out (bit-blasting, preprocessing): a question may take a
hundred times the seconds that its units stand for. By the clock on the wall a busy machine would end what a
quiet one answers; the processor's time of this process is alike on both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from cuda_lsp.static import budgets


class Watch:
    """A thread that sleeps unless a question is being answered. One question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._context: Any = None
        self._until = 0.0
        self._thread: threading.Thread | None = None

    def _begin(self) -> None:
        self._lock, self._asked = threading.Lock(), threading.Event()  # a fork has them as they just were
        self._thread = threading.Thread(target=self._run, name="cuda-lsp-questions", daemon=True)
        self._thread.start()

    @contextmanager
    def over(self, context: Any, seconds: float) -> Generator[None]:
        """Interrupt the Z3 ``context`` when so many seconds of processor time are over."""
        if self._thread is None or not self._thread.is_alive():  # also in a fork of a process that had one
            self._begin()
        with self._lock:
            self._context, self._until = context, time.process_time() + seconds
        self._asked.set()
        try:
            yield
        finally:
            with self._lock:
                self._context = None
            self._asked.clear()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            with self._lock:
                if self._context is not None and time.process_time() > self._until:
                    self._context.interrupt()
            time.sleep(budgets.WATCH_S)


WATCH = Watch()
