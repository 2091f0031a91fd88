"""Conditions: comparisons in normal form (``p <= 0``, ``p == 0``), connectives, choices between integers.

Comparisons divide by the gcd of their coefficients and tighten (integers), so residue classes and
contradictions are seen at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from cuda_lsp.static.symbolic.core import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Op,
    Term,
    add,
    from_monomials,
    intern,
    monomials,
    scale,
    sub,
)

_DEPTH = 3
"""Of choices between choices, that become conditions of conditions."""


def le(a: Term, b: Term) -> Term:
    """``a <= b``."""
    return le_zero(sub(a, b))


def lt(a: Term, b: Term) -> Term:
    """``a < b``."""
    return le_zero(add(a, scale(b, -1), ONE))


def le_zero(difference: Term) -> Term:
    """``difference <= 0``."""
    if difference.hi <= 0:
        return TRUE
    if difference.lo > 0:
        return FALSE
    sums = dict(monomials(difference))
    constant = sums.pop((), 0)
    choice = _choice(sums)
    if choice is not None:
        atom, factor = choice
        return _in_each_case(atom, lambda value: factor * value + constant <= 0)
    by_branch = _by_branch(sums, constant, le_zero)
    if by_branch is not None:
        return by_branch
    shared = math.gcd(*sums.values())
    if shared > 1:  # tighten: g*p + c <= 0  <=>  p + ceil(c/g) <= 0
        sums = {m: c // shared for m, c in sums.items()}
        constant = -(-constant // shared)
        difference = from_monomials({**sums, (): constant})
    return intern(Op.LE, (difference,), (difference,), 0, 1)


def eq(a: Term, b: Term) -> Term:
    """``a == b``."""
    difference = sub(a, b)
    if difference.is_const:
        return TRUE if difference.value == 0 else FALSE
    if difference.lo > 0 or difference.hi < 0:
        return FALSE
    sums = dict(monomials(difference))
    constant = sums.pop((), 0)
    choice = _choice(sums)
    if choice is not None:
        atom, factor = choice
        return _in_each_case(atom, lambda value: factor * value + constant == 0)
    by_branch = _by_branch(sums, constant, eq_zero)
    if by_branch is not None:
        return by_branch
    shared = math.gcd(*sums.values())
    if constant % shared:
        return FALSE
    first = min(sums, key=lambda atoms: [atom.order for atom in atoms])
    shared = -shared if sums[first] < 0 else shared
    difference = from_monomials({m: c // shared for m, c in {**sums, (): constant}.items()})
    return intern(Op.EQ, (difference,), (difference,), 0, 1)


def _choice(sums: Mapping[tuple[Term, ...], int]) -> tuple[Term, int] | None:
    """A choice between constants, and what it is multiplied by, of which this is a multiple."""
    if len(sums) != 1:
        return None
    ((atoms, factor),) = sums.items()
    return (atoms[0], factor) if len(atoms) == 1 and _is_choice(atoms[0], _DEPTH) else None


def _is_choice(a: Term, depth: int) -> bool:
    """A choice between constants, or between such choices: ``a && b``, where ``b`` reads memory."""
    return a.op is Op.ITE and all(x.is_const or (depth > 0 and _is_choice(x, depth - 1)) for x in a.args[1:])


def _in_each_case(choice: Term, holds: Callable[[int], bool]) -> Term:
    """Where what holds of some constants holds of the chosen one."""
    if choice.is_const:
        return _truth(holds(choice.value))
    condition, then, otherwise = choice.args
    return bool_ite(condition, _in_each_case(then, holds), _in_each_case(otherwise, holds))


def _by_branch(
    sums: Mapping[tuple[Term, ...], int], constant: int, compared: Callable[[Term], Term]
) -> Term | None:
    """The comparison of a choice, where one of its branches decides it: ``(c ? 1 : x) == 0``.

    ``a || b || done[i]`` is such a choice, of numbers that are choices. None: neither branch decides.
    """
    ((atoms, factor),) = sums.items() if len(sums) == 1 else (((), 0),)
    if len(atoms) != 1 or atoms[0].op is not Op.ITE:
        return None
    condition, *branches = atoms[0].args
    if not any(map(_is_of_numbers, branches)):
        return None
    offset = from_monomials({(): constant})
    then, otherwise = (compared(add(scale(branch, factor), offset)) for branch in branches)
    then, otherwise = _where(condition, then), _where(not_(condition), otherwise)
    decided = not {then, otherwise}.isdisjoint((TRUE, FALSE))
    return bool_ite(condition, then, otherwise) if decided else None


def _is_of_numbers(term: Term) -> bool:
    """A number, or a choice between one and what is of numbers in turn."""
    while term.op is Op.ITE:
        numbers = [part for part in term.args[1:] if part.is_const]
        if not numbers:
            return False
        term = term.args[2] if numbers[0] is term.args[1] else term.args[1]
    return term.is_const


def _where(known: Term, condition: Term) -> Term:
    """The condition where another holds, as far as one of them says the other, or denies it."""
    if implies(known, condition):
        return TRUE
    return FALSE if implies(condition, not_(known)) or implies(known, not_(condition)) else condition


def _truth(value: bool) -> Term:
    return TRUE if value else FALSE


def eq_zero(a: Term) -> Term:
    """``a == 0``."""
    return eq(a, ZERO)


def not_(a: Term) -> Term:
    """The negation, inside conjunctions and disjunctions."""
    if a.negation is None:
        a.negation = _negated(a)
    return a.negation


def _negated(a: Term) -> Term:
    if a is TRUE:
        return FALSE
    if a is FALSE:
        return TRUE
    if a.op is Op.NOT:
        return a.args[0]
    if a.op is Op.LE:  # not (d <= 0)  <=>  1 - d <= 0
        return le_zero(sub(ONE, a.args[0]))
    if a.op is Op.AND:
        return or_(*(not_(part) for part in a.args))
    if a.op is Op.OR:
        return and_(*(not_(part) for part in a.args))
    return intern(Op.NOT, (a,), (a,), 0, 1)


def conjuncts(a: Term) -> tuple[Term, ...]:
    """The conditions that together are this one."""
    if a is TRUE:
        return ()
    return a.args if a.op is Op.AND else (a,)


def _gather(op: Op, terms: Iterable[Term], unit: Term, absorbing: Term) -> Term:
    parts: dict[Term, None] = {}
    for term in terms:
        for part in term.args if term.op is op else (term,):
            if part is absorbing:
                return absorbing
            if part is not unit:
                parts[part] = None
    if any(not_(part) in parts for part in parts if part.op in (Op.NOT, Op.LE, Op.EQ, Op.TEST)):
        return absorbing
    kept = tuple(sorted(parts, key=lambda part: part.order))
    if not kept:
        return unit
    return kept[0] if len(kept) == 1 else intern(op, kept, kept, 0, 1)


def and_(*terms: Term) -> Term:
    """All of them."""
    return _gather(Op.AND, terms, TRUE, FALSE)


def or_(*terms: Term) -> Term:
    """One of them; what is common to all is told once."""
    result = _gather(Op.OR, terms, FALSE, TRUE)
    if result.op is not Op.OR:
        return result
    common = set(conjuncts(result.args[0]))
    for part in result.args[1:]:
        common &= set(conjuncts(part))
    if not common:
        return result
    rest = [and_(*(c for c in conjuncts(part) if c not in common)) for part in result.args]
    return and_(*common, or_(*rest))


def bool_ite(condition: Term, then: Term, otherwise: Term) -> Term:
    """``condition ? then : otherwise`` of conditions."""
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if otherwise is FALSE:
        return and_(condition, then)
    if then is FALSE:
        return and_(not_(condition), otherwise)
    return and_(or_(not_(condition), then), or_(condition, otherwise))


def implies(premise: Term, conclusion: Term) -> bool:
    """Syntactically: every conjunct of the conclusion is one of the premise."""
    known = set(conjuncts(premise))
    return all(part in known for part in conjuncts(conclusion))


def says_at_most_zero(conditions: Iterable[Term], a: Term) -> bool:
    """Syntactically: one of the conditions bounds ``a`` by a number that is not positive.

    Makes no terms, whose order the solver's answers depend on.
    """
    own = dict(monomials(a))
    own_constant = own.pop((), 0)
    opposite = {m: -c for m, c in own.items()}
    for part in conditions:
        if part.op in (Op.LE, Op.EQ):
            sums = dict(monomials(part.args[0]))
            constant = sums.pop((), 0)
            if sums == own and constant >= own_constant:
                return True
            if part.op is Op.EQ and sums == opposite and constant + own_constant <= 0:
                return True
    return False


def truth(a: Term) -> Term:
    """An integer as a condition: ``a != 0``."""
    if a.op is Op.ITE and a.args[1] is ONE and a.args[2] is ZERO:
        return a.args[0]
    if a.op is Op.BOR:
        return or_(*map(truth, a.args))
    if a.op is Op.BAND and all(part.lo >= 0 and part.hi <= 1 for part in a.args):  # of two comparisons
        return and_(*map(truth, a.args))
    return not_(eq(a, ZERO))


def number(a: Term) -> Term:
    """A condition as an integer, 0 or 1."""
    return ite(a, ONE, ZERO)


def ite(condition: Term, then: Term, otherwise: Term) -> Term:
    """``condition ? then : otherwise`` of integers; what both have in common stands outside."""
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if condition.op is Op.NOT:
        return ite(condition.args[0], otherwise, then)
    inner = _branch_where(condition, then), _branch_where(not_(condition), otherwise)
    if inner != (then, otherwise):
        return ite(condition, *inner)
    ours, theirs = monomials(then), monomials(otherwise)
    common = {m: c for m, c in ours.items() if theirs.get(m) == c}
    if common:  # what does not depend on the condition
        always = from_monomials(common)
        return add(always, ite(condition, sub(then, always), sub(otherwise, always)))
    lo, hi = min(then.lo, otherwise.lo), max(then.hi, otherwise.hi)
    if condition.op is Op.LE and lo < max(then.lo, otherwise.lo) and _larger(condition, ours, theirs):
        lo = max(then.lo, otherwise.lo)
    return intern(Op.ITE, (condition, then, otherwise), (condition, then, otherwise), lo, hi)


def _branch_where(known: Term, term: Term) -> Term:
    """What a choice comes to where its condition, or the opposite, is known."""
    if term.op is Op.ITE and term.args[0] is known:
        return term.args[1]
    return term.args[2] if term.op is Op.ITE and term.args[0] is not_(known) else term


def _larger(
    condition: Term, then: Mapping[tuple[Term, ...], int], otherwise: Mapping[tuple[Term, ...], int]
) -> bool:
    """``otherwise <= then ? then : otherwise``; makes no terms."""
    asked = monomials(condition.args[0])
    differ = (then.get(m, 0) + asked.get(m, 0) == otherwise.get(m, 0) for m in {*then, *otherwise, *asked})
    return all(differ)


def minimum(a: Term, b: Term) -> Term:
    """The smaller one."""
    if a.hi <= b.lo:
        return a
    return b if b.hi <= a.lo else ite(le(a, b), a, b)


def maximum(a: Term, b: Term) -> Term:
    """The larger one."""
    if a.hi <= b.lo:
        return b
    return a if b.hi <= a.lo else ite(le(a, b), b, a)
