"""Statements over all threads at once: masks, conditions, leaves, variables.

Every statement runs under a mask of lanes that surely (``must``) and possibly (``may``) execute it; the
two differ only below conditions that depend on data.  Block-uniform unknown conditions around barriers
are decided both ways, one execution each (``choices``).  Lanes run in lock step, which is one legal
schedule; that other schedules may differ is what the race analysis on the log decides.
Loops are in ``loops``, what touches memory in ``memory_steps``, barriers in ``barrier_steps``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.pretty import pretty
from cuda_lsp.model import Scope
from cuda_lsp.static import budgets
from cuda_lsp.static.deadline import passed
from cuda_lsp.static.execution import branches, critical_steps, memory_steps, tickets
from cuda_lsp.static.execution.barrier_steps import synchronise
from cuda_lsp.static.execution.evaluate import Evaluator
from cuda_lsp.static.execution.loops import execute_loop
from cuda_lsp.static.execution.masks import Mask, together
from cuda_lsp.static.execution.split_barriers import SplitBarriers
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.trace import Budget, FenceEvent, OutOfBudget, OutOfTime, Trace
from cuda_lsp.static.execution.values import (
    Data,
    Spread,
    identity,
)
from cuda_lsp.static.slicing import Slice


class Machine(Execution):
    """Executes statements."""

    def __init__(
        self, facts: Slice, trace: Trace, evaluator: Evaluator, budget: Budget, choices: Sequence[bool]
    ) -> None:
        super().__init__(facts, trace, evaluator, budget, choices)
        self.split = SplitBarriers.of(trace.threads, self.blocks, facts.splits)

    # ---------------------------------------------------------------------------------- control

    def run(self, statements: tuple[ir.Stmt, ...], mask: Mask | None) -> Mask | None:
        """Execute a list; the lanes that reach its end (None: no lane)."""
        for s in statements:
            if mask is None:
                return None
            self._spend(mask)
            self.eval.executed_by(mask.may, mask.sure, mask.split)
            mask = self._EXECUTE[type(s)](self, s, mask)
        return mask

    def _spend(self, mask: Mask) -> None:
        """Counts one statement under ``mask``. Raises OutOfBudget."""
        budget = self.budget
        self.steps += 1
        self.work += budgets.STATEMENT_MS + budgets.LANE_MS * mask.may.size
        if self.steps > budget.steps:
            raise OutOfBudget(f"more than {budget.steps} statements executed")
        if self.work > budget.milliseconds:
            raise OutOfBudget(f"more than about {budget.milliseconds:g} ms of execution")
        if self.eval.held > budget.megabytes << 20:
            raise OutOfBudget(f"its values take more than {budget.megabytes} MB")
        due = self.steps % budgets.CLOCK_STATEMENTS == 0 or mask.may.size > budgets.MANY_LANES
        if due and passed(budget.until):
            raise OutOfTime("it takes longer than a pause in the typing")

    def _if(self, s: ir.If, mask: Mask) -> Mask | None:
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
        branches.run(self, s, condition, mask, then, otherwise)
        if isinstance(condition, Data):
            for outcome, skipped in ((True, s.otherwise), (False, s.then)):
                if tickets.if_outcome(condition, outcome) is not None and self._returns(skipped):
                    return self.unsure(mask, condition, outcome)
        return self.rejoin(mask, since) if id(s) in self.facts.leaving else mask

    def _chosen(self, s: ir.If, condition: Data, mask: Mask) -> Mask | None:
        """A condition that all threads of a block agree on, decided for this path."""
        outcome = self.choose(
            s, condition, f"what line {s.site.range.start.line} makes of {condition.reason}"
        )
        taken, skipped = (s.then, s.otherwise) if outcome else (s.otherwise, s.then)
        drawn = tickets.if_outcome(condition, outcome) or mask.drawn
        inside = Mask(mask.must, mask.may, mask.guards, drawn, mask.doubt, mask.given, mask.split)
        rest = self.run(taken, inside)
        if rest is None or self._returns(skipped):
            return rest
        # behind it, the blocks that did not draw the number go on too
        return mask if rest is inside else evolve(rest, drawn=mask.drawn)

    def _returns(self, statements: tuple[ir.Stmt, ...]) -> bool:
        """The kernel ends behind these statements."""
        last = statements[-1] if statements else None
        return isinstance(last, ir.Leave) and last.label == self.facts.outermost

    def _diverts(self, s: ir.Stmt) -> bool:
        """Lanes may leave past a barrier."""
        return bool(self.facts.leave_labels.get(id(s), set[int]()) & self.facts.barrier_labels)

    def _leave(self, s: ir.Leave, mask: Mask) -> Mask | None:
        self.leave_log.append(s.label)
        earlier = self.left.get(s.label)
        self.left[s.label] = mask if earlier is None else together(earlier, mask, self.trace.threads)
        return None

    def _block(self, s: ir.Block, mask: Mask) -> Mask | None:
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
        local = tuple(
            (i, c.forgotten, tuple((o, size, identity(v)) for o, (size, v) in c.values.items()))
            for i, c in self.local.items()
        )
        return shared, local, self.copies.state(), self.split.state(active)

    # -------------------------------------------------------------------------------- variables

    def _assign(self, s: ir.Assign, mask: Mask) -> Mask:
        if s.var.id in self.facts.relevant:
            self.define(s, s.var, self.eval.value(s.value), mask)
        return mask

    # --------------------------------------------------------------------- barriers and the rest

    def _barrier(self, s: ir.Barrier, mask: Mask) -> Mask:
        synchronise(self, self.split, s, mask)
        for copy, part in self.copies.behind(s, self.split.idle):
            self.record(
                copy.site, copy.address, copy.mode, copy.size, part,
                copied=True, finishes=copy.finishes, team=copy.team,
            )  # fmt: skip
        return mask

    def _commit(self, s: ir.CommitCopies, mask: Mask) -> Mask:
        self.copies.commit(s.site, mask)
        return mask

    def _await(self, s: ir.AwaitCopies, mask: Mask) -> Mask:
        self.copies.wait(s, 0 if s.pending is None else self.eval.scalar(s.pending), mask)
        return mask

    def _fence(self, s: ir.Fence, mask: Mask) -> Mask:
        self.sequence += 1
        if s.scope is not Scope.BLOCK:
            fence = FenceEvent(self.sequence, self.clock, mask.must, mask.may, mask.doubt)
            self.path.fences.append(fence)
        return mask

    def _assume(self, s: ir.Assume, mask: Mask) -> Mask:
        condition = self.eval.scalar(s.condition)
        fails = not isinstance(condition, Data) and bool((mask.must & ~np.asarray(condition, bool)).any())
        if fails and self.trace.excluded is None:
            self.trace.excluded = f"{pretty(s.condition)} does not hold"
        return mask

    def _within(self, s: ir.Within, mask: Mask) -> Mask:
        return mask  # where the thread really goes is known here

    def _incomplete(self, s: ir.Incomplete, mask: Mask) -> Mask:
        if not s.harmless:
            what = f"line {s.site.range.start.line}: {s.construct}: {s.reason}"
            if s.synchronises:
                self.not_modelled(what)
            else:
                self.trace.not_decided(what)
        return mask

    _EXECUTE: ClassVar[dict[type, Callable[[Machine, Any, Mask], Mask | None]]] = {
        ir.Assign: _assign,
        ir.Load: memory_steps.load,
        ir.Store: memory_steps.store,
        ir.Atomic: memory_steps.atomic,
        ir.Copy: memory_steps.copy,
        ir.CommitCopies: _commit,
        ir.AwaitCopies: _await,
        ir.Barrier: _barrier,
        ir.Fence: _fence,
        ir.If: _if,
        ir.Block: _block,
        ir.Leave: _leave,
        ir.Assume: _assume,
        ir.Within: _within,
        ir.Incomplete: _incomplete,
        ir.Loop: execute_loop,
    }
