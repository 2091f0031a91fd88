"""Places that the host has counted: ``if (keep[i]) out[place[i]] = in[i]``, with running sums of ``keep``.

A sum that begins behind an element is no less than one that ends before it, and the element itself together,
as long as nothing that was summed is negative. So places of elements that are not 0 differ, and stretches as
long as the elements say do not overlap. What the host passes such sums for it has told (``Kernel.sums``);
that the first of them is 0, and none below another because it wrapped, is taken for granted with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import Int
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.tactics.first import linearly, whoever_is_first
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.solver.tactics.whole import elements_read, index_of, read_only
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Term


@frozen(eq=False)
class _Sums:
    """``sums`` of ``summands``, as far as the kernel knows these; of ``last`` of them at most."""

    sums: Array
    summands: Array | None
    behind: int
    last: Term


def where_sums_tell(proofs: tuple[Tactic, ...]) -> Tactic:
    """What linear arithmetic and ``proofs`` show with what is known of the sums that the pair reads."""

    def counted(pair: OpenPair) -> Proved | None:
        for known in _known(pair.query):
            formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
            sums = elements_read(formula, known.sums)
            summands = elements_read(formula, known.summands) if known.summands is not None else []
            if not sums or max(len(sums), len(summands)) > budgets.MOST_OFFSETS:
                continue
            told = t.and_(pair.p.guards, *_facts(known, sums, summands))
            tactics = (linearly, whoever_is_first(summands or sums, proofs), *proofs)
            answer = first_answer(tactics, evolve(pair, p=evolve(pair.p, guards=told)))
            if isinstance(answer, Proved):
                return Proved((*_granted(known), *answer.assumptions))
        return None

    return counted


def _granted(known: _Sums) -> tuple[str, ...]:
    """What is taken for granted of the sums, for people."""
    if known.summands is None:
        return (f"`{known.sums.name}` ascends",)
    summed = f"`{known.sums.name}` holds the running sums of `{known.summands.name}`"
    element = known.summands.element
    signed = isinstance(element, Int) and element.signed
    return (summed, *(not_negative([known.summands.name]) if signed else ()))


def _known(query: Query) -> Iterator[_Sums]:
    """The sums of which the kernel reads whole elements, and writes none."""
    if not query.kernel.sums:
        return
    arrays = {array.param.name: array for array in query.kernel.arrays if array.param is not None}
    arguments = {var.name: value for var, value in query.where.arguments.items()}
    whole = read_only(query.kernel)
    for name, told in query.kernel.sums.items():
        sums, last = arrays.get(name), arguments.get(told.last)
        summands = arrays.get(told.of) if told.of is not None else None
        if sums in whole and isinstance(last, Term):
            known = summands if summands in whole else None
            yield _Sums(sums, known, told.behind, t.add(last, t.const(told.more)))


def _facts(known: _Sums, sums: Sequence[Term], summands: Sequence[Term]) -> Iterator[Term]:
    """Of each two sums, the first of which is 0, and of what was added in between."""
    behind = t.const(known.behind)
    ends = [(t.ZERO, t.ZERO), *((t.add(index_of(x, known.sums), behind), x) for x in sums)]
    added = [(index_of(x, known.summands), x) for x in summands if known.summands is not None]
    for place, element in added:
        yield _if((t.le(t.ZERO, place), t.lt(place, known.last)), t.le(t.ZERO, element))
    for (begin, low), (end, high) in itertools.permutations(ends, 2):
        between = (t.le(t.ZERO, begin), t.le(begin, end), t.le(end, known.last))
        yield _if(between, t.le(low, high))
        for place, element in added:
            inside = (t.le(begin, place), t.lt(place, end))
            yield _if((*between, *inside), t.le(t.add(low, element), high))


def _if(conditions: Sequence[Term], then: Term) -> Term:
    return t.or_(*(t.not_(condition) for condition in conditions), then)
