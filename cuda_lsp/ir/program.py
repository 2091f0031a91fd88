"""The kernel program: a kernel reduced to what ordering and addresses depend on.

The whole language on one screen::

    kernel = Kernel(name, params, arrays, body)
    stmt   = Assign(var, value)
           | Load(var?, pointer, type) | Store(pointer, value, type) | Atomic(var?, op, pointer, …)
           | Copy(destination, source, size)                      memcpy, struct assignment, async copies
           | CommitCopies | AwaitCopies(pending)
           | Barrier(scope, phase, …) | Fence(scope)
           | If(condition, then, otherwise) | Loop(test, condition, body, step)
           | Block(label, body) | Leave(label)
           | Assume(condition) | Within(pointer, index, extent) | Incomplete(construct, …, attempt?)
    expr   = Const | Var | Builtin | Unary | Binary | Select | Cast | Intrinsic | Unknown
           | AddressOf(array) | Offset(pointer, bytes)

Expressions are pure: the frontend turns side effects, memory reads, calls (always inlined),
short-circuits and ternaries whose arms touch memory into statements over fresh variables, in C++
evaluation order.  ``break``, ``continue``, ``return`` (also of inlined functions), and ``switch`` are
``Leave`` out of a labelled ``Block`` or ``Loop``: "lanes that execute it wait at the end of the block".
Every statement that a message may name carries its ``Site``.  Nodes are immutable; variables and
arrays are compared by ``id``.  Invariants are checked by ``cuda_lsp.ir.validate``.

One file, longer than most: it is the definition of a language, mostly what its words mean, and who reads one
node's meaning needs the others beside it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from attrs import field, frozen

from cuda_lsp.ir.atomics import ATOMICS, AtomicOp, AtomicRow
from cuda_lsp.ir.types import BOOL, INT32, UINT32, Int, Opaque, Pointer, Type
from cuda_lsp.model import Dim3, LaunchConfig, Mode, Scope, Site, SourceRange, Space

# ------------------------------------------------------------------------------------ expressions


class Axis(enum.Enum):
    """The built-in variables, one per component."""

    __hash__ = object.__hash__  # of an object: what an enumeration does in Python costs every lookup more

    TID_X = "threadIdx.x"
    TID_Y = "threadIdx.y"
    TID_Z = "threadIdx.z"
    BID_X = "blockIdx.x"
    BID_Y = "blockIdx.y"
    BID_Z = "blockIdx.z"
    BDIM_X = "blockDim.x"
    BDIM_Y = "blockDim.y"
    BDIM_Z = "blockDim.z"
    GDIM_X = "gridDim.x"
    GDIM_Y = "gridDim.y"
    GDIM_Z = "gridDim.z"
    LANE = "laneid"  # linear thread index within the block, modulo the warp size
    WARP_SIZE = "warpSize"


TID = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z)
BID = (Axis.BID_X, Axis.BID_Y, Axis.BID_Z)
BDIM = (Axis.BDIM_X, Axis.BDIM_Y, Axis.BDIM_Z)
GDIM = (Axis.GDIM_X, Axis.GDIM_Y, Axis.GDIM_Z)


class UnaryOp(enum.Enum):
    """C semantics; NOT gives BOOL."""

    NEG = "-"
    NOT = "!"  # logical; result BOOL
    INV = "~"


class BinaryOp(enum.Enum):
    """C semantics: division truncates, shifts by type; comparisons give BOOL.

    AND/OR are logical without short circuit (both arms are pure).
    """

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    REM = "%"
    SHL = "<<"
    SHR = ">>"  # arithmetic when the type is signed
    BAND = "&"
    BOR = "|"
    BXOR = "^"
    AND = "&&"
    OR = "||"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="
    MIN = "min"
    MAX = "max"


@frozen
class Const:
    """An integer (exact) or floating constant."""

    value: int | float
    type: Type = INT32


@frozen(eq=False)
class Var:
    """A scalar or pointer variable private to each thread. Identity is the object; ``id`` orders them.

    ``name`` is what the source calls it (temporaries: ``""``). A kernel parameter is a Var listed in
    ``Kernel.params``: the same value in every thread, never assigned (the frontend copies it first
    when the body assigns to it). A variable read before any assignment holds an unknown value.
    """

    name: str
    type: Type
    id: int

    def __repr__(self) -> str:
        return f"{self.name or '%'}#{self.id}"

    def __hash__(self) -> int:  # no address: what goes by the order of a set is the same in every run
        return self.id


@frozen
class Builtin:
    """What a built-in variable holds in the executing thread."""

    axis: Axis
    type: Type = UINT32


@frozen
class Unary:
    """``type`` is that of the result."""

    op: UnaryOp
    operand: Expr
    type: Type


@frozen
class Binary:
    """``type`` is that of the result; both operands share one type (shifts: the left one's).

    Pointer comparisons and differences (in bytes, INT64) are Binary too.
    """

    op: BinaryOp
    left: Expr
    right: Expr
    type: Type


@frozen
class Select:
    """``condition ? then : otherwise`` with pure arms."""

    condition: Expr
    then: Expr
    otherwise: Expr
    type: Type


@frozen
class Cast:
    """Conversion between scalar types (integer width and sign, bool, float). To BOOL: ``!= 0``."""

    operand: Expr
    type: Type


@frozen
class Intrinsic:
    """A pure built-in function by its CUDA name: abs, __popc, __clz, __ffs, __brev, __mul24, …

    Lane exchanges (``__shfl_*``, votes, match, ``__activemask``) appear here too, after the
    ``Barrier(WARP)`` they imply; operands as in CUDA, mask first.
    """

    name: str
    operands: tuple[Expr, ...]
    type: Type


LOOP_SUM = "what a loop adds up"
"""How the names of functions begin that stand for what a loop leaves in a floating-point variable."""


@frozen
class Unknown:
    """A value the frontend cannot express. ``reason`` is for people. Varies by thread unless ``uniform``.

    Two occurrences with one ``id`` in one thread are the same value only if no statement between
    them re-evaluates it; evaluators may treat every evaluation as fresh. ``loaded``: it was computed from
    what memory holds, so that inputs make it what they like. ``per_block``: each block may have its own.
    ``inputs``: what it is computed from, where that may differ: threads that agree on all of it agree on it.
    """

    reason: str
    type: Type
    id: int
    uniform: bool = False
    loaded: bool = False
    per_block: bool = False
    inputs: tuple[Expr, ...] = ()


STRETCH = 1 << 40
"""Bytes between the objects that neighbouring bytes of a table of pointers point to, in one ``Array``; and
between the places that a SHARED array has in blocks of a cluster that follow one another by rank
(``ir.clusters``): an offset without it is of the executing block's own."""


@frozen
class Part:
    """A field of a record, from byte ``offset`` on: a scalar, or ``count`` of them; ``size`` bytes each."""

    name: str
    offset: int
    size: int
    count: int | None = None


@frozen(eq=False)
class Array:
    """A memory object that accesses name.

    ``shape`` is in elements, outermost first; ``None`` at front or ``()`` means unknown extent
    (``extern __shared__``, pointer parameters). ``size`` in bytes when known. SHARED: one per block.
    GLOBAL: a pointer parameter's pointee (``param`` set), a ``__device__`` variable, or what a
    pointer loaded from memory points to. CONSTANT: read-only. LOCAL: private to each thread (local
    arrays, records whose address is taken). ``may_alias``: distinct arrays with one non-None group
    may overlap; otherwise distinct arrays never do. ``surface``: offsets are coordinates, no addresses.
    ``parts``: of an element that is a record, for messages.
    """

    name: str
    space: Space
    element: Type
    shape: tuple[int | None, ...]
    id: int
    size: int | None = None
    offset: int | None = None  # SHARED: bytes from the start of the block's static shared memory
    dynamic: bool = False  # extern __shared__
    param: Var | None = None
    may_alias: str | None = None
    site: Site | None = None
    volatile: bool = False
    surface: bool = False
    parts: tuple[Part, ...] = ()

    def __repr__(self) -> str:
        return f"{self.space.value}:{self.name}#{self.id}"

    def __hash__(self) -> int:  # no address: what goes by the order of a set is the same in every run
        return self.id


_ADDRESS = Pointer()


@frozen
class AddressOf:
    """The address of an array's first byte."""

    array: Array
    type: Type = _ADDRESS


@frozen
class Offset:
    """``pointer`` moved by ``bytes`` (an INT64 expression)."""

    pointer: Expr
    bytes: Expr
    type: Type = _ADDRESS


Expr = Const | Var | Builtin | Unary | Binary | Select | Cast | Intrinsic | Unknown | AddressOf | Offset

# ------------------------------------------------------------------------------------- statements


@frozen
class Assign:
    """``var = value``; both of one type."""

    var: Var
    value: Expr
    site: Site | None = None


@frozen
class Load:
    """``var = *(type*)pointer``. ``type.size`` bytes. ``var`` None: the value is not used as a scalar.

    ``readonly``: through ``__ldg``, texture, ``const __restrict__``. ``volatile``: never cached. ``part``: of
    a record that the load before it reads at once: a value, and no access of its own. ``word``: one
    instruction of the machine, as ``asm`` writes it, of whatever the memory is made.
    """

    var: Var | None
    pointer: Expr
    type: Type
    site: Site
    volatile: bool = False
    readonly: bool = False
    part: bool = False
    word: bool = False


@frozen
class Store:
    """``*(type*)pointer = value``; ``value`` Unknown when it is data.

    ``parts``: of a record, its fields for who executes the kernel on numbers, each with its byte in it.
    ``word``: as of a load.
    """

    pointer: Expr
    value: Expr
    type: Type
    site: Site
    volatile: bool = False
    parts: tuple[tuple[int, Expr], ...] = ()
    word: bool = False


@frozen
class Atomic:
    """An atomic operation on ``type.size`` bytes. ``var`` receives the old value.

    ``releases``: it publishes what came before it (C++'s release order, or a stronger one).
    ``rewrites``: of a load that stores as well what no other statement looks at (a barrier object's state).
    """

    var: Var | None
    op: AtomicOp
    pointer: Expr
    operands: tuple[Expr, ...]
    type: Type
    scope: Scope
    site: Site
    releases: bool = False
    rewrites: bool = False

    @property
    def mode(self) -> Mode:
        """What the access is to races."""
        return Mode.ATOMIC if self.row.writes or self.rewrites else Mode.ATOMIC_READ

    @property
    def row(self) -> AtomicRow:
        """What the operation does."""
        return ATOMICS[self.op]

    @property
    def only_reads(self) -> bool:
        """It changes nothing: ``atomicAdd(p, 0)``, ``atomicCAS(p, x, x)``."""
        if self.op is AtomicOp.CAS:
            return len(self.operands) == 2 and self.operands[0] == self.operands[1]
        neutral, operand = self.row.neutral, self.constant
        if neutral is None or operand is None:
            return not self.row.writes
        return operand.value == (operand.type.wrap(neutral) if isinstance(operand.type, Int) else neutral)

    @property
    def constant(self) -> Const | None:
        """The first operand, if it is a constant."""
        first = self.operands[0] if self.operands else None
        return first if isinstance(first, Const) else None

    @property
    def elementwise(self) -> bool:
        """On a vector: atomic in each element only."""
        return isinstance(self.type, Opaque)


@frozen
class Copy:
    """``size`` bytes from ``source`` to ``destination`` by the executing thread.

    ``asynchronous``: completes only at an ``AwaitCopies`` of the same thread (``cp.async`` and what is made
    of it), or with the phase of a barrier object that it is bound to: ``mechanism`` says which. ``team``: a
    group of threads moves the bytes together, which thread which byte is not told; ``team_size`` as in
    ``Barrier.size``. ``read_at``: where the source is named, when that is not ``site``.
    """

    destination: Expr
    source: Expr
    size: Expr
    site: Site
    asynchronous: bool = False
    mechanism: str = ""
    team: BarrierScope | None = None
    team_size: int | None = None
    read_at: Site | None = None

    def where(self, mode: Mode) -> Site:
        """The expression that reads or writes."""
        return self.read_at or self.site if mode is Mode.READ else self.site


class BarrierScope(enum.Enum):
    """Which threads a barrier orders."""

    BLOCK = "block"  # __syncthreads, block.sync(), barrier.sync 0
    WARP = "warp"  # __syncwarp(mask) and every *_sync lane exchange
    TILE = "tile"  # tiled_partition<N>: aligned groups of ``size`` threads
    COALESCED = "coalesced"  # the lanes active when the group was made
    NAMED = "named"  # barrier.sync id, count
    OBJECT = "object"  # cuda::barrier, mbarrier, the stages of a cuda::pipeline
    CLUSTER = "cluster"
    GRID = "grid"

    @property
    def of_lanes(self) -> bool:
        """It orders lanes, mostly of one warp."""
        return self in (BarrierScope.WARP, BarrierScope.TILE, BarrierScope.COALESCED)

    @property
    def of_blocks(self) -> bool:
        """Whole blocks meet there."""
        return self in (BarrierScope.BLOCK, BarrierScope.CLUSTER, BarrierScope.GRID)


class BarrierPhase(enum.Enum):
    """Which half of a barrier a statement is."""

    SYNC = "sync"  # arrive and wait
    ARRIVE = "arrive"
    WAIT = "wait"
    INIT = "init"  # OBJECT: from here on, each phase counts ``count`` arrivals
    DROP = "drop"  # OBJECT: arrive, and be counted in no later phase
    BIND = "bind"  # OBJECT: the phase is complete only when the thread's copies so far are


@frozen
class Barrier:
    """A barrier as written in the source (``text`` for messages: ``__syncthreads()``).

    WARP: ``mask`` is the lane mask. TILE: ``size`` threads. NAMED: ``id`` and ``count`` (None: all).
    ``implied``: part of a lane exchange, not a barrier of its own. ``assured``: False where a library
    decides: nothing is proved by it, and nothing is accused across it.
    OBJECT: ``object`` points to it (8 bytes); ``count`` arrivals (None: one). A WAIT is for the phase of the
    thread's last arrival, or for the phase with ``parity`` that is not known to be complete.
    """

    scope: BarrierScope
    site: Site
    phase: BarrierPhase = BarrierPhase.SYNC
    mask: Expr | None = None
    size: int | None = None
    id: Expr | None = None
    count: Expr | None = None
    implied: bool = False
    assured: bool = True
    object: Expr | None = None
    parity: Expr | None = None


@frozen
class Fence:
    """``__threadfence`` and its kin: what came before is seen first, by ``scope``."""

    scope: Scope
    site: Site


@frozen
class CommitCopies:
    """The thread's asynchronous copies since its last commit form a group."""

    site: Site


@frozen
class AwaitCopies:
    """Until at most ``pending`` of the thread's latest groups of copies are open; None: until none is."""

    pending: Expr | None
    site: Site


@frozen
class If:
    """``if (condition) then else otherwise``; ``condition`` of type BOOL."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]
    site: Site


@frozen
class Loop:
    """``for (;; step) { test; if (!condition) break; body }``.

    One round: ``test`` (statements that compute the condition; usually none), leave when
    ``condition`` is false, ``body``, ``step``. ``do``-``while``: ``tests_first`` is False and the first
    round skips test and condition. ``Leave(label)`` ends the loop (break);
    ``Leave(continue_label)`` ends the round's body (then ``step`` runs).
    """

    label: int
    continue_label: int
    test: tuple[Stmt, ...]
    condition: Expr
    body: tuple[Stmt, ...]
    step: tuple[Stmt, ...]
    site: Site
    tests_first: bool = True


@frozen
class Lock:
    """Memory that stands for a lock. ``scope``: of the fence before it is given back, so whom it orders.

    None: there is no fence, so it orders nobody.
    """

    pointer: Expr
    scope: Scope | None


@frozen
class Block:
    """A region that ``Leave(label)`` ends. Inlined calls, ``switch``, the kernel body (label 0).

    ``lock``: who runs it holds that lock, from the atomic it begins with to the statement it ends with.
    """

    label: int
    body: tuple[Stmt, ...]
    site: Site | None = None
    lock: Lock | None = None


@frozen
class Leave:
    """The executing lanes go to the end of the enclosing Block/Loop/round with this label."""

    label: int
    site: Site


@frozen
class Assume:
    """A fact: ``assert``, ``__builtin_assume``, a directive. Holds for every executing lane."""

    condition: Expr
    site: Site


@frozen
class Within:
    """An element of a member array of a record is meant: ``pointer`` leads to the first of ``extent``.

    An ``index`` beyond is out of bounds, and nobody's race with what lies behind the array. ``name``: of the
    member.
    """

    pointer: Expr
    index: Expr
    extent: int
    name: str
    site: Site


@frozen
class Attempt:
    """A wait that may give up. ``outcome``, a truth value that the next statement sets: it did not."""

    wait: Barrier
    outcome: Var


class NextStep(enum.Enum):
    """What who asks for a verdict can do about a statement that was not translated, in words."""

    RUN = "try `check --dynamic`"
    PROGRAM = "try `cuda-lsp run --program`"  # only what the program keeps in memory tells
    HEADER = "does it lack a header (-I) or a macro (-D)?"
    BODY = "include the file that defines it"
    CLUSTER = "`__cluster_dims__` would tell"


@frozen
class Incomplete:
    """Something that the frontend did not translate; it may touch ``arrays`` (None: none known).

    ``synchronises``: it may contain a barrier. A kernel with a reachable one is never race-free
    unless the construct cannot touch memory (``harmless``: only its value is lost). ``attempt``: what it is
    where a loop repeats it until it succeeds; by itself it orders nobody.
    """

    construct: str
    reason: str
    site: Site
    pointers: tuple[Expr, ...] = ()
    synchronises: bool = False
    harmless: bool = False
    attempt: Attempt | None = None
    step: NextStep = NextStep.RUN

    @property
    def said(self) -> str:
        """That it is not analysed; of `input` and `output` two things are said at once."""
        return f"{self.construct} {'are' if '` and `' in self.construct else 'is'} not analysed"

    @property
    def told(self) -> str:
        """The same, why, and what to do, as a reason of a verdict."""
        return f"{self.said} ({self.reason}; {self.step.value})"


Stmt = (
    Assign | Load | Store | Atomic | Copy | CommitCopies | AwaitCopies | Barrier | Fence
    | If | Loop | Block | Leave | Assume | Within | Incomplete
)  # fmt: skip

# ----------------------------------------------------------------------------------------- kernel


@frozen
class LaunchBounds:
    """``__launch_bounds__``: threads of a block, blocks of a multiprocessor."""

    max_threads: int
    min_blocks: int | None = None


@frozen
class Directives:
    """What ``// cuda-lsp:`` comments say of this kernel, and guards before its launches."""

    launch: LaunchConfig | None = None
    assumptions: tuple[Expr, ...] = ()  # over params and built-ins
    arguments: Mapping[str, int] = field(factory=dict[str, int])  # ``args``: for launches that lack them
    warp_synchronous: bool = False


@frozen
class Member:
    """A scalar or pointer in a kernel's parameter, ``offset`` bytes from its start.

    ``name`` as in ``Kernel.params``; elements of arrays are ``record.field[0]``. ``pointee``: what a pointer
    points to.
    """

    name: str
    offset: int
    type: Type
    pointee: Type | None = None


@frozen
class ParameterLayout:
    """One parameter as the caller passes it: ``size`` bytes; bytes that are in no member are not known."""

    name: str
    size: int
    members: tuple[Member, ...]


@frozen
class RunningSum:
    """What the host puts into an array: its element ``i`` is the sum of the first ``i + behind`` of ``of``.

    As far as these are no more than ``last + more``. ``of`` and ``last`` are names of parameters; None: of an
    array that the kernel is not passed.
    """

    of: str | None
    behind: int
    last: str
    more: int


@frozen(eq=False)
class Kernel:
    """A ``__global__`` function (one instantiation of a template) after inlining.

    ``params``: scalar and pointer parameters in order; fields of by-value record parameters appear
    as parameters of their own, named ``record.field``. ``layout``: the parameters as they are passed, of
    which some may have no variable. ``arrays``: every Array that ``body`` names.
    ``launches``: what launch sites say, best first (``frontend.launches``), may be empty. ``grid`` and
    ``arguments``: what all launch sites agree on when none tells the block. ``extents``: parameters by
    which every launch passes the block's extent along an axis (0, 1, 2). ``sums``: parameters that hold the
    running sums of another one, by name.
    ``unread``: a launch in the source of which nobody knows the block; ``by_sizes``: some that such launches
    make for sizes that nobody knows, where others are told.
    ``ties``: parameters that the host makes of others, nobody knows how, each with one of these.
    ``enumerated``: the values that a parameter of an enumeration takes.
    ``behind``: pointer parameters that launches point into an earlier one's buffer: its name, and how many
    bytes further on; where some point elsewhere, a parameter of its own (``apart``) tells which do.
    ``said``: conditions that hold at single launches, by their place and block, besides those of
    ``directives``. ``errors``: compile errors inside the body, as ranges. ``digest``: hash of all text the
    translation depends on. ``valued``: floating-point values are followed, as expressions that nobody
    computes; ``followed``: the same kernel like that, for who asks whether two threads store one value;
    ``computed``: the same with all that floats are made of, for who runs it on numbers, which may matter
    where the kernel ``judges_floats``: integers and truth values are made of them.
    ``cluster``: the blocks of a cluster, where an attribute of the kernel says so.
    """

    name: str  # as in the source, with template arguments: ``reduce<float, 256>``
    range: SourceRange
    params: tuple[Var, ...]
    arrays: tuple[Array, ...]
    body: tuple[Stmt, ...]
    name_range: SourceRange | None = None
    launches: tuple[LaunchConfig, ...] = ()
    bounds: LaunchBounds | None = None
    directives: Directives = Directives()
    errors: tuple[SourceRange, ...] = ()
    digest: str = ""
    mangled: str = ""  # the linker's name of an instantiation
    instantiated_by: str = ""  # text to append for a compiler, when the arguments were guessed
    guessed: bool = False  # its template arguments, of which no launch tells any
    guessed_numbers: bool = False  # some of its template arguments, of which launches tell others
    grid: Dim3 | None = None
    arguments: Mapping[str, int] = field(factory=dict[str, int])
    extents: Mapping[str, int] = field(factory=dict[str, int])
    sums: Mapping[str, RunningSum] = field(factory=dict[str, RunningSum])
    ties: frozenset[tuple[str, str]] = frozenset()
    unread: Site | None = None
    by_sizes: tuple[LaunchConfig, ...] = ()
    required: Mapping[str, int] = field(factory=dict[str, int])  # facts for launch inference: {"tile": 32}
    layout: tuple[ParameterLayout, ...] = ()
    enumerated: Mapping[str, tuple[int, ...]] = field(factory=dict[str, tuple[int, ...]])  # by parameter
    behind: Mapping[str, tuple[str, Expr]] = field(factory=dict[str, tuple[str, Expr]])
    granted: tuple[str, ...] = ()  # what its translation takes for granted of its arguments, for people
    said: Mapping[tuple[Site | None, Dim3], tuple[Expr, ...]] = field(
        factory=dict[tuple[Site | None, Dim3], tuple[Expr, ...]]
    )

    valued: bool = False
    followed: Kernel | None = None
    computed: Kernel | None = None
    judges_floats: bool = False
    cluster: Dim3 | None = None

    def said_of(self, launch: LaunchConfig) -> tuple[Expr, ...]:
        """What holds at this launch, and need not at others."""
        return self.said.get((launch.site, launch.block), ())


def const(value: int, type: Type = INT32) -> Const:
    """A constant of ``type``, wrapped into its range."""
    return Const(type.wrap(value) if isinstance(type, Int) else value, type)


TRUE = Const(1, BOOL)
FALSE = Const(0, BOOL)
