"""What variables hold: terms and pointers, with C's types.

A value of an integer type is kept as any term congruent to it modulo ``2**bits`` ("raw"), so that
sums and products stay polynomials; it is brought into the type's range (``settle``) only where that
matters: comparisons, division, right shifts, bit operators, widening.

Assumptions, stated to the user: signed arithmetic does not overflow, and unsigned arithmetic does
not exceed its range merely because a parameter, the grid or a doubled loop variable is very large
(products of sizes below 1024 must fit).  Unsigned differences below zero, hash-like products and bit
operators wrap exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.ir.program import Array, Var
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.wraps import LEAST, is_told


@frozen(eq=False)
class HeaderPlace:
    """Where a pointer variable points at the start of a loop's round: the loop's own unknown."""

    var: Var


@frozen(eq=False)
class Nothing:
    """Where null points."""


NOTHING = Nothing()
Object = Array | HeaderPlace | Nothing


@frozen
class Target:
    """``offset`` bytes into ``array`` when ``condition``; ``array`` None: somewhere unknown."""

    condition: Term
    array: Object | None
    offset: Term


@frozen
class PointerValue:
    """A pointer: its possible targets, mutually exclusive."""

    targets: tuple[Target, ...]


Value = Term | PointerValue

NOWHERE = PointerValue((Target(t.TRUE, None, t.ZERO),))
NULL = PointerValue((Target(t.TRUE, NOTHING, t.ZERO),))


def choose(condition: Term, then: Value, otherwise: Value) -> Value:
    """``condition ? then : otherwise``."""
    if condition is t.TRUE or then == otherwise:
        return then
    if condition is t.FALSE:
        return otherwise
    if isinstance(then, Term) and isinstance(otherwise, Term):
        return t.ite(condition, then, otherwise)
    if isinstance(then, PointerValue) and isinstance(otherwise, PointerValue):
        return _join_targets(condition, then, otherwise)
    return NOWHERE


def _join_targets(condition: Term, then: PointerValue, otherwise: PointerValue) -> PointerValue:
    if len(then.targets) == len(otherwise.targets) == 1:
        a, b = then.targets[0], otherwise.targets[0]
        if a.array is b.array:
            return PointerValue((Target(t.TRUE, a.array, t.ite(condition, a.offset, b.offset)),))
    kept = [Target(t.and_(condition, x.condition), x.array, x.offset) for x in then.targets]
    refused = t.not_(condition)
    kept += [Target(t.and_(refused, x.condition), x.array, x.offset) for x in otherwise.targets]
    return PointerValue(tuple(x for x in kept if x.condition is not t.FALSE))


def type_range(type: Type) -> tuple[float, float]:
    """What a type's values lie between, both included; infinite where it is no integer type."""
    return (type.minimum, type.maximum) if isinstance(type, Int) else (-math.inf, math.inf)


# ------------------------------------------------------------------------------------- wraparound


def _plausibly_fits(term: Term, type: Int, *, unsigned: bool = False) -> bool:
    """Whether plausible sizes keep the term within the type; grids that the source tells count whole."""
    for told in (False, True):
        narrow = _plausible(term, unsigned=unsigned, told=told)
        if not (type.minimum <= narrow.lo and narrow.hi <= type.maximum):
            return False
    return True


def _plausible(term: Term, *, unsigned: bool, told: bool) -> Term:
    """The term with wide free symbols cut to plausible sizes; only its interval is of interest.

    ``unsigned``: parameters that end up in unsigned arithmetic are sizes, not negative numbers.
    ``told``: with every block of a grid that the source fixes, and the least of everything else.
    """
    most = LEAST if told else budgets.PLAUSIBLE_SIZE

    def cut(part: Term) -> Term | None:
        if part.op is Op.POWER and part.args[3] and part.hi > most:
            # a doubled loop variable: its loop ends before it overflows
            return t.symbol(f"{part.order}~", Level.GRID, max(part.lo, 0), max(part.lo, most))
        if part.op not in (Op.SYMBOL, Op.APPLY):
            return None
        lo, hi = max(part.lo, -most), min(part.hi, most)
        if unsigned and part.op is Op.SYMBOL and part.args[1] is Level.GRID:
            lo = max(lo, 0)
        if part.hi - part.lo <= budgets.NARROW_RANGE or lo > hi or (told and is_told(part)):
            return t.symbol(f"{part.order}~", Level.GRID, part.lo, part.hi)
        return t.symbol(f"{part.order}~", Level.GRID, lo, hi)

    memo = _plausible_terms[unsigned, told]
    if len(memo) > budgets.KEPT_TERMS:
        memo.clear()
    return t.replace(term, cut, memo)


_plausible_terms: dict[tuple[bool, bool], dict[Term, Term]] = {
    (unsigned, told): {} for unsigned in (False, True) for told in (False, True)
}


def forget() -> None:
    """Nothing is known of expressions seen before."""
    for memo in _plausible_terms.values():
        memo.clear()


def settle(raw: Term, type: Type) -> Term:
    """The value of type ``type`` that ``raw`` is congruent to, under the stated assumptions."""
    if not isinstance(type, Int):
        return raw
    if type.boolean:
        return t.number(t.truth(raw))
    if type.minimum <= raw.lo and raw.hi <= type.maximum:
        return raw
    if type.signed and type.bits >= 32:
        return raw
    raw = t.recombined(raw)
    if _plausibly_fits(raw, type, unsigned=not type.signed):
        return raw
    return t.wrap(raw, type.bits, type.signed)


def sizes_in(settled: Term, type: Type) -> Iterator[Term]:
    """The parameters that ``settle`` took for sizes, that is not negative."""
    if isinstance(type, Int) and not type.signed and settled.lo < 0:
        for part in t.subterms(settled):
            if part.op is Op.SYMBOL and part.args[1] is Level.GRID and part.lo < 0:
                yield part


def rest_of_size(settled: Term, type: Type) -> Term | None:
    """What is left of sizes (``n - k``), before it wraps: as little negative as a size is."""
    if settled.op is not Op.WRAP or not isinstance(type, Int) or type.signed:
        return None
    raw: Term = settled.args[0]
    leaves = [part for part in t.subterms(raw) if part.op in (Op.SYMBOL, Op.APPLY, Op.TEST)]
    plain = all(part.op is Op.SYMBOL and part.args[1] is Level.GRID for part in leaves)
    return raw if plain and raw.op is Op.SUM and raw.hi > 0 else None


def into_signed(raw: Term, type: Int) -> Term:
    """An unsigned or wider value cast to a signed type: wraps unless it plausibly fits."""
    return raw if _plausibly_fits(raw, type) else t.wrap(raw, type.bits, True)
