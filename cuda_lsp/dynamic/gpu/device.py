"""What a checked launch asks of the device that runs it: memory, code, a launch with a deadline.

``pycuda.py`` is the one for a real GPU. Anything else that executes PTX can stand in its place, so that
the instrumented kernel and what surrounds it are the same wherever they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, SupportsInt

from attrs import frozen

from cuda_lsp.dynamic.gpu.records import Records
from cuda_lsp.model import Dim3


class GridTooLarge(Exception):
    """The blocks of a cooperative launch do not fit on the device at once; the message says so."""


class TooMuchMemory(Exception):
    """The launch needs more of the device's memory than it may use; the message says how much."""


@frozen
class Start:
    """One launch. ``parameters``: alignment and value of each. ``shared``: dynamic shared memory, bytes.

    ``deadline``: seconds until the kernel counts as hung. ``rescue``: start and size of the memory to copy
    then. ``lead``: start and bytes of memory to clear first, so that the time holds no wait for the host.
    """

    entry: str
    grid: Dim3
    block: Dim3
    parameters: Sequence[tuple[int, bytes]]
    shared: int
    deadline: float
    rescue: tuple[int, int] = (0, 0)
    lead: tuple[int, int] | None = None

    def packed(self) -> bytes:
        """The parameters, each at its place."""
        packed = bytearray()
        for alignment, value in self.parameters:
            packed += bytes(-len(packed) % alignment) + value
        return bytes(packed)


@frozen
class Ended:
    """``seconds`` of the kernel, None: it still runs. ``output``: what it printed. ``rescued``: see Start."""

    seconds: float | None
    output: str
    rescued: bytes = b""


class Code(Protocol):
    """A loaded module."""

    def variable(self, name: str) -> tuple[int, int] | None:
        """Start and bytes of a global or constant variable; None: the code has none of that name."""
        ...

    def launch(self, start: Start) -> Ended:
        """Launch and wait. Raises GridTooLarge, TooMuchMemory, ``Device.error`` when the kernel fails."""
        ...


class Device(Protocol):
    """Its memory is addressed by integers; every call may raise ``error``."""

    @property
    def name(self) -> str:
        """For people (``NVIDIA H200``)."""
        ...

    @property
    def architecture(self) -> int:
        """90 for ``sm_90``."""
        ...

    @property
    def shared_limit(self) -> int:
        """Bytes of shared memory that a block may have."""
        ...

    @property
    def multiprocessors(self) -> int:
        """How many it has."""
        ...

    @property
    def threads_at_once(self) -> int:
        """Of a multiprocessor, at most."""
        ...

    @property
    def error(self) -> type[Exception]:
        """What its calls raise when a kernel failed or the driver refuses; the context may be lost then."""
        ...

    def free_bytes(self) -> int:
        """Device memory that is not in use, as far as a check may use it."""
        ...

    def allocate(self, size: int) -> SupportsInt:
        """The start of new memory, freed with the object that is returned. Raises TooMuchMemory."""
        ...

    def clear(self, start: int, size: int) -> None:
        """Zeros in ``size`` bytes."""
        ...

    def upload(self, start: int, data: Records) -> None:
        """Copy an array of the host to ``start``, byte by byte."""
        ...

    def download(self, start: int, target: Records) -> None:
        """Fill ``target``."""
        ...

    def copy(self, target: int, source: int, size: int) -> None:
        """Bytes from one place of the device to another."""
        ...

    def load(self, ptx: str, architecture: str, together: bool) -> Code:
        """``architecture``: ``sm_90``. ``together``: all blocks of a launch must run at once.

        Raises AssemblyError.
        """
        ...
