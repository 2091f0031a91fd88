"""The symbolic walk: a kernel's statements, for one generic thread, → a tree of guarded events.

Branches merge values with ``choose``; ``Leave`` keeps a snapshot that merges where its block ends;
loops are summarised in closed form by ``loops`` (or walked round by round on request).
What memory holds is an unknown function of array, offset and *version*; a version changes with
every store of this thread and at every barrier, so that a value read twice is one value only when
nothing can have changed it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set

from attrs import define, evolve, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, BarrierPhase, BarrierScope, Stmt, Var
from cuda_lsp.ir.types import INT64, Int, Pointer, Type
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static import work
from cuda_lsp.static.execution.enumerate import facts_of
from cuda_lsp.static.symbolic import cells as memory_cells
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.cells import Cells
from cuda_lsp.static.symbolic.events import (
    Access,
    BarrierEvent,
    CopyEvent,
    Drawing,
    Event,
    Fact,
    Held,
    Place,
    Summary,
    TicketEvent,
    accesses,
)
from cuda_lsp.static.symbolic.lanes import Vote, exchanged
from cuda_lsp.static.symbolic.objects import WholeObjects, regular
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import (
    NOWHERE,
    Evaluator,
    HeaderPlace,
    PointerValue,
    Value,
    choose,
    type_range,
)

_ALL_ONES = (1 << 32) - 1
MAX_STATEMENTS = 20_000
"""Statements walked for one kernel; beyond it the analysis gives up and says so."""


class TooLarge(Exception):
    """The kernel exceeds the walk's budget."""


@define
class State:
    """What the generic thread knows at one point of the program."""

    values: dict[Var, Value] = field(factory=dict[Var, Value])
    alive: Term = t.TRUE  # has not left the enclosing blocks, given the path
    versions: dict[Array, tuple[int, Level]] = field(factory=dict[Array, tuple[int, Level]])
    local: dict[Array, dict[Term, tuple[int, Value]]] = field(
        factory=dict[Array, dict[Term, tuple[int, Value]]]
    )

    def copy(self) -> State:
        local = {array: dict(cells) for array, cells in self.local.items()}
        return State(dict(self.values), self.alive, dict(self.versions), local)


