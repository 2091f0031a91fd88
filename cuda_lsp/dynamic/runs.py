"""What a dynamic check is asked to run, and what it saw: the words that both engines speak.

``KernelRun`` describes one launch of one compiled kernel; an ``Engine`` (``gpu/engine.py``,
``emulator/engine.py``) executes it and answers with a ``RunOutcome``. Sites are numbers into
``KernelRun.sites`` (made by ``compilation/sites.py`` from the PTX and its token table), so that an engine
never handles source text; ``observations`` turn an outcome into findings. Definitions of race and wavefront:
``docs/semantics.md``. Nothing here runs anything.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from attrs import field, frozen

from cuda_lsp.model import Dim3, LaunchConfig, Mode, Scope, Site, Space

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

WARP = 32
"""Lanes of a warp."""

# --------------------------------------------------------------------------------- what to run


class SiteKind(enum.Enum):
    """What happens at a site."""

    ACCESS = "access"
    BARRIER = "barrier"  # block barriers, named or not
    WARP_SYNC = "warp synchronisation"  # __syncwarp, shuffles, votes
    MATRIX = "matrix access"  # of a warp together: ldmatrix, wmma.load …
    TRAP = "trap"  # ends the launch
    IMAGE = "image access"  # of a texture or surface; the emulator watches them
    OTHER = "other"  # memory touched in a way the detectors do not cover (TMA, wgmma, …)


@frozen
class PtxSite:
    """One PTX instruction that touches memory or orders threads.

    ``function`` and ``index`` name it as ``ptx.Instruction`` does; ``space`` is None for a generic
    address (decided at run time). ``bytes``: per thread, all vector elements together. ``site`` is the
    source expression, None when nothing of it is in the user's files. ``via``: the call instructions
    (function, index; outermost first) that tell it apart, when its place in the user's files is a call.
    """

    function: str
    index: int
    kind: SiteKind
    opcode: str
    site: Site | None
    mode: Mode | None = None
    space: Space | None = None
    bytes: int = 0
    scope: Scope | None = None  # of an atomic or fence
    via: tuple[tuple[str, int], ...] = ()

    @property
    def atomic(self) -> bool:
        """Whether it is as strong as an atomic: an update, or an access that is ``relaxed`` or orders."""
        return self.mode is not None and self.mode.atomic


@frozen
class Buffer:
    """Device memory that a pointer of the kernel points to. ``data``: bytes before the run, ``(size,)``.

    Two arguments that share one ``Buffer`` object alias. ``element``: bytes of one element, for messages.
    """

    name: str
    data: Bytes = field(eq=False)
    element: int = 4


@frozen
class Argument:
    """One kernel parameter: its bytes, with pointers still to be filled in (8 bytes at each offset).

    What stands there is how many bytes behind its buffer's begin a pointer points.
    """

    name: str
    value: bytes
    pointers: tuple[tuple[int, Buffer], ...] = ()

    def address(self, at: int, start: int) -> bytes:
        """The pointer at an offset, its buffer being at ``start``."""
        behind = int.from_bytes(self.value[at : at + 8], "little")
        return (start + behind & (1 << 64) - 1).to_bytes(8, "little")


class Detail(enum.Enum):
    """GMRace's two levels: statement pairs with threads, or racing words and warps only (cheaper)."""

    PAIRS = "pairs"
    FLAGS = "flags"


class Level(enum.Enum):
    """Optimisation of the device code: O0 keeps every source access, O3 is what the hardware executes."""

    O0 = "O0"
    O3 = "O3"


@frozen
class KernelRun:
    """One launch to execute and watch.

    ``ptx`` is the compiled module, ``entry`` the mangled kernel. ``watch``: the sites (indices into
    ``sites``) whose accesses are checked for races; None: all. ``blocks``: linear block numbers to
    check; None: all (an engine that only emulates executes just these). ``races`` and ``banks`` say what
    is wanted. ``deadline``: seconds for the kernel itself. ``lock_step``: different instructions of one warp
    are ordered, as before Volta or where the source says so. ``backwards``: the opposite order of warps,
    where the engine chooses it. ``cluster``: the blocks of a cluster, where the launch says so. ``together``:
    whether the program's launch is a cooperative one; None: it is one if the kernel needs that.
    """

    ptx: str
    entry: str
    launch: LaunchConfig  # grid and dynamic_shared are known here
    arguments: tuple[Argument, ...]
    sites: tuple[PtxSite, ...]
    watch: frozenset[int] | None = None
    blocks: tuple[int, ...] | None = None
    detail: Detail = Detail.PAIRS
    races: bool = True
    banks: bool = False
    deadline: float = 10.0
    seed: int = 0
    lock_step: bool = False
    backwards: bool = False
    cluster: Dim3 = (1, 1, 1)
    together: bool | None = None


# ---------------------------------------------------------------------------------- what was seen


@frozen
class Place:
    """Where memory was touched: a variable or buffer and a byte offset into it.

    ``array`` is the PTX name of a shared or global variable, or a buffer's name; None when unknown (then
    ``offset`` is the raw address). Offsets into dynamic shared memory count from its start.
    """

    space: Space
    array: str | None
    offset: int


