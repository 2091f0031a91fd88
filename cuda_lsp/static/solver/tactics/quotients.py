"""``i / (a*b)`` beside ``i / b``: the same number divided by one after the other, ``i / b / a``.

Who takes an index apart divides by products of sizes, and reads its middle digit from a quotient of it. C's
quotients nest, whatever the signs, and then quotient and remainder of one number stand in the pair, of which
linear arithmetic knows that they are of one number only.

A pitch in bytes of which nothing but ``pitch / 4`` is ever used is a size like any other in the place of that
quotient: rows of so many elements may be taken not to overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import exactly_divided
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_ANYTHING = t.symbol("a quotient", Level.GRID)


def one_after_the_other(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with quotients by products as quotients of quotients that the pair has."""

    def nested(pair: OpenPair) -> Proved | None:
        known = _nested(pair.p.formula)
        if not known:
            return None
        answer = first_answer(proofs, evolve(pair, p=pair.p.mapped(t.replacing(known))))
        return answer if isinstance(answer, Proved) else None

    return nested


def as_sizes(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with a parameter for its quotient, where the pair has nothing else of it."""

    def renamed(pair: OpenPair) -> Proved | None:
        known = dict(_sole_quotients(pair))
        if not known:
            return None
        p, facts = pair.p.mapped(t.replacing(known)), t.substitute(pair.facts, known)
        answer = first_answer(proofs, evolve(pair, p=p, facts=facts))
        if not isinstance(answer, Proved):
            return None
        told = answer.assumptions
        for quotient, size in known.items():
            name, divisor = size.args[0], _number(quotient)
            told = tuple(text.replace(f"`{name}`", f"`{name} / {divisor}`") for text in told)
        return Proved(told)

    return renamed


def _sole_quotients(pair: OpenPair) -> Iterator[tuple[Term, Term]]:
    """Quotients of parameters by a number, and the parameters, which occur nowhere else and may be 0."""
    query = pair.query
    said = t.and_(pair.facts, pair.p.formula)
    found = (x for x in t.subterms(*pair.p.offsets) if x.op in (Op.DIV, Op.FLOOR_DIV) and _number(x))
    for quotient in dict.fromkeys(found):
        size = quotient.args[0]
        if size.op is not Op.SYMBOL or size.args[0] not in query.where.free or not size.lo <= 0 < size.hi:
            continue
        whole = set(t.conjuncts(query.complete(said, pair.p)))
        divisors = (by for _, by in query.summary.cut)
        elsewhere = (t.substitute(x, {quotient: _ANYTHING}) for x in (said, *divisors))
        others = (*query.told, *(whole - set(t.conjuncts(said))), *elsewhere)
        if size not in t.subterms(*others):
            yield quotient, size


def _number(quotient: Term) -> int:
    """What is divided by; 0: no number above one."""
    divisor = quotient.args[1]
    value = divisor if isinstance(divisor, int) else divisor.value if divisor.is_const else 0
    return value if value > 1 else 0


def _nested(formula: Term) -> dict[Term, Term]:
    """Quotients by a multiple of what the same number is divided by elsewhere, by the largest such part."""
    divisors: dict[Term, dict[Term, None]] = {}
    for part in t.subterms(formula):
        if part.op in (Op.DIV, Op.REM):
            number, divisor = part.args
            divisors.setdefault(number, {})[divisor] = None
    found: dict[Term, Term] = {}
    for number, among in divisors.items():
        for divisor in among:
            parts = [x for x in among if x is not divisor and exactly_divided(divisor, x) is not None]
            inner = max(parts, key=lambda x: max(map(len, t.monomials(x))), default=None)
            times = exactly_divided(divisor, inner) if inner is not None else None
            if inner is not None and times is not None and not times.is_const:
                found[t.divide(number, divisor)] = t.divide(t.divide(number, inner), times)
    return found
