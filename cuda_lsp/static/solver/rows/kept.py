"""Whether a race is left where columns lie in their rows: sizes that make rows too short are no example.

``a[y * pitch + x]`` beside ``a[pitch * height + …]``, where ``x < width``: whoever passes a pitch below the
width has no image of that width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cuda_lsp.ir.program import Var
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows import division
from cuda_lsp.static.solver.rows.pitch import of_one_index
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Op, Term


def only_in_short_rows(p: Problem, facts: Term, query: Query, arguments: Mapping[str, int]) -> bool:
    """No two threads meet whose columns lie in their rows, as far as is known.

    For these arguments, of which the question is linear, nor for any that are positive.
    """
    said = t.and_(facts, p.guards, *query.stated(p))
    within = t.and_(*_within(p, said, query.where.free))
    if within is t.TRUE:
        return False
    formula = query.complete(t.and_(facts, p.formula, within), p)
    parameters = query.parameters(formula)
    given = {x: t.const(arguments[x.args[0]]) for x in parameters if x.args[0] in arguments}
    if query.satisfiable(t.substitute(formula, given)):
        return False
    return not query.satisfiable(t.and_(formula, *(t.le(t.ONE, x) for x in parameters)))


def _within(p: Problem, said: Term, free: Mapping[str, Var]) -> Iterator[Term]:
    """That the columns of plain rows are columns, of each parameter that tells how long these are.

    Not of one of which the source says more than that it exists.
    """
    conditions = list(t.conjuncts(said))
    for offset in p.offsets:
        named = {x for m in t.monomials(offset) if division.varies(m) for x in m}
        for pitch in (x for x in named if x.op is Op.SYMBOL and x.args[0] in free):
            row, column = division.divide(offset, pitch)
            plain = all(len(m) <= 1 for x in (row, column) for m in t.monomials(x))
            counted = any(map(division.varies, t.monomials(column))) and not of_one_index(row, column)
            exists = (t.le(t.ZERO, pitch), t.le(t.ONE, pitch))
            about = (c for c in conditions if c not in exists and pitch in t.subterms(c))
            if plain and counted and next(about, None) is None:
                yield t.and_(t.le(t.ZERO, column), t.lt(column, pitch))
