"""Floating-point values that are followed, but for what loops add up: it would cost a round after the other.

A loop without barriers may be executed many rounds at once, and what one of its rounds hands to the next in
floating point hangs on all of them: it is forgotten in the loop. Behind it, it is some function of all that
the loop is given, where that reads only what the kernel does not write; else it is forgotten, too. Loops in
which lanes exchange values (``for (k = 16; k > 0; k /= 2) v += __shfl_xor_sync(full, v, k);``) hold barriers,
and are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

from attrs import evolve, frozen

from cuda_lsp.frontend.lowering.output import Output
from cuda_lsp.ir.exchanges import EXCHANGES
from cuda_lsp.ir.program import (
    LOOP_SUM,
    Array,
    Assign,
    Atomic,
    Barrier,
    Block,
    Builtin,
    Copy,
    Expr,
    If,
    Intrinsic,
    Load,
    Loop,
    Stmt,
    Store,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import Float, Pointer
from cuda_lsp.ir.walk import (
    assigned,
    expressions,
    inside,
    mapped,
    root_array,
    subexpressions,
    used,
    variables,
    walk,
    with_children,
    written_arrays,
)
from cuda_lsp.model import Space

_ALIKE = frozenset({Space.GLOBAL, Space.CONSTANT})
"""Where all threads see one memory, which only a kernel's own stores change."""


def without_sums(low: Output, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements, with such values unknown. ``low``: who gives them their identities."""
    around = _Around(_occurrences(statements), _settings(statements), written_arrays(statements))
    return tuple(_followed(low, statements, around))


@frozen
class _Around:
    """Of the whole kernel: occurrences of floats, how often each variable is set, and written arrays."""

    occurrences: Counter[Var]
    settings: Counter[Var]
    written: Set[Array | None]


def _followed(low: Output, statements: Sequence[Stmt], around: _Around) -> Iterator[Stmt]:
    for s in statements:
        if isinstance(s, Loop) and not any(isinstance(x, Barrier) for x in inside(s)):
            within, settings = _occurrences((s,)), _settings((s,))
            sums = [v for v in settings if isinstance(v.type, Float) and within[v] < around.occurrences[v]]
            given = _given(s, settings, around) if sums else None
            before = [Assign(low.var("", x.type), x) for x in given or ()]
            yield from before
            yield _Forgetting(low, frozenset(sums)).one(s)
            operands = None if given is None else tuple(assign.var for assign in before)
            yield from (Assign(v, _sum_of(low, v, operands)) for v in sums)
        elif isinstance(s, (If, Loop, Block)):
            yield with_children(s, lambda part: tuple(_followed(low, part, around)))
        else:
            yield s


def _occurrences(statements: Sequence[Stmt]) -> Counter[Var]:
    """How often each floating-point variable is set or read."""
    read = (v for s in walk(statements) for e in used(s) for v in variables(e))
    written = _settings(statements).elements()
    return Counter(v for each in (read, written) for v in each if isinstance(v.type, Float))


def _settings(statements: Sequence[Stmt]) -> Counter[Var]:
    """How often each variable is set, in the order of the text."""
    return Counter(v for s in walk(statements) if (v := assigned(s)) is not None)


def _given(loop: Loop, settings: Counter[Var], around: _Around) -> list[Expr] | None:
    """What the values that a loop leaves come of, before it: variables and coordinates.

    ``settings``: how often it sets each variable. None: of something else, too, such as memory that the
    kernel writes, or that threads have of their own.
    """
    parts = list(subexpressions(expressions((loop,))))
    reads = [s for s in inside(loop) if isinstance(s, Load)]
    arrays = [root_array(s.pointer) for s in reads]
    alike = all(a is not None and a.space in _ALIKE and a.may_alias is None for a in arrays)
    plain = not any(isinstance(s, Atomic | Copy) for s in inside(loop)) and not any(s.volatile for s in reads)
    unknown = any(isinstance(e, Unknown) and not e.uniform for e in parts)
    unknown = unknown or any(isinstance(e, Intrinsic) and e.name in EXCHANGES for e in parts)
    if not (alike and plain) or unknown or None in around.written or not around.written.isdisjoint(arrays):
        return None
    own = {v for v, times in settings.items() if times == around.settings[v]}  # set anew in each round
    given = dict.fromkeys(e for e in parts if isinstance(e, Var | Builtin) and e not in own)
    return None if any(isinstance(e.type, Pointer) for e in given) else list(given)


def _sum_of(low: Output, var: Var, operands: tuple[Expr, ...] | None) -> Expr:
    """What a loop leaves in a variable: one value for one value of all operands."""
    if operands is None:
        return _unknown(low, var)
    return Intrinsic(f"{LOOP_SUM} {low.fresh()}", operands, var.type)


def _unknown(low: Output, var: Var) -> Unknown:
    return Unknown(LOOP_SUM, var.type, low.fresh())


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
