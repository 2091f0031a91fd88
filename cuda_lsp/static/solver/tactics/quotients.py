"""``i / (a*b)`` beside ``i / b``: the same number divided by one after the other, ``i / b / a``.

Who takes an index apart divides by products of sizes, and reads its middle digit from a quotient of it. C's
quotients nest, whatever the signs, and then quotient and remainder of one number stand in the pair, of which
linear arithmetic knows that they are of one number only.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import exactly_divided
from cuda_lsp.static.symbolic.terms import Op, Term


def one_after_the_other(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with quotients by products as quotients of quotients that the pair has."""

    def nested(pair: OpenPair) -> Proved | None:
        known = _nested(pair.p.formula)
        if not known:
            return None
        answer = first_answer(proofs, evolve(pair, p=pair.p.mapped(t.replacing(known))))
        return answer if isinstance(answer, Proved) else None

    return nested


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
