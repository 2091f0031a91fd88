"""The witness that people are told, chosen once more: of block 0, with sizes above 0, where there is one.

Z3's first model is as good as any for what decides; its block 1 hangs on numbers that no message has room
for.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.ir.program import BID
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.solver.query import Outcome, Query
from cuda_lsp.static.solver.report import race_finding
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Term


def plainer(found: Diagnosis, p: Problem, facts: Term, query: Query) -> Diagnosis:
    """The race with two threads that say more, if it has such; what it needs stays."""
    witness = found.witness
    if witness is None:
        return found
    named = [x for x in query.parameters(p.formula) if x.args[0] in witness.arguments]
    empty = [x for x in named if witness.arguments[x.args[0]] <= 0]
    within = p.pair.relation.same_block and witness.blocks is not None
    blocks = [query.where.axes[axis] for axis in BID] if within else []
    first = t.and_(*(t.eq(x, t.ZERO) for x in blocks))
    sizes = t.and_(*(t.le(t.ONE, x) for x in named))
    for wanted in dict.fromkeys((t.and_(first, sizes if empty else t.TRUE), first)):
        if wanted is not t.TRUE and (again := _under(wanted, found, p, facts, query)) is not None:
            return again
    return found


def _under(wanted: Term, found: Diagnosis, p: Problem, facts: Term, query: Query) -> Diagnosis | None:
    answer = query.ask(evolve(p, guards=t.and_(p.guards, wanted)), facts)
    if answer.outcome is not Outcome.MODEL:
        return None
    again = race_finding(p, facts, answer, query, query.where.launch)
    if again is None or again.witness is None or (again.code, again.status) != (found.code, found.status):
        return None
    return again if {*map(type, again.conditions)} == {*map(type, found.conditions)} else None