@define
class Walker:
    """Walks one kernel under one launch. ``unroll``: rounds of a loop walked one by one (0: none)."""

    axes: Mapping[ir.Axis, Term]
    arguments: Mapping[Var, Value]
    unroll: int = 0
    state: State = field(factory=State)
    path: Term = t.TRUE
    assumed: Term = t.TRUE
    events: list[Event] = field(factory=list[Event])
    iterators: tuple[Term, ...] = ()
    facts: dict[str, Fact] = field(factory=dict[str, Fact])
    unknowns: dict[str, str] = field(factory=dict[str, str])
    loaded: set[str] = field(factory=set[str])
    sizes: dict[str, frozenset[str]] = field(factory=dict[str, frozenset[str]])
    slots: dict[str, Drawing] = field(factory=dict[str, Drawing])
    votes: dict[str, Vote] = field(factory=dict[str, Vote])
    places: dict[str, Place] = field(factory=dict[str, Place])
    limits: dict[str, Fact] = field(factory=dict[str, Fact])
    cells: dict[tuple[Array, int], Cells] = field(factory=dict[tuple[Array, int], Cells])
    tainted: set[str] = field(factory=set[str])
    unsteady: set[Array] = field(factory=set[Array])  # counters that something may set back
    counters: frozenset[Array] = frozenset()  # those that begin at 0 or above, and only grow
    tainted_arrays: set[Array] = field(factory=set[Array])
    reasons: dict[str, None] = field(factory=dict[str, None])
    left: dict[int, list[tuple[Term, State]]] = field(factory=dict[int, list[tuple[Term, State]]])
    written: frozenset[Array] = frozenset()
    fenced: bool = False
    held: tuple[Held, ...] = ()
    locks: str = ""  # what may order threads and is not followed, for people
    waiting: frozenset[int] = frozenset()  # id() of loops that wait for what other threads store
    arrives: bool = False  # some threads arrive at a named barrier without waiting
    objects: WholeObjects = field(factory=lambda: WholeObjects(None, regular=False))
    counter: int = 0
    statements: int = 0
    depth: int = 0
    deadline: float = math.inf  # work.now

    # -- naming

    def number(self) -> int:
        self.counter += 1
        return self.counter

    def fresh(self, what: str, level: Level, type: Type, loaded: bool = False) -> Value:
        """A value that nothing is known of, one per execution of this program point.

        ``loaded``: data from memory is part of it.
        """
        if isinstance(type, Pointer):
            return NOWHERE
        name = f"?{self.number()}"
        self.unknowns[name] = what
        if loaded:
            self.loaded.add(name)
        return t.apply(name, level, self.iterators, *type_range(type))

    def evaluator(self) -> Evaluator:
        return Evaluator(
            self.axes, self.lookup, self.fresh, self.sizes, lambda e: exchanged(self, e),
            lambda size: t.says_at_most_zero(self._conditions(), size),
        )  # fmt: skip

    def _conditions(self) -> Iterator[Term]:
        """What holds here."""
        for part in (self.path, self.state.alive, self.assumed):
            yield from t.conjuncts(part)

    def lookup(self, var: Var) -> Value:
        known = self.state.values.get(var)
        if known is None:
            known = self.arguments.get(var)
        if known is None:
            known = self.fresh(f"`{var.name}` before any assignment", Level.THREAD, var.type)
            self.state.values[var] = known
        return known

    @property
    def guard(self) -> Term:
        return t.and_(self.path, self.state.alive)

    # -- statements

    def walk(self, statements: Sequence[Stmt]) -> None:
        for statement in statements:
            if self.state.alive is t.FALSE or self.path is t.FALSE:
                return
            self.statements += 1
            if self.statements > MAX_STATEMENTS:
                raise TooLarge("the kernel is too large for the solver's symbolic walk")
            if work.now() > self.deadline:
                raise TooLarge("walking through the kernel took all of the solver's time")
            self._statement(statement)

    def _statement(self, s: Stmt) -> None:
        match s:
            case ir.Assign():
                self.state.values[s.var] = self.evaluator().value(s.value)
            case ir.Load():
                self._load(s)
            case ir.Store():
                self._store(s)
            case ir.Atomic():
                self._atomic(s)
            case ir.Copy():
                self._copy(s)
            case ir.Barrier():
                self._barrier(s)
            case ir.CommitCopies():
                self.events.append(CopyEvent(self.guard))
            case ir.AwaitCopies():
                self._await(s)
            case ir.Fence():
                self.fenced = self.fenced or s.scope is not Scope.BLOCK
            case ir.If():
                self._if(s)
            case ir.Loop():
                from cuda_lsp.static.symbolic.loops import walk_loop

                walk_loop(self, s)
            case ir.Block():
                self._block(s)
            case ir.Leave():
                self.left.setdefault(s.label, []).append((self.guard, self.state.copy()))
                self.state.alive = t.FALSE
            case ir.Assume():
                self.assumed = t.and_(self.assumed, t.or_(t.not_(self.guard), self._condition(s.condition)))
            case ir.Incomplete():
                self._incomplete(s)

    def _condition(self, e: ir.Expr) -> Term:
        return self.evaluator().condition(e)

    def _if(self, s: ir.If) -> None:
        condition = self._condition(s.condition)
        if condition is t.TRUE or condition is t.FALSE:
            self.walk(s.then if condition is t.TRUE else s.otherwise)
            return
        outer, before = self.path, self.state
        ends: list[State] = []
        for arm, taken in ((s.then, condition), (s.otherwise, t.not_(condition))):
            self.path, self.state = t.and_(outer, before.alive, taken), before.copy()
            self.state.alive = t.TRUE
            self.walk(arm)
            ends.append(self.state)
        self.path = outer
        self.state = self.merge(condition, ends[0], ends[1])
        self.state.alive = t.and_(before.alive, self.state.alive)

    def merge(self, condition: Term, then: State, otherwise: State) -> State:
        """The state after two ways met: ``then``'s values where ``condition``."""
        if then.alive is t.FALSE or otherwise.alive is t.FALSE:
            live = otherwise if then.alive is t.FALSE else then
            result = live.copy()
            result.alive = t.bool_ite(condition, then.alive, otherwise.alive)
            return result
        values = dict(otherwise.values)
        for var, value in then.values.items():
            other = otherwise.values.get(var)
            values[var] = value if other is None or other == value else choose(condition, value, other)
        versions = dict(otherwise.versions)
        apart = [
            array for array in then.versions.keys() | otherwise.versions.keys()
            if then.versions.get(array) != otherwise.versions.get(array)
        ]  # fmt: skip
        versions.update(then.versions)
        for array in sorted(apart, key=lambda array: array.id):
            versions[array] = (self.number(), Level.THREAD)
            memory_cells.merged(self, array, then.versions, otherwise.versions, versions)
        local = {
            array: {o: v for o, v in cells.items() if otherwise.local.get(array, {}).get(o) == v}
            for array, cells in then.local.items()
        }
        return State(values, t.bool_ite(condition, then.alive, otherwise.alive), versions, local)

    def _block(self, s: ir.Block) -> None:
        outer_left = self.left.pop(s.label, None)
        known = set(self.state.values)
        outer_held = self.held
        if s.lock is not None:
            self._take(s.lock, s.body)
        self.walk(s.body)
        if s.lock is not None:
            self.held = outer_held
            self._others_stored(s.body)
        self.rejoin(s.label, known)
        if outer_left:
            self.left[s.label] = outer_left

    def _take(self, lock: ir.Lock, body: Sequence[Stmt]) -> None:
        place = self.evaluator().value(lock.pointer)
        targets = place.targets if isinstance(place, PointerValue) else ()
        if len(targets) == 1 and isinstance(targets[0].array, Array):
            self.held = (*self.held, Held(targets[0].array, targets[0].offset, lock.scope))
        else:
            self.locks = self.locks or WAITING
        self._others_stored(body)

    def _others_stored(self, body: Sequence[Stmt]) -> None:
        """Whoever had the lock in between may have changed what its region stores."""
        stored = written_arrays(body)
        for array in self.written if stored >= EVERY_ARRAY else stored:
            self.state.versions[array] = (self.number(), Level.THREAD)

    def rejoin(self, label: int, known: set[Var]) -> None:
        """Lanes that left to ``label`` continue here with what they knew of the variables ``known``."""
        premises = set(t.conjuncts(self.path))
        for guard, state in self.left.pop(label, ()):
            condition = t.and_(*(c for c in t.conjuncts(guard) if c not in premises))
            state.alive = t.TRUE
            now = self.state
            alive = t.or_(now.alive, condition)
            if now.alive is not t.FALSE:
                shared = {var: value for var, value in now.values.items() if var in known}
                state.values = {**now.values, **{v: state.values[v] for v in shared if v in state.values}}
            state.alive = t.TRUE
            reached = now.copy()
            reached.alive = t.TRUE if now.alive is not t.FALSE else t.FALSE
            self.state = self.merge(condition, state, reached)
            self.state.alive = alive

    def _incomplete(self, s: ir.Incomplete) -> None:
        if not s.harmless and self.depth == 0:
            self.reasons[f"{s.construct} is not analysed ({s.reason})"] = None
        for array in self.written:
            self.state.versions[array] = (self.number(), Level.THREAD)
        self.state.local.clear()

    # -- memory

    def _places(self, pointer: ir.Expr, site: Site) -> PointerValue:
        value = self.evaluator().value(pointer)
        if not isinstance(value, PointerValue):
            value = NOWHERE
        if self.depth == 0 and any(x.array is None for x in value.targets):
            self.reasons[f"where `{site.text or 'a pointer'}` points is not known"] = None
        return value

    def _access(
        self, pointer: ir.Expr, size: Term, mode: Mode, site: Site,
        scope: Scope | None = None, value: Term | None = None,
    ) -> PointerValue:  # fmt: skip
        places = self._places(pointer, site)
        for target in places.targets:
            array = target.array
            if array is None or isinstance(array, HeaderPlace):
                continue
            if array.space in (Space.LOCAL, Space.CONSTANT):
                continue
            guard = t.and_(self.guard, target.condition)
            if guard is not t.FALSE:
                guard, order = t.and_(guard, self.assumed), self.number()
                self.events.append(
                    Access(array, target.offset, size, mode, guard, site, order, scope, value, self.held)
                )
        return places

    def _content(self, places: PointerValue, type: Type) -> Value:
        """What memory holds there now."""
        if isinstance(type, Pointer):
            return self._local_content(places, NOWHERE)
        total: Value | None = None
        for target in places.targets:
            value = self._cell(target.array, target.offset, type)
            total = value if total is None else choose(target.condition, value, total)
        return total if total is not None else self.fresh("a value read from memory", Level.THREAD, type)

    def _local_content(self, places: PointerValue, default: Value) -> Value:
        if len(places.targets) != 1:
            return default
        array, offset = places.targets[0].array, places.targets[0].offset
        known = self.state.local.get(array, {}).get(offset) if isinstance(array, Array) else None
        return known[1] if known is not None else default

    def _cell(self, array: Array | HeaderPlace | None, offset: Term, type: Type) -> Value:
        if array is None or isinstance(array, HeaderPlace):
            operand = () if array is None else (offset,)
            name = f"?{self.number()}"
            self.unknowns[name] = "a value read through an unknown pointer"
            return t.apply(name, Level.THREAD, (*self.iterators, *operand), *type_range(type))
        if array.space is Space.LOCAL:
            known = self.state.local.get(array, {}).get(offset)
            if known is not None and known[0] == type.size:
                return known[1]
        if array not in self.written:
            name, level, operands = memory_name(array), Level.GRID, (offset,)
            level = Level.BLOCK if array.space is Space.SHARED else level
            level = Level.THREAD if array.space is Space.LOCAL else level
        else:
            number, level = self.state.versions.get(array, (0, Level.BLOCK))
            level = Level.THREAD if array.space is Space.LOCAL else level
            name, operands = f"{memory_name(array)}@{number}", (offset, *self.iterators)
        if not isinstance(type, Int):
            name += f":{type}"
        self.unknowns[name] = f"the contents of `{array.name}`"
        if array in self.tainted_arrays:
            self.tainted.add(name)
        held = t.apply(name, level, operands, *type_range(type))
        cells = memory_cells.of_version(self, array, self.state.versions)
        return memory_cells.content(self, offset, type, held, cells)

    def _load(self, s: ir.Load) -> None:
        size = t.const(s.type.size)
        places = (
            self._places(s.pointer, s.site) if s.part else self._access(s.pointer, size, Mode.READ, s.site)
        )
        if s.var is not None:
            self.state.values[s.var] = self._content(places, s.type)

    def _store(self, s: ir.Store) -> None:
        value = self.evaluator().value(s.value)
        known = value if isinstance(value, Term) else None
        places = self._access(s.pointer, t.const(s.type.size), Mode.WRITE, s.site, value=known)
        before = self._cells(places)
        self.overwrite(places, s.type.size)
        for array, cells in before:
            memory_cells.store(self, array, places.targets[0].offset, s.type.size, known, cells)
        if known is not None and self._is_tainted(known):
            self.tainted_arrays.update(x.array for x in places.targets if isinstance(x.array, Array))
        if len(places.targets) == 1:
            target = places.targets[0]
            if isinstance(target.array, Array) and target.array.space is Space.LOCAL:
                self.state.local.setdefault(target.array, {})[target.offset] = (s.type.size, value)

    def _cells(self, places: PointerValue) -> list[tuple[Array, Cells | None]]:
        """What is known of the elements of the one array that a pointer points into."""
        if len(places.targets) != 1 or not isinstance(places.targets[0].array, Array):
            return []
        array = places.targets[0].array
        return [(array, memory_cells.of_version(self, array, self.state.versions))]

    def _is_tainted(self, value: Term) -> bool:
        return any(p.op is Op.APPLY and p.args[0] in self.tainted for p in t.subterms(value))

    def overwrite(self, places: PointerValue, size: int | None) -> None:
        """After a store of ``size`` bytes there, earlier reads of the arrays say nothing of later ones."""
        for target in places.targets:
            if not isinstance(target.array, Array):
                continue
            self.state.versions[target.array] = (self.number(), Level.THREAD)
            cells = self.state.local.get(target.array, {})
            for other, (width, _) in list(cells.items()):
                if size is None or not _apart(other, width, target.offset, size):
                    del cells[other]

    def _atomic(self, s: ir.Atomic) -> None:
        begun = len(self.events)
        places = self._access(s.pointer, t.const(s.type.size), s.mode, s.site, s.scope)
        if s.elementwise:
            self.events[begun:] = [
                evolve(e, elementwise=True) if isinstance(e, Access) else e for e in self.events[begun:]
            ]
        in_global = any(isinstance(x.array, Array) and x.array.space is Space.GLOBAL for x in places.targets)
        if self.fenced and in_global and s.row.reads and s.row.writes:
            self.events.append(TicketEvent())
        if s.row.swaps and self.iterators and not self.held:
            self.locks = self.locks or WAITING
        before = self._cells(places)
        if s.row.writes:
            self.overwrite(places, s.type.size)
        step = self._raises_by(s)
        if step is None:
            self.unsteady.update(x.array for x in places.targets if isinstance(x.array, Array))
        number = self._number_drawn(s, places, step) if s.var is not None else None
        if s.row.writes and step is not None:
            for array, cells in before:
                offset = places.targets[0].offset
                number = memory_cells.raised(self, array, offset, s.type.size, step, number, cells)
        if s.var is not None and number is not None:
            self.state.values[s.var] = number

    def _number_drawn(self, s: ir.Atomic, places: PointerValue, step: Term | None) -> Term:
        """What the atomic returns: for a counter, one of the numbers that it hands out."""
        name = f"atomic{self.number()}"
        self.unknowns[name] = f"the result of an atomic on `{s.site.text}`"
        self.tainted.add(name)
        target = places.targets[0] if len(places.targets) == 1 else None
        operands: tuple[Term, ...] = self.iterators
        if target is not None and isinstance(target.array, Array):
            operands = (target.offset, *self.iterators)
            if step is not None and step is not t.ZERO:
                self.slots[name] = Drawing(target.array, step, operands, name, len(self.iterators))
        lo, hi = type_range(s.type)
        if target is not None and step is not None and target.array in self.counters:
            lo = max(lo, 0)
        return t.apply(name, Level.THREAD, operands, lo, hi)

    def _raises_by(self, s: ir.Atomic) -> Term | None:
        """By how much the atomic raises its counter; None: it may set it back (``atomicInc``)."""
        if not s.row.writes:
            return t.ZERO
        operand = self.evaluator().value(s.operands[0]) if s.operands else None
        if not isinstance(operand, Term):
            return None
        if s.op is AtomicOp.INC:
            return t.ONE if operand.is_const and operand.value in (-1, _ALL_ONES) else None
        most = (1 << (8 * s.type.size - 1)) - 1  # beyond it, it lowers the counter
        return operand if s.op is AtomicOp.ADD and operand.lo >= 0 and operand.hi <= most else None

    def _copy(self, s: ir.Copy) -> None:
        size = self.evaluator().integer(s.size)
        by_block = s.team is BarrierScope.BLOCK
        if s.team is not None and not by_block and self.depth == 0:
            what = "which thread of a group copies what is not modelled by the solver"
            self.reasons[f"{s.mechanism}: {what}"] = None
            self.overwrite(self._places(s.destination, s.site), None)
            return
        begun = len(self.events)
        self._access(s.source, size, Mode.READ, s.where(Mode.READ))
        places = self._access(s.destination, size, Mode.WRITE, s.site)
        if s.asynchronous:
            issued = self.events[begun:]
            self.events[begun:] = [
                evolve(e, copying=True, team=by_block) if isinstance(e, Access) else e for e in issued
            ]
        self.overwrite(places, None)
        for target in places.targets:
            if isinstance(target.array, Array):
                self.state.local.pop(target.array, None)

    def _await(self, s: ir.AwaitCopies) -> None:
        pending = self.evaluator().integer(s.pending) if s.pending is not None else t.const(-1)
        if s.pending is None or (pending.is_const and pending.value >= 0):
            self.events.append(CopyEvent(self.guard, pending.value))
        elif pending.is_const and self.depth == 0:
            self.reasons[f"`{s.site.text}` waits for a stage that was not committed"] = None

    def _object(self, s: ir.Barrier) -> ir.Barrier | None:
        """A step at a barrier object as one of a barrier of the block; None: it orders nothing known."""
        if s.phase is BarrierPhase.INIT:
            count = self.evaluator().integer(s.count) if s.count is not None else None
            known = count.value if count is not None and count.is_const else None
            self.objects.initialised(s, known)
            return None
        if s.phase is BarrierPhase.BIND:
            self.events.append(CopyEvent(self.guard, bound=True))
            return None
        if self.objects.whole(s):
            return evolve(s, scope=BarrierScope.BLOCK)
        self.locks = self.locks or "a barrier of some threads, which the solver does not follow"
        return None

    def _whole_block(self, count: ir.Expr) -> bool:
        wanted = self.evaluator().integer(count)
        x, y, z = (self.axes[axis] for axis in (ir.Axis.BDIM_X, ir.Axis.BDIM_Y, ir.Axis.BDIM_Z))
        known = wanted.is_const and x.is_const and y.is_const and z.is_const
        return known and wanted.value >= x.value * y.value * z.value

    def _barrier(self, s: ir.Barrier) -> None:
        completes = s.scope is BarrierScope.OBJECT
        if completes:
            step = self._object(s)
            if step is None:
                return
            s = step
        mask = None
        if s.mask is not None:
            mask = self.evaluator().integer(s.mask)
            if not mask.is_const or mask.value % (1 << 32) == 0xFFFFFFFF:
                mask = None if mask.is_const else mask
            elif mask.is_const:
                mask = t.const(mask.value % (1 << 32))
        key = self.evaluator().integer(s.id) if s.id is not None else None
        everyone = not self.arrives and (s.count is None or self._whole_block(s.count))
        if s.scope is ir.BarrierScope.NAMED and (s.phase is not BarrierPhase.SYNC or not everyone):
            self.locks = self.locks or "a barrier of some threads, which the solver does not follow"
        self.events.append(
            BarrierEvent(
                s.scope, s.phase, self.guard, s.site, mask, s.size, key, everyone, s.assured, completes
            )
        )
        wide = s.assured and s.scope in (BarrierScope.BLOCK, BarrierScope.CLUSTER, BarrierScope.GRID)
        level = Level.THREAD
        if wide and s.phase is not BarrierPhase.ARRIVE:
            level = Level.GRID if s.scope is BarrierScope.GRID else Level.BLOCK
        for array in self.written:
            if array.space is not Space.LOCAL:
                cells = memory_cells.of_version(self, array, self.state.versions)
                self.state.versions[array] = (self.number(), level)
                if level is not Level.THREAD:
                    memory_cells.barrier(self, array, cells)
                else:
                    whole = s.scope is BarrierScope.WARP and mask is None and s.assured
                    memory_cells.warp_barrier(self, array, cells, whole)


