"""Statements over all threads at once: masks, leaves, memory accesses, barriers.

Every statement runs under a mask of lanes that surely (``must``) and possibly (``may``) execute it; the
two differ only below conditions that depend on data.  Block-uniform unknown conditions around barriers
are decided both ways, one execution each (``choices``).  Lanes run in lock step, which is one legal
schedule; that other schedules may differ is what the race analysis on the log decides.
Loops are in ``loops.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.ir.ops import pretty
from cuda_lsp.ir.program import (
    Array,
    Assign,
    Assume,
    Atomic,
    AwaitCopies,
    Barrier,
    Block,
    Cast,
    CommitCopies,
    Const,
    Copy,
    Expr,
    Fence,
    If,
    Incomplete,
    Leave,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
)
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static import tickets
from cuda_lsp.static.barrier_steps import synchronise
from cuda_lsp.static.clocks import WarpClock
from cuda_lsp.static.contents import SharedContents
from cuda_lsp.static.copies import Copies
from cuda_lsp.static.evaluate import Evaluator
from cuda_lsp.static.loops import execute_loop
from cuda_lsp.static.masks import Mask, without
from cuda_lsp.static.named_barriers import NamedBarriers
from cuda_lsp.static.ranges import truth_bounds
from cuda_lsp.static.representatives import assumed_grid
from cuda_lsp.static.slicing import Slice, tracked
from cuda_lsp.static.trace import Access, Budget, FenceEvent, LockEvent, Path, Ticketing, Trace, array_bytes
from cuda_lsp.static.values import (
    Address,
    Choice,
    Data,
    Flags,
    Lanes,
    Spread,
    Ticket,
    Value,
    distinct,
    identity,
    spread_of,
)

_STATEMENT, _LANE = 15e-3, 2e-6  # milliseconds of work, on a core of 2020
_SAMPLES = 4  # executions of one read-only access kept for coalescing


class OutOfBudget(Exception):
    """The execution stops here; the argument says which limit, for people."""


class OutOfTime(OutOfBudget):
    """Somebody waits for what there is."""


class Machine:
    """One execution of a kernel: one ``Path`` of the trace."""

    def __init__(
        self, facts: Slice, trace: Trace, evaluator: Evaluator, budget: Budget, choices: Sequence[bool]
    ) -> None:
        self.facts = facts
        self.trace = trace
        self.eval = evaluator
        self.budget = budget
        self.path = Path()
        self.planned = list(choices)
        self.blocks = len(trace.blocks)
        self.grid = trace.launch.grid or assumed_grid(trace.launch)
        self.clock: tuple[int, ...] = (0,) * self.blocks
        self.grid_clock = 0
        self.warp: WarpClock | None = None
        if facts.warp_barriers and trace.gpu.independent_threads:
            self.warp = WarpClock.start(self.blocks, trace.threads, trace.gpu.warp_size)
        self.sequence = 0
        self.tracked_sequence = 0
        self.synced: object = None
        self.loops: tuple[tuple[str, Value], ...] = ()
        self.left: dict[int, Mask] = {}
        self.leave_log: list[int] = []
        self.versions: dict[int, int] = {}
        self.plain_stores: dict[int, int] = {}
        self.atomic_ways: dict[int, set[str | None]] = {}
        self._masks: dict[object, tuple[Mask | None, Mask, Lanes]] = {}
        self.shared: dict[int, SharedContents] = {}
        self.local: dict[int, dict[int, Value]] = {}
        self.steps = 0
        self.work = 0.0  # about milliseconds
        self.recorded = 0
        self.samples: dict[int, int] = {}
        self.doubt: str | None = None
        self.named = NamedBarriers()
        self.copies = Copies(np.zeros(trace.lanes, np.int64))
        self.round_masks: dict[object, tuple[tuple[int, Mask | None, bool], Mask, int | Lanes]] = {}
        every = np.ones(trace.lanes, bool)
        self.everyone = Mask(every, every)
        self._execute: dict[type, Callable[[Any, Mask], Mask | None]] = {
            Assign: self._assign,
            Load: self._load,
            Store: self._store,
            Atomic: self._atomic,
            Copy: self._copy,
            CommitCopies: self._commit,
            AwaitCopies: self._await,
            Barrier: self._barrier,
            Fence: self._fence,
            If: self._if,
            Block: self._block,
            Leave: self._leave,
            Assume: self._assume,
            Incomplete: self._incomplete,
            Loop: self._loop,
        }

    # ---------------------------------------------------------------------------------- control

    def run(self, statements: tuple[Stmt, ...], mask: Mask | None) -> Mask | None:
        """Execute a list; the lanes that reach its end (None: no lane)."""
        for s in statements:
            if mask is None:
                return None
            self.steps += 1
            if self.steps > self.budget.steps:
                raise OutOfBudget(f"more than {self.budget.steps} statements executed")
            self.work += _STATEMENT + _LANE * mask.may.size
            if self.work > self.budget.milliseconds:
                raise OutOfBudget(f"more than about {self.budget.milliseconds:g} ms of execution")
            if not self.steps & 7 and time.perf_counter() > self.budget.until:
                raise OutOfTime("it takes longer than a pause in the typing")
            mask = self._execute[type(s)](s, mask)
        return mask

    def narrowed(self, mask: Mask, condition: Lanes) -> Mask | None:
        """The lanes of ``mask`` where ``condition`` holds."""
        key = ("and", id(mask), id(condition))
        cached = self._masks.get(key)
        if cached is not None:
            return cached[0]
        flags = condition.astype(bool, copy=False)
        may = mask.may & flags
        result = None
        if may.any():
            must = may if mask.sure else mask.must & flags
            given = None if mask.given is None else mask.given & flags
            result = Mask(must, may, mask.guards, mask.drawn, mask.doubt, given)
        self._masks[key] = (result, mask, condition)
        return result

    def unsure(self, mask: Mask, condition: Data, outcome: bool) -> Mask | None:
        """The lanes of ``mask`` that an unknown condition may select; None: no lane."""
        key = ("unsure", id(mask), condition.serial, outcome)
        cached = self._masks.get(key)
        if cached is not None:
            return cached[0]
        guards = mask.guards
        if condition.spread >= Spread.BLOCK:
            guards = (*guards, (condition.serial, outcome))
        drawn = tickets.if_outcome(condition, outcome)
        given = None if drawn is None or mask.drawn is not None else mask.must & drawn.holds
        none = np.zeros_like(mask.must)
        may = mask.may & self._selectable(mask, condition, outcome)
        result = Mask(none, may, guards, drawn or mask.drawn, condition, given) if may.any() else None
        self._masks[key] = (result, mask, none)
        return result

    def _selectable(self, mask: Mask, condition: Data, outcome: bool) -> bool | Flags:
        """Lanes in which the condition is not known to come out otherwise."""
        low, high = truth_bounds(condition)
        other = ~np.equal(high, 0) if outcome else np.equal(low, 0)
        return other if np.asarray(other).shape in ((), mask.may.shape) else True

    def choose(self, condition: Data, text: str) -> bool:
        """Decide a block-uniform unknown condition for this path."""
        made = len(self.path.choices)
        outcome = self.planned[made] if made < len(self.planned) else True
        self.path.choices.append((outcome, f"{text} ({condition.reason})"))
        self.path.chosen.append(condition.drawn)
        return outcome

    def _if(self, s: If, mask: Mask) -> Mask | None:
        condition = self.eval.scalar(s.condition)
        if isinstance(condition, int):
            return self.run(s.then if condition else s.otherwise, mask)
        if isinstance(condition, Data):
            around_barriers = id(s) in self.facts.with_barrier or self._diverts(s)
            if condition.spread >= Spread.BLOCK and around_barriers:
                return self._chosen(s, condition, mask)
            self.doubt = condition.reason
            then: Mask | None = self.unsure(mask, condition, True)
            otherwise: Mask | None = self.unsure(mask, condition, False) if s.otherwise else None
        else:
            then = self.narrowed(mask, condition)
            otherwise = self.narrowed(mask, self.eval.opposite(condition)) if s.otherwise else None
        since = len(self.leave_log)
        if then is not None and s.then:
            self.run(s.then, then)
        if otherwise is not None:
            self.run(s.otherwise, otherwise)
        if isinstance(condition, Data):
            for outcome, skipped in ((True, s.otherwise), (False, s.then)):
                if tickets.if_outcome(condition, outcome) is not None and self._returns(skipped):
                    return self.unsure(mask, condition, outcome)
        return self.rejoin(mask, since) if id(s) in self.facts.leaving else mask

    def _chosen(self, s: If, condition: Data, mask: Mask) -> Mask | None:
        """A condition that all threads of a block agree on, decided for this path."""
        outcome = self.choose(condition, f"if ({pretty(s.condition)})")
        taken, skipped = (s.then, s.otherwise) if outcome else (s.otherwise, s.then)
        drawn = tickets.if_outcome(condition, outcome) or mask.drawn
        inside = Mask(mask.must, mask.may, mask.guards, drawn, mask.doubt, mask.given)
        rest = self.run(taken, inside)
        if rest is None or self._returns(skipped):
            return rest
        # behind it, the blocks that did not draw the number go on too
        return mask if rest is inside else evolve(rest, drawn=mask.drawn)

    def _returns(self, statements: tuple[Stmt, ...]) -> bool:
        """The kernel ends behind these statements."""
        last = statements[-1] if statements else None
        return isinstance(last, Leave) and last.label == self.facts.outermost

    def _diverts(self, s: Stmt) -> bool:
        """Lanes may leave past a barrier."""
        return bool(self.facts.leave_labels.get(id(s), set[int]()) & self.facts.barrier_labels)

    def rejoin(self, mask: Mask, since: int, *closed: int) -> Mask | None:
        """``mask`` without the lanes that have left, ``since`` then, to labels that are still open."""
        for label in closed:
            self.left.pop(label, None)
        open_labels = set(self.leave_log[since:]).difference(closed)
        gone = [self.left[label] for label in sorted(open_labels) if label in self.left]
        if not gone:
            return mask
        key = ("rejoin", id(mask), *(id(g) for g in gone))
        cached = self._masks.get(key)
        if cached is None:
            self.eval.remember(key, 0, *gone)
            cached = self._masks[key] = (without(mask, gone), mask, mask.may)
        return cached[0]

    def _leave(self, s: Leave, mask: Mask) -> Mask | None:
        self.leave_log.append(s.label)
        earlier = self.left.get(s.label)
        if earlier is None:
            self.left[s.label] = mask
        else:
            may = earlier.may | mask.may
            must = may if earlier.sure and mask.sure else earlier.must | mask.must
            self.left[s.label] = Mask(must, may)
        return None

    def _block(self, s: Block, mask: Mask) -> Mask | None:
        since = len(self.leave_log)
        rest = self.run(s.body, mask)
        if len(self.leave_log) != since:
            return self.rejoin(mask, since, s.label)
        return rest if rest is None or rest.drawn is mask.drawn else evolve(rest, drawn=mask.drawn)

    def contents_state(self) -> object:
        """Hashable state of the modelled memory (loops compare it between rounds)."""
        shared = tuple(
            (i, c.values.tobytes(), c.known.tobytes(), tuple((e, t.serial) for e, t in c.terms.items()))
            for i, c in self.shared.items()
        )
        local = tuple((i, tuple((o, identity(v)) for o, v in c.items())) for i, c in self.local.items())
        return shared, local, self.copies.state()

    def _loop(self, s: Loop, mask: Mask) -> Mask | None:
        return execute_loop(self, s, mask)

    # -------------------------------------------------------------------------------- variables

    def _assign(self, s: Assign, mask: Mask) -> Mask:
        if s.var.id in self.facts.relevant:
            self.eval.executing = mask.may
            self.define(s, s.var, self.eval.value(s.value), mask)
        return mask

    def define(self, s: Stmt, var: Var, value: Value, mask: Mask) -> None:
        """``var = value`` in the lanes of ``mask``; elsewhere it keeps what it had."""
        old = self.eval.env.get(var.id)
        if old is None or id(s) in self.facts.defining or mask.may is self.everyone.must:
            self.eval.env[var.id] = value
        else:
            self.eval.env[var.id] = self.merged(value, old, mask)

    def merged(self, value: Value, old: Value, mask: Mask) -> Value:
        key = ("merge", identity(value), identity(old), id(mask.must), id(mask.may))
        known = self.eval.remembered(key)
        if known is None:
            if mask.sure:
                result = self.eval.merge(mask.may, value, old)
            else:
                possible = self.eval.either(value, old)
                result = self.eval.merge(mask.may, possible, old)
            known = self.eval.remember(key, result, value, old, mask)
        return known

    # ----------------------------------------------------------------------------------- memory

    def _load(self, s: Load, mask: Mask) -> Mask:
        wanted = s.var is not None and s.var.id in self.facts.relevant
        if not wanted and self._skippable(s):
            return mask
        self.eval.executing = mask.may
        values: list[tuple[Flags | None, Value]] = []
        for lanes, address, part in self._targets(s.pointer, mask, s.site):
            if part is None:
                continue
            if self._records(address.array):
                self._record(s.site, address, Mode.READ, s.type.size, part)
            elif address.array.space is Space.GLOBAL:
                self._sample(s, address, part)
            if wanted:
                values.append((lanes, self._loaded(s, address, part)))
        if wanted and s.var is not None:
            result: Value | None = None
            for lanes, value in values:
                result = value if result is None or lanes is None else self.eval.merge(lanes, value, result)
            if result is None:
                result = self.eval.fresh(f"the value of {s.site.text or 'an unresolved load'}", weak=True)
            self.define(s, s.var, result, mask)
        return mask

    def _skippable(self, s: Load) -> bool:
        """A read of memory nobody writes, seen often enough."""
        roots = self.facts.roots(s.pointer)
        if not roots or any(self._records(a) for a in roots):
            return False
        if all(a.space is not Space.GLOBAL for a in roots):
            return True
        seen = self.samples.get(id(s), 0)
        self.samples[id(s)] = seen + 1
        return seen >= _SAMPLES

    def _records(self, array: Array) -> bool:
        return tracked(self.facts, array)

    def _sample(self, s: Load, address: Address, mask: Mask) -> None:
        if not isinstance(address.offset, Data) and len(self.path.reads) < 4096:
            key = (id(s), identity(address.offset), id(mask.must))
            self.path.reads.setdefault(key, (s, address.array, address.offset, mask.must))

    def _targets(
        self, pointer: Expr, mask: Mask, site: Site
    ) -> list[tuple[Flags | None, Address, Mask | None]]:
        """The addresses a pointer denotes: (lanes or None, address, executing lanes)."""
        value = self.eval.value(pointer)
        if isinstance(value, Address):
            return [(None, value, mask)]
        if isinstance(value, Choice):
            result: list[tuple[Flags | None, Address, Mask | None]] = []
            for lanes, address in value.options:
                if lanes is None:
                    none = np.zeros_like(mask.must)
                    possible = Mask(none, mask.may, mask.guards, mask.drawn, mask.doubt)
                    result.append((None, address, possible))
                else:
                    result.append((lanes, address, self.narrowed(mask, lanes)))
            return result
        line = site.range.start.line
        self.trace.not_decided(f"line {line}: `{site.text}` goes through a pointer whose target is unknown")
        return []

    def _loaded(self, s: Load, address: Address, mask: Mask) -> Value:
        array, offset = address.array, address.offset
        if array.id in self.facts.modelled:
            if array.space is Space.LOCAL:
                return self._load_local(s, address)
            known = self._shared(array).load(offset, s.type, mask.may)
            if isinstance(known, Data):
                return self._broadcast(known)
            if known is not None:
                return known
        if isinstance(s.type, Pointer):
            return self.eval.fresh(f"the pointer {s.site.text}", weak=True)
        spread = spread_of(offset, self.blocks)
        if array.space is Space.SHARED:
            spread = min(spread, Spread.BLOCK)
        if array.space is Space.LOCAL:
            spread = Spread.THREAD
        bounds: dict[str, Any] = {}
        if isinstance(s.type, Int) and s.type.bits <= 16:
            bounds = {"low": s.type.minimum, "high": s.type.maximum}
        key = ("load", array.id, self.eval.content(offset), self.versions.get(array.id, 0), s.type)
        weak = isinstance(offset, Data) and offset.weak
        return self.eval.data(key, f"the value of {s.site.text}", spread, weak=weak, **bounds)

    def _broadcast(self, term: Data) -> Data:
        """One thread's value, read by the whole block."""
        ticket, drawn = term.ticket, term.drawn
        return self.eval.data(
            ("broadcast", term.serial), term.reason, max(term.spread, Spread.BLOCK),
            weak=term.weak, low=term.low, high=term.high,
            drawn=None if drawn is None else evolve(drawn, by_block=True, holds=drawn.holds is True),
            ticket=None if ticket is None else evolve(ticket, by_block=True),
        )  # fmt: skip

    def _shared(self, array: Array) -> SharedContents:
        known = self.shared.get(array.id)
        if known is None:
            size = array_bytes(array, self.trace.launch)
            known = self.shared[array.id] = SharedContents.empty(array.element, size, self.blocks)
        return known

    def _load_local(self, s: Load, address: Address) -> Value:
        cells = self.local.setdefault(address.array.id, {})
        offset = address.offset
        if isinstance(offset, int):
            if offset in cells:
                return cells[offset]
        elif isinstance(offset, np.ndarray):
            found = distinct(offset)
            if len(found) <= 64 and all(int(o) in cells for o in found):
                result = cells[int(found[0])]
                for o in found[1:]:
                    result = self.eval.merge(offset == o, cells[int(o)], result)
                return result
        return self.eval.fresh(f"the value of {s.site.text}")

    def _store(self, s: Store, mask: Mask) -> Mask:
        self.eval.executing = mask.may
        for _, address, part in self._targets(s.pointer, mask, s.site):
            if part is None:
                continue
            array = address.array
            stored = self._stored(s.value, array)
            self.versions[array.id] = self.versions.get(array.id, 0) + 1
            if self._records(array):
                self._record(s.site, address, Mode.WRITE, s.type.size, part, stored=stored)
            if array.id in self.facts.modelled:
                self._remember_store(s, address, stored, part)
            if array in self.facts.lock_arrays:
                self._lock(s, array, part, False)
        return mask

    def _lock(self, s: Store | Atomic, array: Array, mask: Mask, takes: bool) -> None:
        if isinstance(s, Atomic) and s.op == "load":
            return
        line = s.site.range.start.line
        self.path.locks.append(LockEvent(self.sequence, self.clock, array, takes, mask.must, line))

    def _stored(self, e: Expr, array: Array) -> Value | None:
        """The stored value where it matters: modelled contents, or whether two stores agree."""
        if array.id in self.facts.modelled or isinstance(e, Const):
            return self.eval.value(e)
        inner = e.operand if isinstance(e, Cast) else e
        if isinstance(inner, Var) and inner.id in self.eval.env:
            return self.eval.value(e)
        return self.eval.value(inner) if isinstance(inner, Const) else None

    def _remember_store(self, s: Store, address: Address, stored: Value | None, mask: Mask) -> None:
        value = stored if stored is not None else self.eval.fresh("a stored value")
        if address.array.space is not Space.LOCAL:
            self._shared(address.array).store(address.offset, value, s.type, mask.must, mask.may)
            return
        cells = self.local.setdefault(address.array.id, {})
        if not isinstance(address.offset, int):
            self._scatter_local(cells, address.offset, value, mask)
            return
        old = cells.get(address.offset)
        full = old is None or mask.may is self.everyone.must
        cells[address.offset] = value if full or old is None else self.merged(value, old, mask)

    def _scatter_local(self, cells: dict[int, Value], at: Lanes | Data, value: Value, mask: Mask) -> None:
        offsets = set[int]() if isinstance(at, Data) else set[int](at.ravel().tolist())
        if isinstance(at, Data) or len(offsets) > 64:
            cells.clear()
            return
        for o in sorted(offsets):
            lanes = self.narrowed(mask, np.equal(at, o))
            if lanes is not None:
                old = cells.get(o)
                cells[o] = value if old is None else self.merged(value, old, lanes)

    def _atomic(self, s: Atomic, mask: Mask) -> Mask:
        self.eval.executing = mask.may
        result: Value | None = None
        for _, address, part in self._targets(s.pointer, mask, s.site):
            if part is None:
                continue
            array = address.array
            if self._records(array):
                self._record(s.site, address, Mode.ATOMIC, s.type.size, part, scope=s.scope)
            if array.id in self.facts.modelled and array.space is Space.SHARED and s.op != "load":
                unknown = self.eval.fresh("an atomic")
                self._shared(array).store(address.offset, unknown, s.type, part.must, part.may)
            if id(s) in self.facts.acquiring or array in self.facts.lock_arrays:
                self._lock(s, array, part, id(s) in self.facts.acquiring)
            ticket = self._number_drawn(s, address, part)
            if s.var is not None and s.var.id in self.facts.relevant:
                reason = f"the old value that {s.site.text or 'an atomic'} returns"
                result = self.eval.fresh(reason, ticket=ticket)
            self.versions[array.id] = self.versions.get(array.id, 0) + (s.op != "load")
        if s.var is not None and s.var.id in self.facts.relevant:
            self.define(s, s.var, self.eval.fresh("an atomic", weak=True) if result is None else result, mask)
        return mask

    def _number_drawn(self, s: Atomic, address: Address, mask: Mask) -> Ticket | None:
        """The numbers that a counter hands out here; None: they need not be distinct."""
        if s.op not in ("add", "sub", "inc") or not self._only_counts(s, address.array):
            return None
        gap = self.eval.scalar(s.operands[0])
        if isinstance(gap, int) and s.op != "inc":
            gap = abs(tickets.signed(gap, s.type.size))
        within = min(spread_of(address.offset, self.blocks), Spread.GRID)
        if address.array.space is Space.SHARED:
            within = min(within, Spread.BLOCK)
        # Plain stores to the counter (a reset) start a new family; atomics do not.
        resets = self.plain_stores.get(address.array.id, 0)
        family = hash((address.array.id, identity(address.offset), resets))
        counts = s.op == "inc" or (isinstance(gap, int) and gap > 0)
        x, y, z = self.grid if within is Spread.GRID else (1, 1, 1)
        draws = tickets.draws_of_grid(mask.must, mask.may, self.blocks, x * y * z)
        limit = (gap if isinstance(gap, int) else -1) if s.op == "inc" else None
        self.path.tickets.append(
            Ticketing(
                family, address.array.id, self.sequence, self.clock, mask.must, draws if counts else None,
                1 if s.op == "inc" or not isinstance(gap, int) else gap, isinstance(address.offset, int),
                tickets.direction(s) == "down", limit,
            )
        )  # fmt: skip
        if not counts or within is Spread.THREAD:
            return None
        # atomicInc starts again at 0 beyond its limit: its last number is one, its slots are not
        return Ticket(family, gap if s.op != "inc" and isinstance(gap, int) else 0, (), within)

    def _only_counts(self, counting: Atomic, array: Array) -> bool:
        """All atomics of the kernel on this counter move it the same way."""
        ways = self.atomic_ways.get(array.id)
        if ways is None:
            ways = self.atomic_ways[array.id] = {
                tickets.direction(s) for s in self.facts.statements
                if isinstance(s, Atomic) and array in (self.facts.roots(s.pointer) or {array})
            }  # fmt: skip
        return None not in ways and ways <= {tickets.direction(counting), ""}

    def _copy(self, s: Copy, mask: Mask) -> Mask:
        self.eval.executing = mask.may
        size = self.eval.scalar(s.size)
        if not isinstance(size, int):
            at = s.site.range.start.line
            self.trace.not_decided(f"line {at}: a copy whose size is not one known number")
            return mask
        for pointer, mode in ((s.source, Mode.READ), (s.destination, Mode.WRITE)):
            for _, address, part in self._targets(pointer, mask, s.site):
                if part is not None and self._records(address.array):
                    self._record(s.site, address, mode, size, part, copied=True)
                    if s.asynchronous:
                        self.copies.issue(self, s.site, address, mode, size, part)
                if mode is Mode.WRITE:
                    self.versions[address.array.id] = self.versions.get(address.array.id, 0) + 1
                    self.local.pop(address.array.id, None)
                    if address.array.space is Space.SHARED and address.array.id in self.facts.modelled:
                        self._shared(address.array).forget()
        return mask

    def _record(
        self, site: Site, address: Address, mode: Mode, size: int, mask: Mask, *,
        stored: Value | None = None, scope: Scope | None = None, copied: bool = False,
    ) -> None:  # fmt: skip
        if mode is Mode.WRITE:
            self.plain_stores[address.array.id] = self.plain_stores.get(address.array.id, 0) + 1
        self.sequence += 1
        self.tracked_sequence = self.sequence
        self.recorded += mask.may.size
        if self.recorded > self.budget.lanes:
            raise OutOfBudget(f"more than {self.budget.lanes} accesses of single threads")
        self.path.accesses.append(
            Access(
                site, address.array, mode, size, address.offset, mask.must, mask.may, self.clock, self.warp,
                self.sequence, self.loops, mask.guards, scope, stored, self.grid_clock, mask.drawn,
                len(self.path.choices), copied, mask.doubt, mask.given,
            )
        )  # fmt: skip
        if self.copies.open:
            self.copies.check_own(self, self.path.accesses[-1])

    # --------------------------------------------------------------------- barriers and the rest

    def _barrier(self, s: Barrier, mask: Mask) -> Mask:
        synchronise(self, s, mask)
        self.copies.pass_barrier(self)
        return mask

    def _commit(self, s: CommitCopies, mask: Mask) -> Mask:
        self.copies.commit(self, s.site, mask)
        return mask

    def _await(self, s: AwaitCopies, mask: Mask) -> Mask:
        self.copies.wait(self, s, mask)
        return mask

    def record_copy(self, site: Site, address: Address, mode: Mode, size: int, mask: Mask) -> None:
        """A copy that is under way reads or writes, in the present interval."""
        self._record(site, address, mode, size, mask, copied=True)

    def _fence(self, s: Fence, mask: Mask) -> Mask:
        self.sequence += 1
        if s.scope is not Scope.BLOCK:
            fence = FenceEvent(self.sequence, self.clock, mask.must, mask.may, mask.doubt)
            self.path.fences.append(fence)
        return mask

    def not_modelled(self, what: str) -> None:
        """A synchronisation that may order more, or less, than this execution knows."""
        self.trace.not_decided(what)
        self.sequence += 1
        self.path.unmodelled.append((self.sequence, what))

    def _assume(self, s: Assume, mask: Mask) -> Mask:
        self.eval.executing = mask.may
        condition = self.eval.scalar(s.condition)
        fails = not isinstance(condition, Data) and bool((mask.must & ~np.asarray(condition, bool)).any())
        if fails and self.trace.excluded is None:
            self.trace.excluded = f"{pretty(s.condition)} does not hold"
        return mask

    def _incomplete(self, s: Incomplete, mask: Mask) -> Mask:
        if not s.harmless:
            what = f"line {s.site.range.start.line}: {s.construct}: {s.reason}"
            if s.synchronises:
                self.not_modelled(what)
            else:
                self.trace.not_decided(what)
        return mask
