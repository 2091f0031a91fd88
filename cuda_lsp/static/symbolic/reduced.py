"""Conditions with what their own equations say put in: the same question, of fewer numbers.

``t + 128*b == u + 128*c`` with ``t`` and ``u`` below 128 is two equations, ``t == u`` and ``b == c``, and
with these put in a condition that the blocks differ is none. Z3's integers find that by branching, which
conditions that have nothing to do with it (``flags / 2 % 2 == 0``) keep going for ever. Every step here keeps
the integers that fulfil the whole; which of its parts have no number in common is told besides: the whole is
impossible where one of them is.

Theory: equations over bounded integers by residues (Pugh, "The Omega Test", 1991), as ``affine`` does for one
address.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Op, Term

_EXACT = 1 << 50
"""As far as intervals, which are floats, are integers."""
_LEAVES = frozenset({Op.SYMBOL, Op.APPLY, Op.TEST, Op.INTRINSIC})
_DIVISIONS: Mapping[Op, Op] = {Op.REM: Op.DIV, Op.FLOOR_MOD: Op.FLOOR_DIV}


def reduced(formula: Term) -> Term:
    """Fulfilled by the same numbers, but for those that equations name: they are put in where they occur."""
    for _ in range(budgets.MOST_REDUCTIONS):
        before, formula = formula, _put_in(_split(formula))
        if formula is before or formula is t.FALSE:
            break
    return formula


def components(formula: Term) -> list[Term]:
    """Conditions that have no unknown in common, together the formula; those of most unknowns first.

    Values of one unknown function have to do with each other, whatever it is applied to.
    """
    group: dict[object, object] = {}

    def root(x: object) -> object:
        while group.setdefault(x, x) != x:
            x = group[x]
        return x

    parts = [(part, _unknowns(part)) for part in t.conjuncts(formula)]
    for _, names in parts:
        for name in names[1:]:
            group[root(name)] = root(names[0])
    found: dict[object, list[Term]] = {}
    for part, names in parts:
        found.setdefault(root(names[0]) if names else None, []).append(part)
    return [t.and_(*conditions) for conditions in sorted(found.values(), key=len, reverse=True)]


def concerning(formula: Term, condition: Term) -> Term:
    """What of a formula has to do with the condition's numbers; options do not, for example."""
    names = set(_unknowns(condition))
    return t.and_(*(part for part in components(formula) if not names.isdisjoint(_unknowns(part))))


def _unknowns(condition: Term) -> list[str]:
    found = (x for x in t.subterms(condition) if x.op in _LEAVES)
    return list(dict.fromkeys(x.args[0] for x in found))


# ------------------------------------------------------------------------------------ equations split


def _split(formula: Term) -> Term:
    """With each equation as those that its residues say."""
    parts = t.conjuncts(formula)
    if all(part.op is not Op.EQ for part in parts):
        return formula
    known = t.bounds_of(formula)
    split = [_residues(part, known) if part.op is Op.EQ else part for part in parts]
    return t.and_(*split, *_of_same_digits(split))


def _residues(equation: Term, known: Mapping[Term, tuple[float, float]]) -> Term:
    """``rest + factor*whole == 0`` is two, where the rest reaches only one multiple of the factor.

    ``known``: what conditions besides, which are kept, say of atoms.
    """
    sums = dict(t.monomials(equation.args[0]))
    constant = sums.pop((), 0)
    for factor in sorted({abs(c) for c in sums.values()} - {1}):
        rest = {m: c for m, c in sums.items() if c % factor}
        low, high = t.interval_of(rest, known)
        if not rest or max(abs(low), abs(high)) > _EXACT:
            continue
        least, most = int(low) + constant, int(high) + constant
        first = -(-least // factor) * factor
        if first > most:
            return t.FALSE
        if first + factor > most:
            below = t.eq_zero(t.add(t.from_monomials(rest), t.const(constant - first)))
            whole = {m: c for m, c in sums.items() if not c % factor}
            above = t.eq_zero(t.add(t.from_monomials(whole), t.const(first)))
            return t.and_(below, _residues(above, known) if above.op is Op.EQ else above)
    return equation


def _of_same_digits(parts: Iterable[Term]) -> Iterator[Term]:
    """Numbers that agree in quotient and remainder, by what is not 0, are one."""
    agreed = dict.fromkeys(pair for part in parts for c in t.conjuncts(part) if (pair := _pair(c)))
    for a, b in agreed:
        by = _DIVISIONS.get(a.op)
        if by is None or a.op is not b.op or a.args[1] != b.args[1]:
            continue
        if isinstance(a.args[1], Term) and a.args[1].lo < 1:
            continue
        (x, d), (y, _) = a.args, b.args
        quotients = (
            (t.divide(x, d), t.divide(y, d)) if by is Op.DIV else (t.floor_div(x, d), t.floor_div(y, d))
        )
        if quotients in agreed or quotients[::-1] in agreed or quotients[0] is quotients[1]:
            yield t.eq(x, y)


def _pair(condition: Term) -> tuple[Term, Term] | None:
    """``(a, b)`` of ``a == b``."""
    if condition.op is not Op.EQ:
        return None
    sums = t.monomials(condition.args[0])
    if len(sums) != 2 or sorted(sums.values()) != [-1, 1] or any(len(m) != 1 for m in sums):
        return None
    first, second = sums
    return first[0], second[0]


# ------------------------------------------------------------------------------------ equations put in


def _put_in(formula: Term) -> Term:
    """With one number after the other that an equation names replaced by what it is."""
    for _ in range(budgets.MOST_REDUCTIONS):
        found = next(filter(None, map(_named, t.conjuncts(formula))), None)
        if found is None:
            return _alike(formula)
        symbol, value = found
        formula = t.and_(t.substitute(formula, {symbol: value}), *_within(value, symbol))
    return formula


def _within(value: Term, symbol: Term) -> Iterator[Term]:
    """The value is within the interval that the symbol has by itself."""
    if math.isfinite(symbol.lo):
        yield t.le(t.const(int(symbol.lo)), value)
    if math.isfinite(symbol.hi):
        yield t.le(value, t.const(int(symbol.hi)))


def _alike(formula: Term) -> Term:
    """With a number that an equation says to be another, neither of them a symbol, as that elsewhere."""
    for condition in t.conjuncts(formula):
        said, pair = t.conjuncts(formula), _pair(condition)
        if pair is not None and Op.SYMBOL not in (pair[0].op, pair[1].op) and condition in said:
            old, new = sorted(pair, key=lambda x: -x.order)
            if old not in set(t.subterms(new)):
                put_in = t.replacing({old: new})
                formula = t.and_(*(c if c is condition else put_in(c) for c in said))
    return formula


def _named(condition: Term) -> tuple[Term, Term] | None:
    """A symbol that the condition says to be a number, or another symbol but for a number, and what it is.

    Of two symbols the one that was made last goes.
    """
    if condition.op is not Op.EQ:
        return None
    sums = t.monomials(condition.args[0])
    symbols = [(m[0], c) for m, c in sums.items() if m]
    if len(symbols) > 2 or any(len(m) > 1 for m in sums) or any(x.op is not Op.SYMBOL for x, _ in symbols):
        return None
    for symbol, factor in sorted(symbols, key=lambda item: -item[0].order):
        if abs(factor) == 1:
            rest = t.sub(condition.args[0], t.scale(symbol, factor))
            return symbol, t.scale(rest, -factor)
    return None
