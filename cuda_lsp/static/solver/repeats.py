"""Races that need an array of ids to hold one twice.

``out[id[i]] = x`` gives each thread an element of its own when no number stands twice in ``id``, and so
does ``out[id[row] * width + x]`` as far as rows of ``width`` do not overlap. That is a doubt about the array:
it says what the kernel's author has to know. Asked with the fact added for every two places in the addresses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cuda_lsp.static.findings.conditions import Repeated
from cuda_lsp.static.solver.orders import places_read
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.pitch import pitches_of
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Term


def repeated_in(p: Problem, facts: Term, query: Query) -> Repeated | None:
    """The array that keeps the two apart where it holds no number twice; None: that alone does not."""
    formula = query.complete(t.and_(facts, p.formula), p)
    for array, found in places_read(p.overlap, query):
        differ = t.and_(*(_differing(a, b) for a, b in itertools.combinations(found, 2)))
        if any(query.refutes_quickly(t.and_(case, differ)) for case in _cases(p, facts, formula, query)):
            return Repeated(array.name)
    return None


def _cases(p: Problem, facts: Term, formula: Term, query: Query) -> Iterator[Term]:
    """The pair as it is, and with its address as row and column."""
    yield formula
    grid_known = query.where.launch is not None and query.where.launch.grid is not None
    for pitch in pitches_of(p, query.summary, query.where.free, grid_known=grid_known):
        yield query.complete(t.and_(facts, p.guards, pitch.rows, pitch.equal), p)


def _differing(a: Term, b: Term) -> Term:
    return t.or_(t.eq(a.args[2][0], b.args[2][0]), t.not_(t.eq(a, b)))
