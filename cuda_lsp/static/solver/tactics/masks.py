"""``x & (size - 1)``: a size that is used as a mask is meant to be a power of two.

Then the masked value is a remainder, and what else an address has of the index is made of its quotient, too:
``2*x - (x & (n - 1))`` is ``2*n*(x / n) + x % n``, a number of two digits. What no digits show falls into
cases, one per power, in linear arithmetic. For a parameter that is an assumption, which is told to the user.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.ir.program import Var
from cuda_lsp.static.solver.rows.stated import speaks_against_powers
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, touching
from cuda_lsp.static.symbolic.terms import Level, Op, Term


def powers_of_two(pair: OpenPair) -> Proved | None:
    """Impossible for every power of two that a mask's size may be, which parameters are taken to be."""
    p, query = pair.p, pair.query
    masks = _mask_cases(p.formula, query.where.free)
    if masks is None or not masks.text or speaks_against_powers(p, masks.size, query):
        return None
    possible = any(not query.ask_case(p, pair.facts, case) for case in masks.cases)
    return None if possible else Proved((masks.text,))


def as_remainders(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with remainders for masked values, and quotients beside them.

    Of a power of two, which is 1 at least, ``x & (n - 1)`` is ``x % n`` where ``x`` is not negative, and
    ``x`` itself ``n*(x / n) + x % n`` wherever it stands beside that.
    """

    def with_remainders(pair: OpenPair) -> Proved | None:
        remainders = dict(_remainders(pair.p.formula))
        sizes = dict.fromkeys(x.args[1] for x in remainders.values() if x.op is Op.REM)
        texts = [_told(size, pair.query.where.free) for size in sizes]
        extents = pair.p.pair.first.size, pair.p.pair.second.size
        if not (texts and all(texts) and all(x.is_const for x in extents)):
            return None
        if any(speaks_against_powers(pair.p, size, pair.query) for size in sizes):
            return None
        answer = first_answer(proofs, evolve(pair, p=_with_quotients(pair.p, remainders, sizes)))
        return Proved((*texts, *answer.assumptions)) if isinstance(answer, Proved) else None

    return with_remainders


def masking(*terms: Term) -> set[Term]:
    """Sizes that numbers are masked by: these go beyond them."""
    split = (_masked(part) for part in t.subterms(*terms))
    return {x for found in split if found is not None for x in t.subterms(found[1]) if x.op is Op.SYMBOL}


def _remainders(formula: Term) -> Iterator[tuple[Term, Term]]:
    """Masked values that are not negative, and the remainders that they are.

    Not where the mask is cut to fewer bits than the size may have, which are other ones then.
    """
    for part in t.subterms(formula):
        value, size = _masked(part) or (part, part)
        cut = [mask for mask in part.parts if mask.op is Op.WRAP and mask is not value]
        if size is not part and value.lo >= 0 and all(size.hi - 1 <= mask.hi for mask in cut):
            yield part, t.remainder(value, size)


def _with_quotients(p: Problem, remainders: Mapping[Term, Term], sizes: Iterable[Term]) -> Problem:
    """The pair with remainders, and their numbers in two digits where these stand beside them."""
    by_remainder = t.replacing(remainders)
    memo: dict[Term, Term] = {}
    first, second = (_in_digits(by_remainder(x), memo) for x in p.offsets)
    overlap = touching(
        first, second, (p.pair.first.size, p.pair.second.size), words=p.pair.first.word and p.pair.second.word
    )
    guards = t.and_(by_remainder(p.guards), *(t.le(t.ONE, size) for size in sizes))
    return evolve(p, guards=guards, overlap=overlap, difference=t.sub(first, second), offsets=(first, second))


def _in_digits(term: Term, memo: dict[Term, Term]) -> Term:
    """The same number with ``c*x`` as ``c*d*(x / d) + c*(x % d)`` in sums that have ``x % d`` besides."""
    known = memo.get(term)
    if known is None:
        parts = tuple(_in_digits(part, memo) for part in term.parts)
        same = all(x is y for x, y in zip(parts, term.parts, strict=True))
        known = term if same else t.rebuild(term, parts)
        for atoms in t.monomials(known) if known.op is Op.SUM else ():
            if len(atoms) == 1 and atoms[0].op is Op.REM:
                known = _taken_apart(known, *atoms[0].args)
        memo[term] = known
    return known


def _taken_apart(sum_: Term, x: Term, d: Term) -> Term:
    sums, own = t.monomials(sum_), t.monomials(x)
    monomial, factor = next(iter(own.items()))
    times = sums.get(monomial, 0) // factor
    if not times or any(sums.get(m) != times * c for m, c in own.items()):
        return sum_
    whole = t.add(t.mul(d, t.divide(x, d)), t.remainder(x, d))
    return t.add(sum_, t.scale(t.sub(whole, x), times))


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
    return _Masks(size, cases, _told(size, free))


def _told(size: Term, free: Mapping[str, Var]) -> str:
    """What is taken for granted of a size, for people; empty where no parameter has a part in it."""
    named = dict.fromkeys(p.args[0] for p in t.subterms(size) if p.op is Op.SYMBOL and p.args[0] in free)
    return f"{' and '.join(f'`{n}`' for n in named)} a power of two" if named else ""


def _masked(part: Term) -> tuple[Term, Term] | None:
    """``(x, size)`` of ``x & (size - 1)`` with a size common to all threads."""
    if part.op is not Op.BAND:
        return None
    for mask, value in (part.args, part.args[::-1]):
        plain = mask.args[0] if mask.op is Op.WRAP else mask  # unsigned size - 1 wraps at 0
        if not mask.is_const and t.monomials(plain).get(()) == -1 and t.level_of(mask) is Level.GRID:
            return value, t.add(plain, t.ONE)
    return None
