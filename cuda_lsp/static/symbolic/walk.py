"""The symbolic walk: a kernel's statements, for one generic thread, → a tree of guarded events.

Branches merge values with ``choose``; ``Leave`` keeps a snapshot that merges where its block ends;
loops are summarised in closed form by ``loops`` (or walked round by round on request).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir import walk
from cuda_lsp.ir.deciding import KERNEL
from cuda_lsp.ir.program import Array, BarrierPhase, BarrierScope, Stmt, Var
from cuda_lsp.ir.types import INT64
from cuda_lsp.model import WARP_SIZE, Scope, Space
from cuda_lsp.static import budgets, work
from cuda_lsp.static.points_to import PointsTo
from cuda_lsp.static.symbolic import cells as memory_cells
from cuda_lsp.static.symbolic import lanes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import BarrierEvent, CopyEvent, Held
from cuda_lsp.static.symbolic.memory import Memory
from cuda_lsp.static.symbolic.scene import WAITING, State, TooLarge, in_order
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import PointerValue, choose


@define
class Walker(Memory):
    """Walks statements. ``walk_loop``: adds a loop's events and moves the state behind it.

    ``pointers``: where they may point.
    """

    walk_loop: Callable[[Walker, ir.Loop], None] = field(kw_only=True)
    pointers: PointsTo = field(kw_only=True)

    # -- statements

    def walk(self, statements: Sequence[Stmt]) -> None:
        """Walks the statements; raises ``TooLarge``."""
        for statement in statements:
            if self.state.alive is t.FALSE or self.path is t.FALSE:
                return
            self.statements += 1
            if self.statements > budgets.MOST_STATEMENTS:
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
                self.walk_loop(self, s)
            case ir.Block():
                self._block(s)
            case ir.Leave():
                self.left.setdefault(s.label, []).append((self.guard, self.state.copy()))
                if s.label == KERNEL:
                    self.returned = t.or_(self.returned, self.guard)
                self.state.alive = t.FALSE
            case ir.Assume():
                self.assumed = t.and_(self.assumed, t.or_(t.not_(self.guard), self._condition(s.condition)))
            case ir.Within():
                self._within(s)
            case ir.Incomplete():
                self._incomplete(s)

    def _condition(self, e: ir.Expr) -> Term:
        return self.evaluator().condition(e)

    def _if(self, s: ir.If) -> None:
        condition = self._condition(s.condition)
        if condition is t.TRUE or condition is t.FALSE:
            self.walk(s.then if condition is t.TRUE else s.otherwise)
            return
        condition = self.lasting.get(condition, condition)
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
        for array in in_order(apart):
            # Threads that went one way together found memory as that way left it.
            levels = (state.versions.get(array, (0, Level.BLOCK))[1] for state in (then, otherwise))
            versions[array] = (self.number(), max(t.level_of(condition), *levels))
            memory_cells.merged(self, array, then.versions, otherwise.versions, versions)
        local = {
            array: {o: v for o, v in cells.items() if otherwise.local.get(array, {}).get(o) == v}
            for array, cells in then.local.items()
        }
        filled = {a: x for a, x in then.filled.items() if otherwise.filled.get(a) is x}
        return State(values, t.bool_ite(condition, then.alive, otherwise.alive), versions, local, filled)

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
        stored = written_arrays(body, self.pointers)
        self.disturb(self.written if stored >= EVERY_ARRAY else stored)

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
            self.reasons[s.told] = None
        self.disturb(self.written)
        self.state.local.clear()
        self.state.filled.clear()

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
        if self.objects.whole(s) and t.level_of(self.guard) <= Level.BLOCK:  # else others meet elsewhere
            return evolve(s, scope=BarrierScope.BLOCK)
        self.locks = self.locks or "a barrier of some threads, which the solver does not follow"
        return None

    def _whole_block(self, count: ir.Expr) -> bool:
        wanted, threads = self.evaluator().integer(count), self.block_threads
        return wanted.is_const and threads is not None and wanted.value >= threads

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
        guard, labels, full = self.guard, False, mask is None
        vote = lanes.members(self, mask) if mask is not None else None
        if vote is not None:
            guard, mask, labels = t.and_(guard, vote[0]), vote[1], vote[1] is not None
        of_tile = s.scope is BarrierScope.TILE and 0 < (s.size or 0) <= WARP_SIZE
        of_lanes = of_tile or s.scope is BarrierScope.WARP
        asked = of_lanes and not s.implied and vote is None and _of_coordinates(mask)
        returned = self.returned if asked else None
        key = self.evaluator().integer(s.id) if s.id is not None else None
        together = not self.named_apart or t.level_of(guard) <= Level.BLOCK
        everyone = not self.arrives and together and (s.count is None or self._whole_block(s.count))
        if s.scope is ir.BarrierScope.NAMED and (s.phase is not BarrierPhase.SYNC or not everyone):
            self.locks = self.locks or "a barrier of some threads, which the solver does not follow"
        self.events.append(
            BarrierEvent(
                s.scope, s.phase, guard, s.site, mask, s.size, key, everyone, s.assured,
                completes, labels, returned,
            )
        )  # fmt: skip
        wide = s.assured and s.scope.of_blocks
        level = Level.THREAD
        if wide and s.phase is not BarrierPhase.ARRIVE:
            level = Level.GRID if s.scope is BarrierScope.GRID else Level.BLOCK
        for array in in_order(self.written):
            if array.space is not Space.LOCAL:
                cells = memory_cells.of_version(self, array, self.state.versions)
                among = max(level, Level.BLOCK) if array.space is Space.SHARED else level  # each has its own
                self.state.versions[array] = (self.number(), among)
                if level is not Level.THREAD:
                    memory_cells.barrier(self, array, cells)
                else:
                    whole = s.scope is BarrierScope.WARP and full and s.assured
                    memory_cells.warp_barrier(self, array, cells, whole)


def _of_coordinates(mask: Term | None) -> bool:
    """The thread's place alone says which lanes a mask names."""
    for x in t.subterms(mask) if mask is not None else ():
        if x.op in (Op.APPLY, Op.TEST) or (x.op is Op.SYMBOL and x.args[1] is Level.GRID):
            return False
    return True


def written_arrays(statements: Sequence[Stmt], pointers: PointsTo) -> frozenset[Array]:
    """Arrays that stores, atomics and copies may write; all of the kernel's when nobody knows."""
    written = pointers.written(statements)
    unread = (s for s in walk.walk(statements) if isinstance(s, ir.Incomplete))
    if written is not None and all(s.harmless or s.pointers for s in unread):
        return written
    return EVERY_ARRAY | (written or frozenset())


EVERY_ARRAY: frozenset[Array] = frozenset({Array("(any)", Space.GLOBAL, INT64, (), -1)})
"""Marks a set of written arrays that may miss some."""
