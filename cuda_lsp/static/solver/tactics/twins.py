"""Two blocks, or two threads of one, with one address, which does not ask which of them it is.

``for (i = blockIdx.z; i < n; i += gridDim.z) out[y * w + x] = …;`` is run by blocks along z alike. That such
twins both come to the access is all that their race takes: products that addresses are made of have no part
in it. A cheap question, which is asked before those that tell other races.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from cuda_lsp.ir.program import BID, TID
from cuda_lsp.static.solver.query import Answer, Outcome
from cuda_lsp.static.solver.report import race_finding
from cuda_lsp.static.solver.tactics.meetings import positive
from cuda_lsp.static.solver.tactics.pair import OpenPair, Shown
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import SECOND, side
from cuda_lsp.static.symbolic.terms import Op, Term


def that_do_the_same(pair: OpenPair) -> Shown | None:
    """The race of twins, where it is certain when it is run again."""
    p, facts, query = pair.p, pair.facts, pair.query.briefly_replaying()
    for idle in _idle(pair):
        memo: dict[Term, Term] = {}

        def as_first(term: Term, idle: Term = idle, memo: dict[Term, Term] = memo) -> Term:
            return t.renamed(term, lambda x: None if x.args[0] == idle.args[0] else _first(x), memo)

        twins = p.mapped(as_first)
        if twins.overlap is not t.TRUE or twins.guards is t.FALSE:
            continue
        twins = evolve(twins, guards=t.and_(twins.guards, positive(twins.formula, query)))
        answer = query.ask(twins, as_first(facts))
        if answer.outcome is Outcome.MODEL:
            finding = race_finding(
                twins, as_first(facts), _of_both(answer, p.formula, facts), query, pair.launch
            )
            if finding is not None and finding.certain:
                return Shown(finding)
    return None


def _idle(pair: OpenPair) -> Iterator[Term]:
    """What tells the second thread from the first along an axis that their addresses do not hang on."""
    if pair.launch is None or pair.p.overlap is t.TRUE:
        return
    if any(x.op is Op.APPLY and side(x) and "#" in x.args[0] for x in t.subterms(pair.p.overlap)):
        return  # what each thread has computed in loops hangs on which it is
    axes = TID if pair.p.pair.relation.same_block else BID
    asked = {x.args[0] for x in t.subterms(pair.p.overlap) if x.op is Op.SYMBOL}
    for part in t.subterms(pair.facts):
        if part.op is Op.SYMBOL and side(part) == SECOND and part.args[0] not in asked:
            name = part.args[0][:-2]
            if f"{name}#1" not in asked and any(pair.query.where.axes[a].args[0] == name for a in axes):
                yield part


def _first(part: Term) -> str | None:
    """The name that the first thread has for what is the second one's."""
    name = part.args[0]
    return f"{name[:-2]}#1" if name.endswith("#2") else None


def _of_both(answer: Answer, formula: Term, facts: Term) -> Answer:
    """The model with the second thread's numbers, which are the first one's where nothing else is said."""
    values = dict(answer.values or {})
    for part in t.subterms(formula, facts):
        if part.op is Op.SYMBOL and part not in values:
            first = t.renamed(part, _first, {})
            if first in values:
                values[part] = values[first]
    return evolve(answer, values=values)
