"""When does it happen: a short, readable condition on parameters that a race cannot do without.

Candidates come from the program: comparisons of parameters with one another, with the launch's
extents and with constants of the formula.  One is kept when the race is impossible without it (Z3);
among bounds of one parameter the tightest wins.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import BDIM, GDIM, Problem
from cuda_lsp.static.symbolic.terms import Term

_VAGUE = "certain values"

MAX_ATOMS = 2
MAX_QUERIES = 24


def condition_of(p: Problem, facts: Term, query: Query) -> str | None:
    """None: the race needs no parameter. Else the condition; "" is never returned."""
    formula = query.complete(t.and_(facts, p.formula), p)
    return needed_condition(formula, query) if query.parameters(formula) else None


def needed_condition(formula: Term, query: Query) -> str:
    """A condition on the parameters in ``formula`` without which it has no model."""
    parameters = sorted(query.parameters(formula), key=lambda part: part.args[0])
    asked = [0]

    def needed(atom: Term) -> bool:
        asked[0] += 1
        if asked[0] > MAX_QUERIES:
            return False
        return query.satisfiable(t.and_(formula, t.not_(atom))) is False

    texts: list[str] = []
    for i, a in enumerate(parameters):
        for b in parameters[i + 1 :]:
            for text, atom in _relations(a, b):
                if needed(atom):
                    texts.append(text)
                    break
    for parameter in parameters:
        if len(texts) < MAX_ATOMS and not any(f"`{parameter.args[0]}`" in text for text in texts):
            texts += _bounds(parameter, formula, query, needed)
    if texts:
        return " and ".join(texts[:MAX_ATOMS])
    names = " and ".join(f"`{x.args[0]}`" for x in parameters[:MAX_ATOMS])
    return f"{names} {'takes' if len(parameters) == 1 else 'take'} {_VAGUE}"


def is_vague(condition: str) -> bool:
    """No comparison was found that the race needs."""
    return condition.endswith(_VAGUE)


def _relations(a: Term, b: Term) -> list[tuple[str, Term]]:
    x, y = f"`{a.args[0]}`", f"`{b.args[0]}`"
    return [
        (f"{x} == {y}", t.eq(a, b)),
        (f"{x} < {y}", t.lt(a, b)),
        (f"{x} > {y}", t.lt(b, a)),
        (f"{x} != {y}", t.not_(t.eq(a, b))),
    ]


def _bounds(parameter: Term, formula: Term, query: Query, needed: Callable[[Term], bool]) -> list[str]:
    name = f"`{parameter.args[0]}`"
    thresholds = _thresholds(formula, query)
    for value in thresholds:
        if needed(t.eq(parameter, t.const(value))):
            return [f"{name} == {_spell(value, query)}"]
        break  # equality with the smallest only: "== 0" is the common one
    texts: list[str] = []
    for value in sorted(thresholds, reverse=True):
        sign = ">" if needed(t.lt(t.const(value), parameter)) else ""
        if not sign and value > 1 and needed(t.le(t.const(value), parameter)):
            sign = ">="
        if sign:
            texts.append(f"{name} {sign} {_spell(value, query)}")
            break
    for value in sorted(thresholds):
        if needed(t.lt(parameter, t.const(value))):
            texts.append(f"{name} < {_spell(value, query)}")
            break
    if not texts and needed(t.not_(t.eq(parameter, t.ZERO))):
        texts.append(f"{name} != 0")
    return texts


def _thresholds(formula: Term, query: Query) -> list[int]:
    """Numbers worth comparing with: 0, 1, the launch's extents."""
    found = {0, 1}
    for axis in (*BDIM, *GDIM):
        term = query.where.axes[axis]
        if term.is_const and term.value > 1:
            found.add(term.value)
    constants = sorted(
        {part.value for part in t.subterms(formula) if part.is_const and 1 < part.value < 1 << 20}
    )
    return sorted(found | set(constants[:3]))


def _spell(value: int, query: Query) -> str:
    for axis in (*BDIM, *GDIM):
        term = query.where.axes[axis]
        if term.is_const and term.value == value and value > 1:
            return f"`{axis.value}` ({value})"
    return str(value)
