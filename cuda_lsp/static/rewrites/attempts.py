"""Waits on barrier objects that may give up, repeated until they do not: the loop is one wait.

    while (!done) done = try_wait(bar, parity);             // or any other spelling
    for (;;) { if (try_wait(bar, parity)) break; __nanosleep(100); }

Rounds that give up change nothing that others see, so the loop is its last round, in which the wait succeeds
(``attempt_rounds`` follows one). What rounds before it leave in variables of the thread is not known. A loop
that does anything else, that ends otherwise too, or that may try for another barrier or phase than in the
round before stays as it is: what it tries is incomplete.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Expr, Stmt, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import assigned, inside, used, variables, walk, with_children
from cuda_lsp.model import Scope
from cuda_lsp.static.rewrites.attempt_rounds import Waiting, waiting
from cuda_lsp.static.rewrites.values import highest, number, substituted
from cuda_lsp.static.slicing import assigned_once

_WORD = Int(64, signed=False)


def with_waits(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with such loops as one wait each; the very kernel when there are none."""
    statements = list(walk(kernel.body))
    if not any(_tries(s) for s in statements):
        return kernel
    rewriter = _Rewriter(kernel, statements)
    body = rewriter.statements(kernel.body)
    return evolve(kernel, body=body) if rewriter.found else kernel


def _tries(s: Stmt) -> bool:
    return isinstance(s, ir.Incomplete) and s.attempt is not None


@define(eq=False)
class _Rewriter:
    kernel: ir.Kernel
    everything: Sequence[Stmt]
    found: bool = False
    once: Mapping[Var, Expr] = field(init=False)
    numbers: Iterator[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.once = assigned_once(self.everything)
        self.numbers = itertools.count(highest(self.kernel) + 1)

    def statements(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements, with what loops among them are."""
        result: list[Stmt] = []
        for index, s in enumerate(body):
            waits = self._wait(s, body[:index]) if isinstance(s, ir.Loop) else None
            result += [with_children(s, self.statements)] if waits is None else waits
        return tuple(result)

    def _wait(self, loop: ir.Loop, before: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
        within = list(inside(loop))
        tried = [s for s in within if isinstance(s, ir.Incomplete) and s.attempt is not None]
        if len(tried) != 1 or not all(s is tried[0] or _idle(s) for s in within):
            return None
        if not self._same_in_every_round(tried[0], within):
            return None
        found = waiting(loop, tried[0], self._read_behind(within))
        if found is None or any(not isinstance(v.type, Int) for v in found.begun):
            return None
        gate = None if found.before_body or not loop.tests_first or _entered(loop, before) else loop.condition
        if gate is not None and loop.test:
            return None
        self.found = True
        last = _LastRound(tried[0], found).statements(loop)
        unknown = tuple(self._unknown(v) for v in sorted(found.begun, key=lambda v: v.id))
        body = (*unknown, *last)
        return body if gate is None else (ir.If(gate, body, (), loop.site),)

    def _same_in_every_round(self, tried: ir.Incomplete, within: Sequence[Stmt]) -> bool:
        """It tries for one phase of one object."""
        changing = {v for s in within if (v := assigned(s)) is not None}
        own = {v: self.once[v] for v in changing if v in self.once}
        operands = [substituted(e, own) for e in used(tried)]
        return not any(v in changing for e in operands for v in variables(e))

    def _read_behind(self, within: Sequence[Stmt]) -> frozenset[Var]:
        inner = {id(s) for s in within}
        outside = (s for s in self.everything if id(s) not in inner)
        return frozenset(v for s in outside for e in used(s) for v in variables(e))

    def _unknown(self, var: Var) -> Stmt:
        reason = "what rounds of a wait that gave up leave"
        return ir.Assign(var, ir.Unknown(reason, var.type, next(self.numbers)))


def _idle(s: Stmt) -> bool:
    """Touches no memory of others, and waits for nobody."""
    if isinstance(s, ir.Incomplete):
        return s.harmless
    if isinstance(s, ir.Block):
        return s.lock is None
    return isinstance(s, (ir.Assign, ir.If, ir.Leave, ir.Fence))


def _entered(loop: ir.Loop, before: Sequence[Stmt]) -> bool:
    """The loop's condition holds at first, by what stands before it."""
    values: dict[Var, int] = {}
    for s in before:
        for var in (v for x in walk((s,)) if (v := assigned(x)) is not None):
            values.pop(var, None)
        if isinstance(s, ir.Assign) and (value := number(s.value, values)) is not None:
            values[s.var] = value
    return number(loop.condition, values) == 1


@define(eq=False)
class _LastRound:
    """What the round executes whose wait succeeds."""

    tried: ir.Incomplete
    waits: Waiting

    def statements(self, loop: ir.Loop) -> tuple[Stmt, ...]:
        """All of it, as a block that it leaves."""
        if self.waits.before_body:
            return self._region(loop.label, self._taken(loop.test), loop)
        body = self._taken(loop.body)
        if body and isinstance(body[-1], ir.Leave) and body[-1].label != loop.continue_label:
            return self._region(loop.label, self._region(loop.continue_label, body, loop), loop)
        rest = (*self._taken(loop.step), *self._taken(loop.test))
        return self._region(loop.label, (*self._region(loop.continue_label, body, loop), *rest), loop)

    def _region(self, label: int, body: tuple[Stmt, ...], loop: ir.Loop) -> tuple[Stmt, ...]:
        """A block only where something leaves it before its end."""
        if body and isinstance(body[-1], ir.Leave) and body[-1].label == label:
            body = body[:-1]
        left = any(isinstance(s, ir.Leave) and s.label == label for s in walk(body))
        return (ir.Block(label, body, loop.site),) if left else body

    def _taken(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        assert self.tried.attempt is not None
        result: list[Stmt] = []
        for s in body:
            outcome = self.waits.decided.get(id(s))
            if isinstance(s, ir.If) and outcome is not None:
                result += self._taken(s.then if outcome else s.otherwise)
            elif s is self.tried:
                result += _waited(self.tried.attempt.wait)
            elif isinstance(s, ir.Assign) and s.var is self.tried.attempt.outcome:
                result.append(evolve(s, value=ir.TRUE))
            else:
                result.append(with_children(s, self._taken))
            if result and isinstance(result[-1], ir.Leave):
                break
        return tuple(result)


def _waited(wait: ir.Barrier) -> tuple[Stmt, ...]:
    assert wait.object is not None
    looks = ir.Atomic(None, AtomicOp.LOAD, wait.object, (), _WORD, Scope.BLOCK, wait.site, rewrites=True)
    return looks, wait