@frozen
class SeenRace:
    """Two sites that raced, and one example. Site numbers ascend; the first site's thread comes first.

    ``threads``: linear within their blocks; ``blocks``: linear. ``pairs`` distinct (thread, thread)
    pairs and ``words`` distinct 4-byte words that were counted (lower bounds on the GPU).
    ``same_value``: every write seen stored what was there already. ``warp_only``: only lanes of one warp
    raced, at different instructions, and no warps raced with each other between the same barriers; None:
    the engine does not tell. ``values``: what the two threads of the example read or wrote, as C writes it;
    None: unknown. ``in_blocks``: in how many blocks it was seen, 0: not counted.
    """

    sites: tuple[int, int]
    modes: tuple[Mode, Mode]
    threads: tuple[int, int]
    blocks: tuple[int, int]
    place: Place
    pairs: int = 1
    words: int = 1
    same_value: bool = False
    warp_only: bool | None = None
    values: tuple[str | None, str | None] = (None, None)
    in_blocks: int = 0


@frozen
class SeenFlag:
    """Detail.FLAGS: a word that raced, and the warps that touched it; no statement."""

    place: Place
    warps: tuple[int, int]
    block: int


@frozen
class SeenBanks:
    """Shared-memory cost of one site, over the warps that executed it (rule: ``docs/semantics.md``).

    ``executions``: warp instructions; ``wavefronts`` and ``ideal``: their sums. ``worst_*``: of the most
    expensive one; ``histogram``: distinct words per bank of that one, ``(banks,)``.
    """

    site: int
    executions: int
    wavefronts: int
    ideal: int
    worst_ways: int
    worst_wavefronts: int
    worst_ideal: int
    histogram: tuple[int, ...] = ()


@frozen
class SeenFault:
    """An access outside every buffer, array or block's shared memory; it was not carried out.

    ``misaligned``: its address is no multiple of its size. ``outlived``: it is the shared memory of this
    block, which may have ended by then (the access itself was carried out). ``reach``: the greatest offset
    that is known.
    """

    site: int
    thread: int
    block: int
    place: Place
    count: int = 1
    misaligned: bool = False
    outlived: int | None = None
    reach: int = 0


@frozen
class Stuck:
    """Threads that wait for others that will not come, or that ended the launch.

    ``waiting``: (site, how many, one of them); how many is 0 where nobody counted them.
    """

    block: int
    waiting: tuple[tuple[int, int, int], ...]
    exited: int = 0  # threads of the block that have left
    spinning: bool = False  # waits in a loop on memory, not at a barrier
    late: bool = False  # the deadline ended it: who is at no barrier may only be slow


def opcodes_of(sites: Iterable[PtxSite], *kinds: SiteKind) -> tuple[str, ...]:
    """The names of the instructions of these kinds, each once."""
    return tuple(dict.fromkeys(site.opcode for site in sites if site.kind in kinds))


TRAPPED = "the kernel executed trap"
ASSERTION = "an assertion failed"


@frozen
class DeviceLaunch:
    """A launch that a kernel made. ``arguments``: parameter after parameter, unpadded."""

    entry: str
    grid: Dim3
    block: Dim3
    shared: int
    arguments: bytes


@frozen
class RunOutcome:
    """All that one run saw.

    ``device`` names what ran it; ``seconds``: kernel time; ``executed``: sites that at least one watched
    thread executed. ``not_covered``: what the engine did not check, a sentence each; ``unwatched``:
    opcodes of the instructions whose memory was not watched. ``failure``: why
    the run ended early (deadline, trap, illegal address), None when the kernel finished. ``results``:
    buffers after the run by name, when they were asked for. ``compiled``: an emulated kernel ran in the C
    engine, at its end at least. ``launched``: what the kernel launched, which did not run yet.
    """

    device: str
    seconds: float
    blocks_checked: int
    blocks_total: int
    races: tuple[SeenRace, ...] = ()
    flags: tuple[SeenFlag, ...] = ()
    banks: tuple[SeenBanks, ...] = ()
    faults: tuple[SeenFault, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    executed: frozenset[int] = frozenset()
    not_covered: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()
    output: str = ""  # what the kernel printed
    failure: str | None = None
    results: dict[str, Bytes] = field(factory=dict[str, Bytes], eq=False)
    compiled: bool = False
    launched: tuple[DeviceLaunch, ...] = ()


class EngineUnavailable(Exception):
    """The engine cannot run here; the message says why and what to do.

    ``opcodes``: of the instructions because of which it cannot, if it is instructions.
    """

    def __init__(self, why: str, opcodes: Iterable[str] = ()) -> None:
        super().__init__(why)
        self.opcodes = tuple(opcodes)


class Engine(Protocol):
    """Executes kernel runs. Raises EngineUnavailable before running anything; the rest is in the outcome."""

    @property
    def device(self) -> str:
        """What runs the kernels, for people (``NVIDIA H200``, ``CPU emulator``)."""
        ...

    @property
    def usable(self) -> bool:
        """Whether this process can run more with it."""
        ...

    def foresee(self, request: KernelRun) -> None:
        """Make what a later run of this will need, as far as that takes time. Raises EngineUnavailable."""
        ...

    def run(self, request: KernelRun, progress: Callable[[str], None]) -> RunOutcome:
        """Execute one launch; ``progress`` is told the stage (``instrumenting``, ``running``)."""
        ...
