"""Loops that update one word by compare-and-swap until nobody came between: no locks, as they may look.

    seen = *word;                                           // or any other first guess
    do {
        expected = seen;
        seen = atomicCAS(word, expected, f(expected));      // f: any function, of floats and halves too
    } while (seen != expected);

What is expected is what the word held when it was last looked at, and the loop is over when it holds that
still (``retry_rounds`` follows one round). So nobody is waited for: a thread alone leaves in its second
round, and nothing is ordered by that. A compare-and-swap that takes a lock expects a constant, goes on while
a bit of the word is set, or is not reached in every round.

Rounds that fail change nothing and touch the same places, so the loop is its last round: one atomic update of
the word, from whatever value an atomic load finds. Of what else rounds begin with nothing is known.

The plain read that makes the first guess stays. It races with the updates of others; that the
compare-and-swap checks what it read is marked at its site (``Site.guess``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set

from attrs import define, evolve, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Expr, Stmt, Var
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import (
    assigned,
    inside,
    root_array,
    used,
    variables,
    walk,
    with_children,
)  # fmt: skip
from cuda_lsp.model import Space
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.rewrites.retry_rounds import Cell, Retry, followed
from cuda_lsp.static.rewrites.values import highest, substituted
from cuda_lsp.static.slicing import Slice, assigned_once

_GRANTED = "a compare-and-swap checks the plain read that it begins with"


def with_retries(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with such loops as one update each; the very kernel when there are none."""
    facts = facts_of(kernel)
    if not facts.loops or not any(_swaps(s) for s in facts.statements):
        return kernel
    rewriter = _Rewriter(kernel, facts)
    body = rewriter.statements(kernel.body, ())
    if not rewriter.found:
        return kernel
    granted = (*kernel.granted, _GRANTED) if rewriter.guesses else kernel.granted
    return evolve(kernel, body=_marked(body, rewriter.guesses), granted=granted)


def _swaps(s: Stmt) -> bool:
    return isinstance(s, ir.Atomic) and s.op is AtomicOp.CAS and s.var is not None and not s.elementwise


