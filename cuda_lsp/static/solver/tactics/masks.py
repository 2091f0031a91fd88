"""``x & (size - 1)``: a size that is used as a mask is meant to be a power of two.

Then the masked value is a remainder, and the formula of a pair falls into cases, one per power, in linear
arithmetic. For a parameter that is an assumption, which is told to the user.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.ir.program import Var
from cuda_lsp.static.solver.rows.stated import speaks_against_powers
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Level, Op, Term


def powers_of_two(pair: OpenPair) -> Proved | None:
    """Impossible for every power of two that a mask's size may be, which parameters are taken to be."""
    p, query = pair.p, pair.query
    masks = _mask_cases(p.formula, query.where.free)
    if masks is None or not masks.text or speaks_against_powers(p, masks.size, query):
        return None
    possible = any(not query.ask_case(p, pair.facts, case) for case in masks.cases)
    return None if possible else Proved((masks.text,))


_LARGEST = 1 << 63
"""The largest power of two that a size may be."""


@frozen(eq=False)
class _Masks:
    """A formula case by case, for a ``size`` that is meant to be a power of two.

    ``text`` names the parameters involved; it is empty when there are none (a doubled or halved variable).
    """

    size: Term
    cases: list[Term]
    text: str


def _mask_cases(formula: Term, free: Mapping[str, Var]) -> _Masks | None:
    """``x & (size - 1)``: the size is meant to be a power of two. The formula case by case, if so.

    In each case the masked value is ``x mod size`` for one constant size, free of bit operators; sizes
    beyond every ``x`` are one case.
    """
    bands = [(part, *split) for part in t.subterms(formula) if (split := _masked(part)) is not None]
    if not bands:
        return None
    size = bands[0][2]
    masked = [(part, value) for part, value, other in bands if other is size]
    reach = max(value.hi if value.lo >= 0 else math.inf for _, value in masked)
    cases: list[Term] = []
    for i in range(int(min(size.hi, _LARGEST)).bit_length()):
        last = 1 << i > reach
        mapping = {part: value if last else t.floor_mod(value, 1 << i) for part, value in masked}
        fixed = t.le(t.const(1 << i), size) if last else t.eq(size, t.const(1 << i))
        cases.append(t.and_(t.substitute(formula, mapping), fixed))
        if last:
            break
    named = dict.fromkeys(p.args[0] for p in t.subterms(size) if p.op is Op.SYMBOL and p.args[0] in free)
    return _Masks(size, cases, f"{' and '.join(f'`{n}`' for n in named)} a power of two" if named else "")


def _masked(part: Term) -> tuple[Term, Term] | None:
    """``(x, size)`` of ``x & (size - 1)`` with a size common to all threads."""
    if part.op is not Op.BAND:
        return None
    for mask, value in (part.args, part.args[::-1]):
        plain = mask.args[0] if mask.op is Op.WRAP else mask  # unsigned size - 1 wraps at 0
        if not mask.is_const and t.monomials(plain).get(()) == -1 and t.level_of(mask) is Level.GRID:
            return value, t.add(plain, t.ONE)
    return None
