"""One round of a loop around a wait that may give up, followed twice: as it succeeds, and as it gives up.

A round begins with anything at all in the variables that the loop sets, so what is found holds of each. The
loop waits when every round tries once, who succeeds leaves, and who gives up goes on: by constants and the
outcome alone. A branch before the try may hang on anything, as long as it goes nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Expr, Stmt, Var
from cuda_lsp.ir.walk import assigned, inside, used, variables
from cuda_lsp.static.rewrites.values import number


@frozen(eq=False)
class Waiting:
    """A loop that is a wait. ``decided``: which arm who succeeds takes, by ``id()``.

    ``begun``: variables whose value at the beginning of the last round may matter in it or behind it.
    ``before_body``: who succeeds leaves before the body.
    """

    decided: Mapping[int, bool]
    begun: frozenset[Var]
    before_body: bool


def waiting(loop: ir.Loop, tried: ir.Incomplete, read_behind: frozenset[Var]) -> Waiting | None:
    """The loop as a wait; None: it is none, as far as is seen. ``read_behind``: what others read."""
    assert tried.attempt is not None
    before_body = loop.tests_first and any(s is tried for t in loop.test for s in (t, *inside(t)))
    ways = [_Way(tried, tried.attempt, outcome) for outcome in (0, 1)]
    fails, succeeds = (_followed(way, loop, before_body) for way in ways)
    if fails is not False or succeeds is not True or not all(way.tries == 1 for way in ways):
        return None
    own = {v for s in inside(loop) if (v := assigned(s)) is not None}
    begun = own & (ways[1].begun | (read_behind - ways[1].held.keys()))
    return Waiting(ways[1].decided, frozenset(begun), before_body)


def _followed(way: _Way, loop: ir.Loop, before_body: bool) -> bool | None:
    """Whether the round leaves the loop; None: that is not known."""
    around, tested = (loop.body, loop.step), (loop.test, loop)
    for part in (*tested, *around) if before_body else (*around, *tested):
        left = way.ended(part) if isinstance(part, ir.Loop) else way.all(part)
        if left is None:
            return None
        if left not in (_ON, loop.continue_label):
            return True
    return False


_ON = -1
"""No label: what follows is executed."""


@define(eq=False)
class _Way:
    """``held``: variables that are set in this round, and their number if it is known."""

    tried: ir.Incomplete
    attempt: ir.Attempt
    outcome: int
    tries: int = 0
    held: dict[Var, int | None] = field(factory=dict[Var, "int | None"])
    begun: set[Var] = field(factory=set[Var])
    decided: dict[int, bool] = field(factory=dict[int, bool])

    def known(self, e: Expr) -> int | None:
        """What an expression is; its variables are noted."""
        self.begun.update(v for v in variables(e) if v not in self.held)
        return number(e, {v: n for v, n in self.held.items() if n is not None})

    def ended(self, loop: ir.Loop) -> int | None:
        """As ``all``, of the loop's condition."""
        goes_on = self.known(loop.condition)
        return None if goes_on is None else _ON if goes_on else loop.label

    def all(self, body: Sequence[Stmt]) -> int | None:
        """The label that is left, or ``_ON``; None: that is not known."""
        for s in body:
            left = self._one(s)
            if left != _ON:
                return left
        return _ON

    def _one(self, s: Stmt) -> int | None:
        if isinstance(s, ir.Leave):
            return s.label
        if isinstance(s, ir.If):
            return self._branch(s)
        if isinstance(s, ir.Block):
            left = self.all(s.body)
            return _ON if left == s.label else left
        if s is self.tried:
            self.tries += 1
        for e in used(s):
            value = self.known(e)
            if isinstance(s, ir.Assign):
                self.held[s.var] = self.outcome if s.var is self.attempt.outcome else value
        return _ON

    def _branch(self, s: ir.If) -> int | None:
        condition = self.known(s.condition)
        if condition is not None:
            self.decided[id(s)] = bool(condition)
            return self.all(s.then if condition else s.otherwise)
        before, tries = dict(self.held), self.tries
        ends = list[dict[Var, int | None]]()
        for arm in (s.then, s.otherwise):
            self.held = dict(before)
            if self.all(arm) != _ON or self.tries != tries:
                return None
            ends.append(self.held)
        one, other = ends
        self.held = {v: one[v] if one[v] == other[v] else None for v in one if v in other}
        return _ON
