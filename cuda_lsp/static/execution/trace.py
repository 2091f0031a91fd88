"""What an execution did: the log that every analysis of the static side reads.

Plain records, no analysis.  Lanes are numbered block by block: lane ``b * threads + t`` is thread ``t``
(linear, x fastest) of the ``b``-th executed block.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.clusters import cluster_of
from cuda_lsp.ir.program import Array, Barrier, Kernel, Load
from cuda_lsp.model import Dim3, LaunchConfig, Mode, Scope, Site, SourceRange
from cuda_lsp.static import budgets
from cuda_lsp.static.execution.barrier_phases import Order
from cuda_lsp.static.execution.clocks import WarpClock
from cuda_lsp.static.execution.equal_values import EqualValues
from cuda_lsp.static.execution.values import Data, Drawn, Flags, Lanes, Value


@frozen
class Budget:
    """Limits of one execution; what runs into one is reported as not decided.

    ``rounds`` of one loop, ``steps`` statements, ``lanes`` recorded lane accesses, ``paths`` ways through
    conditions that depend on data, ``data_rounds`` rounds of a loop whose end depends on data.
    ``megabytes`` of values remembered.
    ``milliseconds`` of work are counted in statements and lanes, not read from a clock: what is cut does not
    depend on what else the machine does. ``until`` (of ``time.thread_time``): somebody waits for the trace.
    """

    rounds: int = budgets.MOST_ROUNDS
    steps: int = budgets.MOST_EXECUTED
    lanes: int = budgets.MOST_RECORDED_LANES
    milliseconds: float = budgets.EXECUTION_MS
    paths: int = budgets.MOST_PATHS
    data_rounds: int = budgets.DECIDED_ROUNDS
    megabytes: int = budgets.VALUES_MB
    until: float = math.inf


class OutOfBudget(Exception):
    """The execution stops here; the argument says which limit, for people."""


class OutOfTime(OutOfBudget):
    """Somebody waits for what there is."""


@frozen(eq=False)
class Held:
    """A lock that the executing lanes have: its place. ``scope``: whom it orders (``Lock``)."""

    array: Array
    offset: int | Lanes | Data
    scope: Scope | None


@frozen(eq=False)
class Access:
    """One execution of one access by all lanes (and all rounds of a vectorised loop).

    ``offset``: bytes from the array's start: int, ``(…, lanes)``, or Data. ``must``/``may``: lanes that
    surely/possibly execute it, ``(…, lanes)``. ``clock``: block barriers passed, per block. ``guards``:
    serials of block-uniform unknown conditions it is under, with their outcome. ``drawn``: only who drew this
    number from a counter executes it; ``given``: the lanes that then surely do.
    """

    site: Site
    array: Array
    mode: Mode
    size: int
    offset: int | Lanes | Data
    must: Flags
    may: Flags
    clock: tuple[int, ...]
    warp: WarpClock | None
    sequence: int
    loops: tuple[tuple[str, Value], ...]
    guards: tuple[tuple[int, bool], ...]
    scope: Scope | None = None
    stored: Value | None = None
    grid_clock: int = 0
    drawn: Drawn | None = None
    decided: int = 0  # choices on unknown conditions made before it
    copied: bool = False
    doubt: Data | None = None  # the unknown condition it is under
    given: Flags | None = None
    held: tuple[Held, ...] = ()
    finishes: Lanes | None = None
    """``(lanes,)``, of an asynchronous copy: the phase that is complete only when it is, -1: none."""
    team: Lanes | None = None
    """``(lanes,)``, of a copy by groups of threads: the group whose threads share out its bytes."""
    elementwise: bool = False  # an atomic on a vector, atomic in each element only
    cluster_clock: tuple[int, ...] = ()  # barriers of the cluster passed, per block

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for accesses of one site that touch the same bytes with the same lanes."""
        offset = self.offset if isinstance(self.offset, int) else id(self.offset)
        where = (id(self.site), self.array.id, offset, id(self.must), id(self.may))
        held = tuple((h.array.id, h.offset if isinstance(h.offset, int) else id(h.offset)) for h in self.held)
        stored = self.stored if isinstance(self.stored, int) else id(self.stored)
        return (*where, self.mode, self.size, self.guards, id(self.warp), id(self.drawn), held, stored)


@frozen(eq=False)
class BarrierEvent:
    """One execution of a block-level barrier: ``interval`` is the one it ends."""

    barrier: Barrier
    clock: tuple[int, ...]
    sequence: int


@frozen(eq=False)
class Divergence:
    """A barrier that the lane ``present`` reaches and ``absent``, which it waits for, does not.

    ``exited``: the absent threads have returned. ``reason``: set when it depends on data. ``why``: when it is
    something else than that, for people.
    """

    barrier: Barrier
    present: int
    absent: int
    exited: bool
    reason: str | None
    why: str | None = None


@frozen(eq=False)
class Ticketing:
    """One execution of an atomic that hands out numbers, by the lanes ``must``.

    ``family``: equal for one counter between resets; ``array`` holds it, at a ``fixed`` place or one that
    differs among threads. ``draws``: how many numbers the whole grid takes there, None when not known.
    ``step``: from one number to the next. ``down``: it counts down. ``limit``: of ``atomicInc``, beyond which
    it starts again at 0.
    """

    family: int
    array: int
    sequence: int
    clock: tuple[int, ...]
    must: Flags
    draws: int | None
    step: int
    fixed: bool
    down: bool = False
    limit: int | None = None


@frozen(eq=False)
class FenceEvent:
    """One execution of a fence of device scope or wider."""

    sequence: int
    clock: tuple[int, ...]
    must: Flags
    may: Flags
    doubt: Data | None


