"""Walking over terms: sub-terms, levels, substitution with re-simplification."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cuda_lsp.static.symbolic.core import Level, Op, Term, apply, sum_of_products, symbol, test
from cuda_lsp.static.symbolic.integers import (
    bit_and,
    bit_or,
    bit_xor,
    divide,
    floor_div,
    floor_mod,
    intrinsic,
    power,
    remainder,
    shift_left,
    shift_right,
    wrap,
)
from cuda_lsp.static.symbolic.logic import and_, eq_zero, ite, le_zero, not_, or_


def subterms(*roots: Term) -> Iterable[Term]:
    """Every distinct sub-term once, parents before children."""
    seen: set[Term] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        yield term
        stack.extend(term.parts)


def level_of(term: Term) -> Level:
    """Among which threads the term is certainly one value."""
    found = Level.GRID
    for part in subterms(term):
        if part.op in (Op.SYMBOL, Op.APPLY, Op.TEST):
            found = max(found, part.args[1])
    return found


def rebuild(term: Term, parts: tuple[Term, ...]) -> Term:
    """The same operation over other sub-terms (given in the order of ``term.parts``)."""
    op, args = term.op, term.args
    if op is Op.SUM:
        new = dict(zip(term.parts, parts, strict=True))
        return sum_of_products(([new[atom] for atom in atoms], factor) for atoms, factor in args[0])
    if op is Op.APPLY:
        return apply(args[0], args[1], parts, term.lo, term.hi)
    if op is Op.TEST:
        return test(args[0], args[1], parts)
    if op is Op.POWER:
        return power(parts[0], args[1], parts[1], growing=args[3])
    if op is Op.INTRINSIC:
        return intrinsic(args[0], args[1], parts, term.lo, term.hi)
    if op is Op.WRAP:
        return wrap(parts[0], args[1], args[2])
    if op in (Op.FLOOR_DIV, Op.FLOOR_MOD):
        return (floor_div if op is Op.FLOOR_DIV else floor_mod)(parts[0], args[1])
    return _BUILDERS[op](*parts)


_BUILDERS: Mapping[Op, Callable[..., Term]] = {
    Op.DIV: divide,
    Op.REM: remainder,
    Op.BAND: bit_and,
    Op.BOR: bit_or,
    Op.BXOR: bit_xor,
    Op.SHL: shift_left,
    Op.SHR: shift_right,
    Op.ITE: ite,
    Op.LE: le_zero,
    Op.EQ: eq_zero,
    Op.NOT: not_,
    Op.AND: and_,
    Op.OR: or_,
}


def replace(term: Term, leaf: Callable[[Term], Term | None], memo: dict[Term, Term] | None = None) -> Term:
    """``term`` with every sub-term for which ``leaf`` gives a term replaced by it, top down."""
    done = {} if memo is None else memo
    known = done.get(term)
    if known is not None:
        return known
    new = leaf(term)
    if new is None:
        new = _with_parts(term, [replace(part, leaf, done) for part in term.parts])
    done[term] = new
    return new


def _with_parts(term: Term, parts: list[Term]) -> Term:
    for new, part in zip(parts, term.parts, strict=True):
        if new is not part:
            # Operands of AND/OR were sorted on creation: rebuild from the args in their own order.
            return rebuild(term, tuple(parts))
    return term


def renamed(term: Term, name_of: Callable[[Term], str | None], memo: dict[Term, Term]) -> Term:
    """``term`` with symbols, unknown functions and predicates under other names; None: as it is."""

    def leaf(part: Term) -> Term | None:
        name = name_of(part) if part.op in (Op.SYMBOL, Op.APPLY, Op.TEST) else None
        if name is None:
            return None
        if part.op is Op.SYMBOL:
            return symbol(name, part.args[1], part.lo, part.hi)
        operands = tuple(replace(o, leaf, memo) for o in part.args[2])
        if part.op is Op.TEST:
            return test(name, part.args[1], operands)
        return apply(name, part.args[1], operands, part.lo, part.hi)

    return replace(term, leaf, memo)


def substitute(term: Term, mapping: Mapping[Term, Term], memo: dict[Term, Term] | None = None) -> Term:
    """``term`` with the keys of ``mapping`` replaced, top down. ``memo``: of calls with one mapping."""
    unknowns = 0
    for key in mapping:
        if not key.unknowns:  # made of numbers: it may be anywhere
            return replace(term, mapping.get, memo)
        unknowns |= key.unknowns
    return _substituted(term, mapping, unknowns, {} if memo is None else memo)


def _substituted(term: Term, mapping: Mapping[Term, Term], unknowns: int, done: dict[Term, Term]) -> Term:
    """``unknowns``: of all keys; where none of them is, no key is."""
    if not term.unknowns & unknowns:
        return term
    known = done.get(term)
    if known is not None:
        return known
    new = mapping.get(term)
    if new is None:
        new = _with_parts(term, [_substituted(part, mapping, unknowns, done) for part in term.parts])
    done[term] = new
    return new


def replacing(mapping: Mapping[Term, Term]) -> Callable[[Term], Term]:
    """``substitute`` with one mapping, for several terms."""
    memo: dict[Term, Term] = {}
    return lambda term: substitute(term, mapping, memo)
