"""A solver's model is not believed: both threads are run again, on plain integers, and must collide.

``replay`` interprets the kernel program for one thread with the operation table's Python evaluators
(exact machine arithmetic), independent of the symbolic walk.  Memory contents are unknown; a run
whose control flow or addresses need them stops (``NeedsData``), unless what it would skip holds neither
barrier, jump nor access of interest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir import conflicts, ops
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Axis, BarrierScope, Stmt, Var
from cuda_lsp.ir.types import INT64, Int, Pointer, Type
from cuda_lsp.ir.walk import root
from cuda_lsp.model import Dim3, Mode, Scope, Site, Space
from cuda_lsp.static import work

MAX_STEPS = 60_000


class NeedsData(Exception):
    """The run depends on what memory holds, or on a value nobody knows."""


class TooLong(Exception):
    """The run exceeds its budget of statements."""


@frozen
class Place:
    array: Array
    offset: int


Value = int | Place | None
"""None: unknown."""


def memory_base(array: Array) -> tuple[Hashable, int]:
    """What object the array's bytes belong to, and where in it they start.

    Views of dynamic shared memory that begin at known places are one object.
    """
    if array.may_alias is not None and array.offset is not None and array.space is Space.SHARED:
        return array.may_alias, array.offset
    return array, 0


@frozen
class ThreadAccess:
    """One access of one thread. ``passed``: how many barriers of its log came before.

    ``rounds``: how many rounds each enclosing loop had finished, outermost first. ``chosen``: the
    innermost condition on data under which it happens, and the outcome taken. ``held``: locks.
    """

    site: Site
    array: Array
    start: int  # bytes
    stop: int
    mode: Mode
    passed: int
    scope: Scope | None
    elementwise: bool
    chosen: tuple[Site, bool] | None = None
    rounds: tuple[int, ...] = ()
    held: frozenset[tuple[Array, int, Scope | None]] = frozenset()

    @property
    def size(self) -> int:
        return self.stop - self.start


@frozen
class PassedBarrier:
    scope: BarrierScope
    size: int | None
    mask: int | None
    everyone: bool


@frozen
class Thread:
    """Where a thread stands: built-in variables as numbers."""

    tid: Dim3
    bid: Dim3
    bdim: Dim3
    gdim: Dim3
    warp_size: int

    @property
    def linear(self) -> int:
        return self.tid[0] + self.bdim[0] * (self.tid[1] + self.bdim[1] * self.tid[2])

    def axis(self, axis: Axis) -> int:
        if axis is Axis.LANE:
            return self.linear % self.warp_size
        if axis is Axis.WARP_SIZE:
            return self.warp_size
        group, component = axis.value.split(".")
        triples = {"threadIdx": self.tid, "blockIdx": self.bid, "blockDim": self.bdim, "gridDim": self.gdim}
        return triples[group]["xyz".index(component)]


@define
class Run:
    """What one thread did."""

    accesses: list[ThreadAccess] = field(factory=list[ThreadAccess])
    barriers: list[PassedBarrier] = field(factory=list[PassedBarrier])


def replay(
    kernel: ir.Kernel,
    thread: Thread,
    arguments: Mapping[str, int],
    interesting: frozenset[Array],
    memory: Callable[[Array, int], int | None] = lambda array, offset: None,
    choice: bool | None = None,
    until: float = math.inf,
) -> Run:
    """Runs one thread alone. ``memory``: what integers (array, byte offset) hold, None: not known.

    ``choice``: the outcome of every ``if`` whose condition is not known (None: such a run stops).
    ``until``: when it is too late to go on (``work.now``).
    Raises ``NeedsData`` or ``TooLong``.
    """
    pointees = {array.param: array for array in kernel.arrays if array.param is not None}
    values: dict[Var, Value] = {}
    for var in kernel.params:
        if isinstance(var.type, Pointer):
            array = pointees.get(var)
            values[var] = Place(array, 0) if array is not None else None
        elif isinstance(var.type, Int) and var.name in arguments:
            values[var] = var.type.wrap(arguments[var.name])
    machine = _Machine(thread, values, interesting, memory, choice, until)
    machine.run(kernel.body)
    return machine.result


class _Left(Exception):
    def __init__(self, label: int) -> None:
        self.label = label


@define
class _Machine:
    thread: Thread
    values: dict[Var, Value]
    interesting: frozenset[Array]
    memory: Callable[[Array, int], int | None]
    choice: bool | None = None
    until: float = math.inf
    chosen: tuple[Site, bool] | None = None
    result: Run = field(factory=Run)
    cells: dict[tuple[Array, int], tuple[int, Value]] = field(  # LOCAL memory: size, value
        factory=dict[tuple[Array, int], tuple[int, Value]]
    )
    steps: int = 0
    rounds: list[int] = field(factory=list[int])
    held: frozenset[tuple[Array, int, Scope | None]] = frozenset()

    def run(self, statements: Sequence[Stmt]) -> None:
        for s in statements:
            self._count()
            self._step(s)

    def _count(self) -> None:
        self.steps += 1
        work.DONE.steps += 1
        if self.steps > MAX_STEPS or (self.steps % 256 == 0 and work.now() > self.until):
            raise TooLong

    def _step(self, s: Stmt) -> None:
        match s:
            case ir.Assign():
                self.values[s.var] = self.value(s.value)
            case ir.Load():
                if s.part:
                    value = self.value(s.pointer)
                    place = value if isinstance(value, Place) else None
                else:
                    place = self._access(s.pointer, s.type.size, Mode.READ, s.site)
                if s.var is not None:
                    self.values[s.var] = self._held(place, s.type) if place is not None else None
            case ir.Store():
                place = self._access(s.pointer, s.type.size, Mode.WRITE, s.site)
                if place is not None and place.array.space is Space.LOCAL:
                    self._keep(place, s.type.size, self.value(s.value))
            case ir.Atomic():
                self._access(s.pointer, s.type.size, s.mode, s.site, s.scope, s.elementwise)
                if s.var is not None:
                    self.values[s.var] = None
            case ir.Copy():
                size = self.value(s.size)
                if not isinstance(size, int):
                    raise NeedsData
                self._access(s.source, size, Mode.READ, s.where(Mode.READ))
                place = self._access(s.destination, size, Mode.WRITE, s.site)
                if place is not None and place.array.space is Space.LOCAL:
                    self.cells = {k: v for k, v in self.cells.items() if k[0] is not place.array}
            case ir.Barrier():
                value = self.value(s.mask) if s.mask is not None else None
                mask = value if isinstance(value, int) else None
                if s.scope is BarrierScope.OBJECT:
                    self._object(s)
                elif s.phase is ir.BarrierPhase.SYNC:
                    self.result.barriers.append(PassedBarrier(s.scope, s.size, mask, s.count is None))
            case ir.If():
                condition = self.value(s.condition)
                if condition is not None:
                    self.run(s.then if condition else s.otherwise)
                elif self.choice is not None:
                    self._choose(s, self.choice)
                else:
                    self._skip((*s.then, *s.otherwise))
            case ir.Loop():
                self._loop(s)
            case ir.Block():
                outer = self.held
                if s.lock is not None:
                    self.held |= {self._lock(s.lock)}
                try:
                    self.run(s.body)
                except _Left as left:
                    if left.label != s.label:
                        raise
                self.held = outer
            case ir.Leave():
                raise _Left(s.label)
            case ir.Fence() | ir.Assume() | ir.CommitCopies() | ir.AwaitCopies():
                pass
            case ir.Incomplete():
                if not s.harmless:
                    raise NeedsData

    def _lock(self, lock: ir.Lock) -> tuple[Array, int, Scope | None]:
        place = self.value(lock.pointer)
        if not isinstance(place, Place):
            raise NeedsData
        return place.array, place.offset, lock.scope

    def _object(self, s: ir.Barrier) -> None:
        """A barrier object as one of the block: any other is not replayed (``Summary.locks``)."""
        if s.phase is ir.BarrierPhase.SYNC or s.phase is ir.BarrierPhase.WAIT:
            self.result.barriers.append(PassedBarrier(BarrierScope.BLOCK, None, None, True))

    def _choose(self, s: ir.If, outcome: bool) -> None:
        outer, self.chosen = self.chosen, (s.site, outcome)
        try:
            self.run(s.then if outcome else s.otherwise)
        finally:
            self.chosen = outer

    def _held(self, place: Place, type: Type) -> Value:
        if place.array.space is Space.LOCAL:
            size, value = self.cells.get((place.array, place.offset), (0, None))
            return value if size == type.size else None
        return self.memory(place.array, place.offset) if isinstance(type, Int) else None

    def _keep(self, place: Place, size: int, value: Value) -> None:
        """LOCAL memory after a store: what it overlaps is gone."""
        for (array, start), (width, _) in list(self.cells.items()):
            if array is place.array and start < place.offset + size and place.offset < start + width:
                del self.cells[array, start]
        self.cells[place.array, place.offset] = (size, value)

    def _loop(self, s: ir.Loop) -> None:
        first = not s.tests_first
        depth = len(self.rounds)
        self.rounds.append(0)
        try:
            while True:
                if not first:
                    self.run(s.test)
                    condition = self.value(s.condition)
                    if condition is None:
                        self._skip((*s.test, *s.body, *s.step))
                        return
                    if not condition:
                        return
                first = False
                self._count()
                try:
                    self.run(s.body)
                except _Left as left:
                    if left.label != s.continue_label:
                        raise
                self.run(s.step)
                self.rounds[-1] += 1
        except _Left as left:
            if left.label != s.label:
                raise
        finally:
            del self.rounds[depth:]

    def _skip(self, statements: Sequence[Stmt]) -> None:
        """Passes over statements that may or may not run: allowed when nothing of interest is inside."""
        for s in statements:
            match s:
                case ir.Barrier() | ir.Leave() | ir.Incomplete():
                    raise NeedsData
                case ir.Assign() | ir.Load() | ir.Atomic():
                    if s.var is not None:
                        self.values[s.var] = None
                    if not isinstance(s, ir.Assign):
                        self._uninteresting(s.pointer)
                case ir.Store():
                    self._uninteresting(s.pointer)
                case ir.Copy():
                    self._uninteresting(s.source)
                    self._uninteresting(s.destination)
                case ir.If():
                    self._skip((*s.then, *s.otherwise))
                case ir.Loop():
                    self._skip((*s.test, *s.body, *s.step))
                case ir.Block():
                    self._skip(s.body)
                case _:
                    pass

    def _uninteresting(self, pointer: ir.Expr) -> None:
        pointer = root(pointer)
        if isinstance(pointer, ir.Var):
            held = self.values.get(pointer)
            array = held.array if isinstance(held, Place) else None
        else:
            array = pointer.array if isinstance(pointer, ir.AddressOf) else None
        if array is None or array in self.interesting:
            raise NeedsData
        if array.space is Space.LOCAL:
            self.cells = {k: v for k, v in self.cells.items() if k[0] is not array}

    def _access(
        self,
        pointer: ir.Expr,
        size: int,
        mode: Mode,
        site: Site,
        scope: Scope | None = None,
        elementwise: bool = False,
    ) -> Place | None:
        place = self.value(pointer)
        if not isinstance(place, Place):
            try:
                self._uninteresting(pointer)
            except NeedsData:
                raise NeedsData from None
            return None
        if place.array.space in (Space.SHARED, Space.GLOBAL):
            stop, passed = place.offset + size, len(self.result.barriers)
            done = ThreadAccess(
                site,
                place.array,
                place.offset,
                stop,
                mode,
                passed,
                scope,
                elementwise,
                self.chosen,
                tuple(self.rounds),
                self.held,
            )
            self.result.accesses.append(done)
        return place

    # -- expressions

    def value(self, e: ir.Expr) -> Value:
        match e:
            case ir.Const():
                return e.value if isinstance(e.value, int) and isinstance(e.type, Int) else None
            case ir.Var():
                return self.values.get(e)
            case ir.Builtin():
                return self.thread.axis(e.axis)
            case ir.AddressOf():
                return Place(e.array, 0)
            case ir.Offset():
                base, move = self.value(e.pointer), self.value(e.bytes)
                return Place(base.array, base.offset + move) if isinstance(base, Place) and isinstance(
                    move, int) else None  # fmt: skip
            case ir.Select():
                condition = self.value(e.condition)
                if not isinstance(condition, int):
                    return None
                return self.value(e.then if condition else e.otherwise)
            case ir.Cast():
                operand = self.value(e.operand)
                if isinstance(operand, Place):
                    return operand if isinstance(e.type, Pointer) else None
                return e.type.wrap(operand) if isinstance(operand, int) and isinstance(e.type, Int) else None
            case ir.Unary():
                operand = self.value(e.operand)
                if not isinstance(operand, int) or not isinstance(e.operand.type, Int):
                    return None
                return ops.UNARY[e.op].python(operand, e.operand.type)
            case ir.Binary():
                return self._binary(e)
            case ir.Intrinsic():
                return self._intrinsic(e)
            case ir.Unknown():
                return None

    def _binary(self, e: ir.Binary) -> Value:
        a, b = self.value(e.left), self.value(e.right)
        if e.op is ir.BinaryOp.AND and (a == 0 or b == 0):
            return 0
        if e.op is ir.BinaryOp.OR and ((isinstance(a, int) and a) or (isinstance(b, int) and b)):
            return 1
        if isinstance(a, Place) and isinstance(b, Place):
            if a.array is not b.array:
                return None
            return ops.BINARY[e.op].exact(a.offset, b.offset, INT64)
        if not isinstance(a, int) or not isinstance(b, int) or not isinstance(e.left.type, Int):
            return None
        return ops.BINARY[e.op].exact(a, b, e.left.type)

    def _intrinsic(self, e: ir.Intrinsic) -> Value:
        values = [self.value(operand) for operand in e.operands]
        known = [v for v in values if isinstance(v, int)]
        if len(known) != len(values) or not e.operands or not isinstance(e.operands[0].type, Int):
            return None
        function = ops.INTRINSICS.get(e.name)
        return function(tuple(known), e.operands[0].type) if function is not None else None


# -------------------------------------------------------------------------------------- collision


def closing_counts(run: Run, other: Thread, mine: Thread, warp_size: int, same_block: bool) -> list[int]:
    """For each prefix of the barrier log: how many of its barriers order ``mine`` and ``other``."""
    counts = [0]
    for barrier in run.barriers:
        counts.append(counts[-1] + _orders(barrier, mine, other, warp_size, same_block))
    return counts


def _orders(barrier: PassedBarrier, a: Thread, b: Thread, warp_size: int, same_block: bool) -> bool:
    if barrier.scope is BarrierScope.GRID:
        return True
    if not same_block:
        return False
    if barrier.scope in (BarrierScope.BLOCK, BarrierScope.CLUSTER):
        return True
    if barrier.scope is BarrierScope.NAMED:
        return barrier.everyone
    size = barrier.size or warp_size if barrier.scope is BarrierScope.TILE else warp_size
    if a.linear // size != b.linear // size:
        return False
    if barrier.mask is None:
        return True
    return all(barrier.mask >> (thread.linear % warp_size) & 1 for thread in (a, b))


def collide(
    first: tuple[Thread, Run], second: tuple[Thread, Run], sites: tuple[Site, Site], warp_size: int
) -> tuple[ThreadAccess, ThreadAccess] | None:
    """Two conflicting, unordered accesses at the two sites (first thread at the first site), if any."""
    (a, run_a), (b, run_b) = first, second
    same_block = a.bid == b.bid
    passed_a = closing_counts(run_a, b, a, warp_size, same_block)
    passed_b = closing_counts(run_b, a, b, warp_size, same_block)
    theirs: dict[tuple[Hashable, int], list[ThreadAccess]] = {}
    for access in run_b.accesses:
        if access.site == sites[1]:
            theirs.setdefault((memory_base(access.array)[0], passed_b[access.passed]), []).append(access)
    for mine in run_a.accesses:
        if mine.site != sites[0]:
            continue
        base, start = memory_base(mine.array)
        for access in theirs.get((base, passed_a[mine.passed]), ()):
            shift = memory_base(access.array)[1] - start
            meets = mine.start < access.stop + shift and access.start + shift < mine.stop
            if meets and _conflict(mine, access, same_block):
                return mine, access
    return None


def _conflict(a: ThreadAccess, b: ThreadAccess, same_block: bool) -> bool:
    if any(conflicts.lock_orders(scope, scope, same_block) for _, _, scope in a.held & b.held):
        return False
    return conflicts.seen_by_both(a.array, same_block) and conflicts.conflicting(a, b, same_block)
