"""Statements over all threads at once: masks, conditions, leaves, variables.

Every statement runs under a mask of lanes that surely (``must``) and possibly (``may``) execute it; the
two differ only below conditions that depend on data.  Block-uniform unknown conditions around barriers
are decided both ways, one execution each (``choices``).  Lanes run in lock step, which is one legal
schedule; that other schedules may differ is what the race analysis on the log decides.
Loops are in ``loops``, what touches memory in ``memory_steps``, barriers in ``barrier_steps``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import evolve

from cuda_lsp.ir.ops import pretty
from cuda_lsp.ir.program import (
    Assign,
    Assume,
    Atomic,
    AwaitCopies,
    Barrier,
    Block,
    CommitCopies,
    Copy,
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
from cuda_lsp.model import Scope
from cuda_lsp.static.execution import critical_steps, memory_steps, tickets
from cuda_lsp.static.execution.barrier_steps import synchronise
from cuda_lsp.static.execution.clocks import WarpClock
from cuda_lsp.static.execution.contents import SharedContents
from cuda_lsp.static.execution.copies import Copies
from cuda_lsp.static.execution.evaluate import Evaluator
from cuda_lsp.static.execution.loops import execute_loop
from cuda_lsp.static.execution.masks import Mask, without
from cuda_lsp.static.execution.ranges import truth_bounds
from cuda_lsp.static.execution.representatives import assumed_grid
from cuda_lsp.static.execution.split_barriers import SplitBarriers
from cuda_lsp.static.execution.trace import Budget, FenceEvent, Held, OutOfBudget, OutOfTime, Path, Trace
from cuda_lsp.static.execution.values import (
    Data,
    Flags,
    Lanes,
    Spread,
    Value,
    identity,
)
from cuda_lsp.static.slicing import Slice

_STATEMENT, _LANE = 15e-3, 2e-6  # milliseconds of work, on a core of 2020
_MANY = 1 << 14  # lanes of a statement that is worth a look at the clock


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
        self.held: tuple[Held, ...] = ()
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
        self.split = SplitBarriers.of(trace.threads, self.blocks, facts.splits)
        self.copies = Copies(np.zeros(trace.lanes, np.int64))
        self.round_masks: dict[object, tuple[tuple[int, Mask | None, bool], Mask, int | Lanes]] = {}
        every = np.ones(trace.lanes, bool)
        self.everyone = Mask(every, every)

    # ---------------------------------------------------------------------------------- control

    def run(self, statements: tuple[Stmt, ...], mask: Mask | None) -> Mask | None:
        """Execute a list; the lanes that reach its end (None: no lane)."""
        for s in statements:
            if mask is None:
                return None
            self._spend(mask)
            mask = self._EXECUTE[type(s)](self, s, mask)
        return mask

    def _spend(self, mask: Mask) -> None:
        """Counts one statement under ``mask``. Raises OutOfBudget."""
        budget = self.budget
        self.steps += 1
        self.work += _STATEMENT + _LANE * mask.may.size
        if self.steps > budget.steps:
            raise OutOfBudget(f"more than {budget.steps} statements executed")
        if self.work > budget.milliseconds:
            raise OutOfBudget(f"more than about {budget.milliseconds:g} ms of execution")
        if self.eval.held > budget.megabytes << 20:
            raise OutOfBudget(f"its values take more than {budget.megabytes} MB")
        due = not self.steps & 7 or mask.may.size > _MANY
        if due and time.thread_time() > budget.until:
            raise OutOfTime("it takes longer than a pause in the typing")

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
        self.eval.executed_by(mask.may, mask.sure)
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
        rest = self.run(s.body, mask) if s.lock is None else critical_steps.run(self, s, s.lock, mask)
        if len(self.leave_log) != since:
            return self.rejoin(mask, since, s.label)
        return rest if rest is None or rest.drawn is mask.drawn else evolve(rest, drawn=mask.drawn)

    def contents_state(self, active: Mask) -> object:
        """Hashable state of the modelled memory (loops compare it between rounds)."""
        shared = tuple(
            (i, c.values.tobytes(), c.known.tobytes(), tuple((e, t.serial) for e, t in c.terms.items()))
            for i, c in self.shared.items()
        )
        local = tuple((i, tuple((o, identity(v)) for o, v in c.items())) for i, c in self.local.items())
        return shared, local, self.copies.state(), self.split.state(active)

    def _loop(self, s: Loop, mask: Mask) -> Mask | None:
        return execute_loop(self, s, mask)

    # -------------------------------------------------------------------------------- variables

    def _assign(self, s: Assign, mask: Mask) -> Mask:
        if s.var.id in self.facts.relevant:
            self.eval.executed_by(mask.may, mask.sure)
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

    # --------------------------------------------------------------------- barriers and the rest

    def _barrier(self, s: Barrier, mask: Mask) -> Mask:
        synchronise(self, s, mask)
        self.copies.pass_barrier(self, s)
        return mask

    def _commit(self, s: CommitCopies, mask: Mask) -> Mask:
        self.copies.commit(self, s.site, mask)
        return mask

    def _await(self, s: AwaitCopies, mask: Mask) -> Mask:
        self.copies.wait(self, s, mask)
        return mask

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
        self.eval.executed_by(mask.may, mask.sure)
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

    _EXECUTE: ClassVar[dict[type, Callable[[Machine, Any, Mask], Mask | None]]] = {
        Assign: _assign,
        Load: memory_steps.load,
        Store: memory_steps.store,
        Atomic: memory_steps.atomic,
        Copy: memory_steps.copy,
        CommitCopies: _commit,
        AwaitCopies: _await,
        Barrier: _barrier,
        Fence: _fence,
        If: _if,
        Block: _block,
        Leave: _leave,
        Assume: _assume,
        Incomplete: _incomplete,
        Loop: _loop,
    }
