"""Races that need an array of ids to hold one twice.

``out[id[i]] = x`` gives each thread an element of its own when no number stands twice in ``id``, and so
does ``out[id[row] * width + x]`` as far as rows of ``width`` do not overlap. That is a doubt about the array:
it says what the kernel's author has to know. Asked with the fact added for every two places in the addresses.
Where several arrays lead to a place (``lists[list[i]][at[i]] = x``), numbers may stand twice in each of them,
as long as no pair of them does: it is their contents that decide.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cuda_lsp.ir.program import Array, Kernel, Load
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import walk
from cuda_lsp.static.data_flow import DataFlow, data_flow
from cuda_lsp.static.findings.conditions import Doubt, OnData, Repeated, contents_of
from cuda_lsp.static.solver.orders import places_read
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.pitch import pitches_of
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Term


def asked_of_contents(p: Problem, facts: Term, query: Query, doubt: OnData) -> Doubt:
    """The ``doubt``, or what more can be said of the arrays whose contents lead to both places."""
    repeated = repeated_in(p, facts, query)
    arrays = _leading(p, query)
    of_arrays = {query.summary.unknowns.get(memory_name(array)) for array in arrays}
    if len(arrays) > 1 and (repeated is not None or doubt.what in of_arrays):
        return contents_of([array.name for array in arrays])
    return repeated or doubt


def _leading(p: Problem, query: Query) -> list[Array]:
    """The arrays that say where both are: those that choose a pointer of a table, and a place from there."""
    flow = data_flow(query.kernel)
    chosen = [_choosing(access.array, flow, query.kernel) for access in (p.pair.first, p.pair.second)]
    within = {array for array, _ in places_read(p.overlap, query)}
    by_id = (sorted(arrays, key=lambda array: array.id) for arrays in (chosen[0] & chosen[1], within))
    return list(dict.fromkeys(itertools.chain.from_iterable(by_id)))


def _choosing(pointee: Array, flow: DataFlow, kernel: Kernel) -> frozenset[Array]:
    """What chose the pointer from memory that leads to an object, which is named by that pointer's text."""
    loads = (s for s in walk(kernel.body) if isinstance(s, Load) and isinstance(s.type, Pointer))
    sources = (flow.of(s.pointer) for s in loads if pointee.name == f"*{s.site.text}")
    return flow.arrays_in(frozenset(x for found in sources for x in found)) - flow.single


def repeated_in(p: Problem, facts: Term, query: Query) -> Repeated | None:
    """The array that keeps the two apart where it holds no number twice; None: that alone does not."""
    formula = query.complete(t.and_(facts, p.formula), p)
    for array, found in places_read(p.overlap, query):
        differ = t.and_(*(_differing(a, b) for a, b in itertools.combinations(found, 2)))
        numbers = isinstance(array.element, Int)  # a record holds lists of several kinds
        cases = _cases(p, facts, formula, query) if numbers else ()
        if any(query.refutes_quickly(t.and_(case, differ)) for case in cases):
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
