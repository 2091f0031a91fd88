"""Threads that read one element of an array meet where it leads, whatever it holds: ``out[id[i / 2]] += x``.

Asked with one element in the place of both, and then whether the two threads of the model miss each other for
some contents. If for none, what arrays hold is no condition.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.static.solver import report
from cuda_lsp.static.solver.orders import places_read
from cuda_lsp.static.solver.query import Outcome
from cuda_lsp.static.solver.tactics.pair import OpenPair, Shown
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Op


def read_by_both(pair: OpenPair) -> Shown | None:
    """The certain race of two threads that read one element of each array that leads them."""
    p, query = pair.p, pair.query
    if query.summary.locks or report.data_dependence(p, query) is None:
        return None
    p = _with_one_element(pair)
    answer = query.ask(p, pair.facts) if p is not None else None
    if p is None or answer is None or answer.outcome is not Outcome.MODEL:
        return None
    known = {x: t.const(value) for x, value in (answer.values or {}).items() if x.op is Op.SYMBOL}
    if not query.refutes(t.not_(t.substitute(p.formula, known))):
        return None
    finding = report.race_finding(p, pair.facts, answer, query, pair.launch, whatever=True)
    return Shown(finding) if finding is not None and finding.certain else None


def _with_one_element(pair: OpenPair) -> Problem | None:
    """The pair where both threads read one element of each array; None: of more, of none, or sums of them."""
    p = pair.p
    arrays = {memory_name(array) for array in pair.query.kernel.arrays}
    read = {base_name(x.args[0]) for x in t.subterms(p.overlap) if x.op is Op.APPLY}
    for _, found in places_read(p.overlap, pair.query):
        if len(found) != 2:
            return None
        one, other = found
        p = p.mapped(t.replacing({other: one}))
        p = evolve(p, guards=t.and_(p.guards, t.eq(one.args[2][0], other.args[2][0])))
    return p if read and read <= arrays else None
