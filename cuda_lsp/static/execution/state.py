"""Where an execution stands: masks, clocks, variables, memory, and what it has written down.

The steps of each kind of statement stand beside this (``memory_steps``, ``barrier_steps``, ``loops``, …), and
``machine`` puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.walk import assigned, walk
from cuda_lsp.model import Mode, Scope, Site
from cuda_lsp.static.execution import tickets
from cuda_lsp.static.execution.clocks import WarpClock
from cuda_lsp.static.execution.contents import SharedContents
from cuda_lsp.static.execution.copies import Copies
from cuda_lsp.static.execution.evaluate import Evaluator
from cuda_lsp.static.execution.masks import Mask, without
from cuda_lsp.static.execution.private_cells import PrivateCells
from cuda_lsp.static.execution.ranges import truth_bounds
from cuda_lsp.static.execution.representatives import grid_of
from cuda_lsp.static.execution.trace import Access, Budget, Held, OutOfBudget, Path, Trace
from cuda_lsp.static.execution.values import Address, Data, Flags, Lanes, Spread, Value, identity
from cuda_lsp.static.slicing import Slice


class Execution:
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
        self.grid = grid_of(trace.launch, trace.kernel.cluster)
        self.clock: tuple[int, ...] = (0,) * self.blocks
        self.cluster_clock: tuple[int, ...] = self.clock
        self.grid_clock = 0
        self.warp: WarpClock | None = None
        if facts.warp_barriers:
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
        self.local: dict[int, PrivateCells] = {}
        self.steps = 0
        self.work = 0.0  # about milliseconds
        self.recorded = 0
        self.samples: dict[int, int] = {}
        self.doubt: str | None = None
        self.copies = Copies(trace, np.zeros(trace.lanes, np.int64))
        self.round_masks: dict[object, tuple[tuple[int, Mask | None, bool], Mask, int | Lanes]] = {}
        every = np.ones(trace.lanes, bool)
        self.everyone = Mask(every, every)
        self.base = self.everyone  # who is in the innermost branch: values of others do not matter there

    def run(self, statements: tuple[ir.Stmt, ...], mask: Mask | None) -> Mask | None:
        """Execute a list; the lanes that reach its end (None: no lane)."""
        raise NotImplementedError

    def contents_state(self, active: Mask) -> object:
        """Hashable state of the modelled memory (loops compare it between rounds)."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------ masks

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
            result = Mask(must, may, mask.guards, mask.drawn, mask.doubt, given, mask.split)
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
        split = mask.split or condition.spread < Spread.WARP or may.ndim > 1
        result = Mask(none, may, guards, drawn or mask.drawn, condition, given, split) if may.any() else None
        self._masks[key] = (result, mask, none)
        return result

    def _selectable(self, mask: Mask, condition: Data, outcome: bool) -> bool | Flags:
        """Lanes in which the condition is not known to come out otherwise."""
        low, high = truth_bounds(condition)
        other = ~np.equal(high, 0) if outcome else np.equal(low, 0)
        return other if np.asarray(other).shape in ((), mask.may.shape) else True

    def choose(self, s: ir.If | ir.Loop, condition: Data, text: str) -> bool:
        """Decide the block-uniform unknown condition of ``s`` for this path, for all blocks alike."""
        made = len(self.path.choices)
        if condition.spread is Spread.BLOCK:
            self.path.by_block[id(s)] = condition.reason
        outcome = self.planned[made] if made < len(self.planned) else True
        self.path.choices.append((outcome, text))
        self.path.chosen.append(condition.drawn)
        return outcome

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
            cached = self._masks[key] = (without(mask, gone, self.trace.threads), mask, mask.may)
        return cached[0]

    # -------------------------------------------------------------------------------- variables

    def define(self, s: ir.Stmt, var: ir.Var, value: Value, mask: Mask) -> None:
        """``var = value`` in the lanes of ``mask``; elsewhere it keeps what it had."""
        self.keep(var.id, value, mask, id(s) in self.facts.defining)

    def keep(self, var: int, value: Value, mask: Mask, alone: bool = False) -> None:
        """A variable holds ``value`` in the lanes of ``mask``. ``alone``: nobody asks for its other lanes."""
        old = self.eval.env.get(var)
        if old is None or alone or (mask.may is self.base.may and mask.must is self.base.must):
            self.eval.env[var] = value
        else:
            self.eval.env[var] = self.merged(value, old, mask)

    def changed_in(self, statements: tuple[ir.Stmt, ...]) -> set[int]:
        """The variables, by id, to which these assign what some other place asks for."""
        relevant, defining = self.facts.relevant, self.facts.defining
        found = ((assigned(s), s) for s in walk(statements))
        return {v.id for v, s in found if v is not None and v.id in relevant and id(s) not in defining}

    def keep_as_it_was(self, var: int, old: Value, mask: Mask) -> None:
        """Behind what lanes of ``mask`` did alone: elsewhere a variable is what it was."""
        value = self.eval.env.get(var, old)
        self.eval.env[var] = old
        if value is not old:
            self.keep(var, value, mask)

    def merged(self, value: Value, old: Value, mask: Mask) -> Value:
        """``value`` in the lanes of ``mask``, where it may be unsure, ``old`` elsewhere."""
        key = ("merge", identity(value), identity(old), id(mask.must), id(mask.may), mask.split)
        known = self.eval.remembered(key)
        if known is None:
            if mask.sure:
                result = self.eval.merge(mask.may, value, old)
            else:
                possible = self.eval.either(value, old, Spread.THREAD if mask.split else Spread.WARP)
                result = self.eval.merge(mask.may, possible, old)
            known = self.eval.remember(key, result, value, old, mask)
        return known

    # ------------------------------------------------------------------------ what is written down

    def not_modelled(self, what: str) -> None:
        """A synchronisation that may order more, or less, than this execution knows."""
        self.trace.not_decided(what)
        self.sequence += 1
        self.path.unmodelled.append((self.sequence, what))

    def record(
        self, site: Site, address: Address, mode: Mode, size: int, mask: Mask, *,
        stored: Value | None = None, scope: Scope | None = None, copied: bool = False,
        finishes: Lanes | None = None, team: Lanes | None = None, elementwise: bool = False,
    ) -> None:  # fmt: skip
        """Writes down that the lanes of ``mask`` touch ``size`` bytes there. Raises OutOfBudget."""
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
                len(self.path.choices), copied, mask.doubt, mask.given, self.held,
                finishes, team, elementwise, self.cluster_clock,
            )
        )  # fmt: skip
        if self.copies.open:
            self.copies.check_own(self.path.accesses[-1])
