"""Races that need an array of offsets to go down.

``for (e = row[v]; e < row[v + 1]; e++) val[e] *= 2;`` gives each thread a stretch of its own when ``row``
ascends, as offsets of rows, buckets and segments do. A pair that only contents out of order bring together is
told as a doubt about the array. Asked with the fact added for every two places of the array in the formula.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from cuda_lsp.ir.program import Array
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import Unordered
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Op, Term


def order_of(p: Problem, facts: Term, query: Query) -> Unordered | None:
    """The array that keeps the two accesses apart where it ascends; None: that alone does not."""
    formula = query.complete(t.and_(facts, p.formula), p)
    for array, found in places_read(formula, query):
        if query.refutes(t.and_(formula, ascending(found))):
            return Unordered(array.name)
    return None


def places_read(formula: Term, query: Query) -> Iterator[tuple[Array, list[Term]]]:
    """What arrays that nobody writes hold at several places."""
    names = {memory_name(array): array for array in query.kernel.arrays}
    places: dict[str, list[Term]] = defaultdict(list)
    for part in t.subterms(formula):
        if part.op is Op.APPLY and base_name(part.args[0]) in names and len(part.args[2]) == 1:
            places[base_name(part.args[0])].append(part)
    return ((names[name], found) for name, found in places.items() if 1 < len(found) <= budgets.MOST_OFFSETS)


def ascending(elements: Iterable[Term]) -> Term:
    """Of these elements of an array none is above one that stands behind it."""
    return t.and_(*(_ascending(a, b) for a, b in itertools.permutations(elements, 2)))


def _ascending(a: Term, b: Term) -> Term:
    (here,), (there,) = a.args[2], b.args[2]
    return t.or_(t.not_(t.le(here, there)), t.le(a, b))
