"""What every device does around a launch: keep to its share of memory, wait, catch what the kernel prints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from attrs import define

from cuda_lsp.dynamic.gpu.device import TooMuchMemory

SHARE = 0.75  # of the free memory: what may be used when nobody says how much


@define
class Allowance:
    """Bytes of the device's memory that may be used, and those that are."""

    limit: int
    used: int = 0

    def allow(self, limit: int, free: int) -> None:
        """So many bytes; 0: most of those that the driver says are ``free`` and those used here."""
        self.limit = limit or int(SHARE * (free + self.used))

    def left(self, free: int) -> int:
        """Of the bytes that the driver says are ``free``."""
        return min(free, self.limit - self.used)

    def check(self, size: int) -> None:
        """Raises TooMuchMemory."""
        if self.used + size > self.limit:
            raise TooMuchMemory(
                f"the launch needs more than {self.limit >> 20} MiB of the GPU's memory: raise gpu-memory, or"
                " try a smaller launch"
            )


def comes(has_come: Callable[[], bool], seconds: float) -> bool:
    """Whether something comes in time."""
    limit, pause = time.monotonic() + seconds, 20e-6
    while not has_come():
        if time.monotonic() > limit:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 5e-3)
    return True


@define
class Output:
    """What was printed, once it is over."""

    text: str = ""


@contextmanager
def captured_output() -> Generator[Output]:
    """What the process writes to its standard output meanwhile: the driver prints for the kernel there."""
    output = Output()
    with os.fdopen(os.memfd_create("kernel-output"), "w+b") as file:
        saved = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield output
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            output.text = file.read().decode(errors="replace")