WAITING = "what a loop waits for, which may act as a lock"


def memory_name(array: Array) -> str:
    """The function that a read-only array's contents are: byte offset → value."""
    return f"{array.name}[{array.id}]"


def _apart(a: Term, size_a: int, b: Term, size_b: int) -> bool:
    gap = t.sub(b, a)
    return gap.lo >= size_a or gap.hi <= -size_b


def written_arrays(statements: Sequence[Stmt]) -> frozenset[Array]:
    """Arrays that stores, atomics and copies may write; all of the kernel's when that is not plain."""
    written = walk.written_arrays(statements)
    found = frozenset(a for a in written if a is not None)
    unread = (s for s in walk.walk(statements) if isinstance(s, ir.Incomplete))
    plain = None not in written and all(s.harmless or s.pointers for s in unread)
    return found if plain else EVERY_ARRAY | found


EVERY_ARRAY: frozenset[Array] = frozenset({Array("(any)", Space.GLOBAL, INT64, (), -1)})
"""Marks a set of written arrays that may miss some."""


def steady(drawing: Drawing, reset: frozenset[Array], wavering: Set[Array]) -> bool:
    """The counter never hands out a number twice, but for resets within the block."""
    array = drawing.array
    aliases = array.may_alias is not None and any(a.may_alias == array.may_alias for a in reset | wavering)
    if aliases or array in wavering:
        return False
    return array not in reset or array.space is Space.SHARED