@frozen(eq=False)
class LockEvent:
    """A lock in ``array`` that may be taken here, or is given back by the lanes ``must``."""

    sequence: int
    clock: tuple[int, ...]
    array: Array
    takes: bool
    must: Flags
    line: int


@define(eq=False)
class Path:
    """One way through the kernel's unknown block-uniform conditions."""

    accesses: list[Access] = field(factory=list[Access])
    barriers: list[BarrierEvent] = field(factory=list[BarrierEvent])
    divergences: list[Divergence] = field(factory=list[Divergence])
    tickets: list[Ticketing] = field(factory=list[Ticketing])
    fences: list[FenceEvent] = field(factory=list[FenceEvent])
    choices: list[tuple[bool, str]] = field(factory=list[tuple[bool, str]])
    chosen: list[Drawn | None] = field(factory=list["Drawn | None"])
    """For every choice: the number that was drawn when it is true."""
    by_block: dict[int, str] = field(factory=dict[int, str])
    """Why, by ``id()``, of the statements whose condition blocks may decide otherwise than one another."""
    unmodelled: list[tuple[int, str]] = field(factory=list[tuple[int, str]])
    """Synchronisation that was not modelled: after which access (sequence), and what it is."""
    orders: dict[tuple[int, int], Order] = field(factory=dict[tuple[int, int], Order])
    """What barriers of some threads order, by block and interval."""
    ended: dict[int, int] = field(factory=dict[int, int])
    """Blocks in which somebody waits for ever, and in which interval: later ones are never reached."""
    cut: bool = False
    """A loop was left before its condition said so."""

    @property
    def counted(self) -> bool:
        """How often each place is passed is as some arguments and contents have it.

        One condition may come out either way. Several may hang together (``k < tiles`` in two loops), which
        no path knows of.
        """
        return not self.cut and len(self.choices) < 2

    blurred: str | None = None
    """Why nobody knows what orders the threads of a block."""
    locks: list[LockEvent] = field(factory=list[LockEvent])
    waits: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    """Loops that wait for what other threads store: the sequence at their end, source line."""
    blind: set[int] = field(factory=set[int])
    """Arrays, by id, in which something is written that is not among ``accesses``."""
    reads: dict[tuple[object, ...], tuple[Load, Array, int | Lanes, Flags]] = field(
        factory=dict[tuple[object, ...], tuple[Load, Array, "int | Lanes", Flags]]
    )
    """Sampled reads of memory nobody writes, for coalescing only."""


@define(eq=False)
class Trace:
    """Everything executed. ``undecided``: why it is not the whole truth, for people, no duplicates.

    ``excluded``: an assumption of the source fails under this launch and these arguments. ``whole``: what
    the executed blocks do is what all blocks of the launch do. ``late``: it was cut when somebody waited, or
    looking at it was, at ``until`` (of ``time.thread_time``).
    """

    kernel: Kernel
    launch: LaunchConfig
    gpu: GpuModel
    blocks: tuple[Dim3, ...]
    paths: list[Path] = field(factory=list[Path])
    undecided: list[str] = field(factory=list[str])
    excluded: str | None = None
    warp_synchronous: bool = False
    whole: bool = True
    late: bool = False
    until: float = math.inf
    reached: frozenset[Array] = frozenset()
    """Shared arrays that blocks of a cluster reach of one another."""
    ticketed: set[frozenset[SourceRange]] = field(factory=set[frozenset[SourceRange]])
    """Pairs of places that only the numbers drawn from a counter keep apart."""
    equal: EqualValues = field(init=False)
    """Which lanes store equal values that nobody knows."""

    @equal.default  # type: ignore[misc]
    def _equal(self) -> EqualValues:
        return EqualValues(self.lanes, self.threads)

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.launch.threads

    @property
    def written(self) -> set[SourceRange]:
        """The places at which some thread writes."""
        return {a.site.range for path in self.paths for a in path.accesses if a.mode.writes}

    @property
    def lanes(self) -> int:
        """Threads of all executed blocks."""
        return self.threads * len(self.blocks)

    @property
    def clusters(self) -> list[int]:
        """The number of each executed block's cluster; they follow one another."""
        cluster = self.kernel.cluster or (1, 1, 1)
        numbers: dict[Dim3, int] = {}
        return [numbers.setdefault(cluster_of(b, cluster), len(numbers)) for b in self.blocks]

    @property
    def together(self) -> int:
        """Threads of a cluster."""
        return self.threads * math.prod(self.kernel.cluster or (1, 1, 1))

    def not_decided(self, reason: str) -> None:
        """Notes once why the execution does not decide everything, for people."""
        if reason not in self.undecided:
            self.undecided.append(reason)

    def thread(self, lane: int) -> Dim3:
        """threadIdx of a lane."""
        x, y, _ = self.launch.block
        t = lane % self.threads
        return (t % x, t // x % y, t // (x * y))

    def block(self, lane: int) -> Dim3:
        """blockIdx of a lane."""
        return self.blocks[lane // self.threads]


def spread_out(value: int | Lanes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """``value`` as int64 in every lane; of one with no sign the same bits."""
    whole = (value + 2**63) % 2**64 - 2**63 if isinstance(value, int) else value
    array: NDArray[Any] = np.asarray(whole, dtype=np.int64)
    return np.broadcast_to(array, np.broadcast_shapes(array.shape, shape))


def array_bytes(array: Array, launch: LaunchConfig) -> int | None:
    """Size of an array in bytes; dynamic shared memory from the launch; None: unknown."""
    if array.size is not None:
        return array.size
    if array.dynamic:
        return launch.dynamic_shared
    if array.shape and all(n is not None for n in array.shape):
        return math.prod(n for n in array.shape if n is not None) * array.element.size
    return None