@define(eq=False)
class _Rewriter:
    """``guesses``: the places of plain reads that loops begin with."""

    kernel: ir.Kernel
    facts: Slice
    found: bool = False
    guesses: set[int] = field(factory=set[int])  # id() of sites
    once: Mapping[Var, Expr] = field(init=False)
    numbers: Iterator[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.once = assigned_once(self.facts.statements)
        self.numbers = itertools.count(highest(self.kernel) + 1)

    def statements(self, body: Sequence[Stmt], before: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``before``: what a thread has come by in this round of the loops around it."""
        result: list[Stmt] = []
        for s in body:
            result.append(self._changed(s, before))
            before = (*before, s)
        return tuple(result)

    def _changed(self, s: Stmt, before: tuple[Stmt, ...]) -> Stmt:
        if not isinstance(s, ir.Loop):
            return with_children(s, lambda inner: self.statements(inner, before))
        retry = self._retry(s)
        if retry is None:
            return with_children(s, lambda inner: self.statements(inner, ()))
        self.found = True
        self._note_guess(s, retry, before)
        return self._last_round(s, retry)

    # ------------------------------------------------------------------------------ recognition

    def _retry(self, loop: ir.Loop) -> Retry | None:
        within = list(inside(loop))
        found = [s for s in within if isinstance(s, ir.Atomic)]
        if len(found) != 1 or not _swaps(found[0]) or any(isinstance(s, ir.Loop) for s in within):
            return None
        cas, changing = found[0], {v for s in within if (v := assigned(s)) is not None}
        place = substituted(cas.pointer, {v: self.once[v] for v in changing if v in self.once})
        if changing & set(variables(place)) or not all(self._quiet(s, cas) for s in within):
            return None
        if any(isinstance(v.type, Pointer) for v in self._kept(loop)):
            return None
        looks = frozenset(id(s) for s in within if isinstance(s, ir.Load) and self._looks(s, cas))
        return followed(loop, cas, place, looks)

    def _quiet(self, s: Stmt, cas: ir.Atomic) -> bool:
        """It changes nothing that others see, and waits for nobody."""
        if isinstance(s, ir.Load):
            roots = self.facts.roots(s.pointer)
            untouched = bool(roots) and not self.facts.wild and not roots & self.facts.written
            return untouched or self._is_local(s.pointer) or self._looks(s, cas)
        if isinstance(s, ir.Store):
            return self._is_local(s.pointer) and root_array(s.pointer) is not None
        if isinstance(s, ir.Incomplete):
            return s.harmless
        return s is cas or isinstance(s, (ir.Assign, ir.If, ir.Block, ir.Leave))

    def _is_local(self, pointer: Expr) -> bool:
        roots = self.facts.roots(pointer)
        return bool(roots) and all(array.space is Space.LOCAL for array in roots)

    def _looks(self, s: ir.Load, cas: ir.Atomic) -> bool:
        """It reads the word that is updated, and the whole of it."""
        depth = 2 * budgets.MOST_SUBSTITUTIONS
        read, updated = (substituted(p, self.once, depth) for p in (s.pointer, cas.pointer))
        return s.type.size == cas.type.size and read == updated

    # ------------------------------------------------------------------------------- rewriting

    def _last_round(self, loop: ir.Loop, retry: Retry) -> Stmt:
        body, test = _succeeding(loop.body, retry), _succeeding(loop.test, retry)
        round = (ir.Block(loop.continue_label, body, loop.site), *_succeeding(loop.step, retry))
        if not loop.tests_first:
            round = (*round, *test)
        elif not retry.over_in_test:
            round = (*test, ir.If(loop.condition, round, (), loop.site))
        else:
            round = test
        return ir.Block(loop.label, (*self._begun(loop, retry), *round), loop.site)

    def _begun(self, loop: ir.Loop, retry: Retry) -> Iterator[Stmt]:
        """What a round begins with."""
        cas = retry.cas
        numbers = (v for v in self._kept(loop) if isinstance(v.type, Int))
        for cell in dict.fromkeys((*retry.carried, *numbers, *retry.stored)):
            type, value = _type(cell), retry.known.get(cell)
            if cell == retry.seen:
                found = Var("", cas.type, next(self.numbers))
                yield ir.Atomic(found, AtomicOp.LOAD, retry.place, (), cas.type, cas.scope, cas.site)
                start: Expr = found if type == cas.type else ir.Cast(found, type)
            elif value is not None:
                start = ir.Const(value, type)
            else:
                reason = "what a loop of compare-and-swaps leaves"
                start = ir.Unknown(reason, type, next(self.numbers), loaded=True)
            if isinstance(cell, Var):
                yield ir.Assign(cell, start)
            else:
                yield ir.Store(cell.pointer, start, cell.type, loop.site)

    def _kept(self, loop: ir.Loop) -> Iterator[Var]:
        """Variables that the loop sets and others read."""
        within = {id(s) for s in inside(loop)}
        own = {v for s in inside(loop) if (v := assigned(s)) is not None}
        outside = (s for s in self.facts.statements if id(s) not in within and s is not loop)
        read = {v for s in outside for e in used(s) for v in variables(e)}
        return (v for v in sorted(own & read, key=lambda v: v.id))

    # --------------------------------------------------------------------------------- guesses

    def _note_guess(self, loop: ir.Loop, retry: Retry, before: Sequence[Stmt]) -> None:
        """The reads of the word that tell the loop where to begin, and nothing else."""
        looks = (s for s in inside(loop) if isinstance(s, ir.Load) and id(s) in retry.looks)
        self.guesses.update(id(s.site) for s in looks)
        for index in range(len(before) - 1, -1, -1):
            s = before[index]
            if isinstance(s, ir.Load) and self._looks(s, retry.cas):
                if self._only_guesses(s, before[index + 1 :], loop):
                    self.guesses.add(id(s.site))
                return
            if any(isinstance(x, (ir.Barrier, ir.Fence)) for x in walk((s,))):
                return

    def _only_guesses(self, load: ir.Load, between: Sequence[Stmt], loop: ir.Loop) -> bool:
        """What was read goes to no memory and to no address but by the loop."""
        if load.var is None:
            return True
        near, within = list(walk(between)), {id(s) for s in inside(loop)}
        copies, own = {load.var}, {v for s in inside(loop) if (v := assigned(s)) is not None}
        for s in near:
            if isinstance(s, ir.Assign) and copies & set(variables(s.value)):
                copies.add(s.var)
        far = [s for s in self.facts.statements if id(s) not in within and s not in near]
        users = [s for s in near if _uses(s, copies)] + [s for s in far if _uses(s, copies - own)]
        return all(isinstance(s, (ir.Assign, ir.If)) or self._keeps(s) for s in users)

    def _keeps(self, s: Stmt) -> bool:
        return isinstance(s, ir.Store) and self._is_local(s.pointer)


def _uses(s: Stmt, some: Set[Var]) -> bool:
    return any(v in some for e in used(s) for v in variables(e))


def _type(cell: Cell) -> Int:
    assert isinstance(cell.type, Int)
    return cell.type


def _succeeding(body: Sequence[Stmt], retry: Retry) -> tuple[Stmt, ...]:
    """What the round executes whose compare-and-swap finds what it expects."""
    result: list[Stmt] = []
    for s in body:
        outcome = retry.decided.get(id(s))
        if isinstance(s, ir.If) and outcome is not None:
            result += _succeeding(s.then if outcome else s.otherwise, retry)
        elif s is retry.cas:
            assert retry.cas.var is not None
            result.append(evolve(retry.cas, var=None))
            result.append(ir.Assign(retry.cas.var, retry.cas.operands[0]))
        else:
            result.append(with_children(s, lambda inner: _succeeding(inner, retry)))
        if isinstance(result[-1] if result else None, ir.Leave):
            break
    return tuple(result)


def _marked(body: Sequence[Stmt], guesses: set[int]) -> tuple[Stmt, ...]:
    """The statements, with the sites of guesses marked."""

    def marked(s: Stmt) -> Stmt:
        if isinstance(s, ir.Load) and id(s.site) in guesses:
            return evolve(s, site=evolve(s.site, guess=True))
        return with_children(s, lambda inner: tuple(map(marked, inner)))

    return tuple(map(marked, body))