def summarise(
    kernel: ir.Kernel,
    axes: Mapping[ir.Axis, Term],
    arguments: Mapping[Var, Value],
    unroll: int = 0,
    deadline: float = math.inf,
) -> Summary:
    """The kernel under the launch that ``axes`` and ``arguments`` describe.

    ``deadline``: of ``work.now``. Raises ``TooLarge``.
    """
    written = written_arrays(kernel.body)
    if written >= EVERY_ARRAY:
        written = frozenset(a for a in kernel.arrays if a.space is not Space.CONSTANT)
    facts = facts_of(kernel)
    counters = frozenset(a for a in written if a.space is Space.GLOBAL)
    while True:
        walker = Walker(
            axes, arguments, unroll, written=written, waiting=frozenset(facts.waiting), arrives=facts.arrives,
            deadline=deadline, counters=counters,
        )  # fmt: skip
        x, y, z = (axes[axis] for axis in (ir.Axis.BDIM_X, ir.Axis.BDIM_Y, ir.Axis.BDIM_Z))
        threads = x.value * y.value * z.value if x.is_const and y.is_const and z.is_const else None
        walker.objects = WholeObjects(threads, regular(kernel.body))
        walker.walk(kernel.body)
        # A counter that something sets back hands out a number twice, and negative ones.
        stored = frozenset(e.array for e in accesses(walker.events) if e.mode is Mode.WRITE)
        taken = {slot.array for slot in walker.slots.values()} & counters
        kept = {slot.array for slot in walker.slots.values() if steady(slot, stored, walker.unsteady)}
        if taken <= kept:
            break
        counters &= kept
    assumption = t.and_(*(walker.evaluator().condition(a) for a in kernel.directives.assumptions))
    return Summary(
        tuple(walker.events),
        walker.facts,
        walker.unknowns,
        {name: slot for name, slot in walker.slots.items() if steady(slot, stored, walker.unsteady)},
        frozenset(walker.tainted),
        tuple(walker.reasons),
        assumption,
        walker.locks,
        walker.assumed,
        frozenset(walker.loaded),
        walker.sizes,
        walker.places,
        walker.limits,
        stored,
    )
