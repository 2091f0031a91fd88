"""Floating-point values that are followed, but for what loops add up: it would cost a round after the other.

A loop without barriers may be executed many rounds at once, and what one of its rounds hands to the next in
floating point hangs on all of them: it is forgotten, in the loop and behind it. Loops in which lanes exchange
values (``for (k = 16; k > 0; k /= 2) v += __shfl_xor_sync(full, v, k);``) hold barriers, and are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.lowering.output import Output
from cuda_lsp.ir.program import (
    Assign,
    Atomic,
    Barrier,
    Block,
    Expr,
    If,
    Load,
    Loop,
    Stmt,
    Store,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import Float
from cuda_lsp.ir.walk import assigned, inside, mapped, used, variables, walk, with_children


def without_sums(low: Output, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements, with such values unknown. ``low``: who gives them their identities."""
    return tuple(_followed(low, statements, _occurrences(statements)))


def _followed(low: Output, statements: Sequence[Stmt], everywhere: Counter[Var]) -> Iterator[Stmt]:
    for s in statements:
        if isinstance(s, Loop) and not any(isinstance(x, Barrier) for x in inside(s)):
            within = _occurrences((s,))
            every = dict.fromkeys(v for x in inside(s) if (v := assigned(x)) is not None)
            sums = [v for v in every if isinstance(v.type, Float) and within[v] < everywhere[v]]
            yield _Forgetting(low, frozenset(sums)).one(s)
            yield from (Assign(v, _unknown(low, v)) for v in sums)
        elif isinstance(s, (If, Loop, Block)):
            yield with_children(s, lambda part: tuple(_followed(low, part, everywhere)))
        else:
            yield s


def _occurrences(statements: Sequence[Stmt]) -> Counter[Var]:
    """How often each floating-point variable is set or read."""
    read = (v for s in walk(statements) for e in used(s) for v in variables(e))
    written = (v for s in walk(statements) if (v := assigned(s)) is not None)
    return Counter(v for each in (read, written) for v in each if isinstance(v.type, Float))


def _unknown(low: Output, var: Var) -> Unknown:
    return Unknown("what a loop adds up", var.type, low.fresh())


@frozen
class _Forgetting:
    """Statements in which some variables are neither set nor read."""

    low: Output
    sums: frozenset[Var]

    def one(self, s: Stmt) -> Stmt:
        """The statement without them."""
        if isinstance(s, (If, Loop, Block)):
            return with_children(s, self._all)
        if isinstance(s, Load) and s.var in self.sums:
            return evolve(s, var=None)
        if isinstance(s, (Assign, Store)):
            return evolve(s, value=self._value(s.value))
        if isinstance(s, Atomic):
            return evolve(s, operands=tuple(map(self._value, s.operands)))
        return s

    def _all(self, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
        kept = (s for s in statements if not (isinstance(s, Assign) and s.var in self.sums))
        return tuple(self.one(s) for s in kept)

    def _value(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return _unknown(self.low, e) if e in self.sums else e
        return e if self.sums.isdisjoint(variables(e)) else mapped(e, self._value)
