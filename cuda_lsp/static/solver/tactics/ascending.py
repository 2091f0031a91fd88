"""Stretches between neighbouring offsets (``row[v]`` to ``row[v + 1]``) are apart where these ascend.

That offsets of rows, buckets and segments ascend is what they are for: a kernel that reads two neighbours as
begin and end takes it for granted, and so do we, and tell. Not where the kernel writes the array, asks which
of two neighbours is larger, or comes to an access only if they descend.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.ir.program import Array
from cuda_lsp.static.offset_arrays import ascending_arrays
from cuda_lsp.static.solver.orders import ascending, places_read
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access


def where_offsets_ascend(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries what linear arithmetic shows, and ``proofs``, with the offsets that the pair reads in order."""

    def in_order(pair: OpenPair) -> Proved | None:
        arrays = ascending_arrays(pair.query.kernel)
        if not arrays:
            return None
        formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
        for array, found in places_read(formula, pair.query):
            if array in arrays and _may_ascend(pair, array):
                ordered = evolve(pair.p, guards=t.and_(pair.p.guards, ascending(found)))
                answer = first_answer((_linearly, *proofs), evolve(pair, p=ordered))
                if isinstance(answer, Proved):
                    return Proved((f"`{array.name}` ascends", *answer.assumptions))
        return None

    return in_order


def _linearly(pair: OpenPair) -> Proved | None:
    formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
    return Proved() if pair.query.refutes_quickly(formula) else None


def _may_ascend(pair: OpenPair, array: Array) -> bool:
    """Each of the two accesses by itself is reached when the array ascends."""
    return all(_reached(access, array, pair) for access in (pair.p.pair.first, pair.p.pair.second))


def _reached(access: Access, array: Array, pair: OpenPair) -> bool:
    query = pair.query
    formula = query.complete(t.and_(query.where.bounds, access.guard), pair.p)
    read = dict(places_read(formula, query))
    return array not in read or not query.refutes(t.and_(formula, ascending(read[array])))
