"""Member arrays: a subscript that leaves its array is out of bounds, and no race with the next record.

``record[i].slots[k]`` with more rounds than slots reaches the next record's fields. Who fills the array knows
how long it is; what would be wrong if not is the subscript.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import copy_of, shared_level


def within_their_arrays(proofs: tuple[Tactic, ...]) -> Tactic:
    """What linear arithmetic shows, or ``proofs``, where both accesses stay in their records' arrays."""

    def inside(pair: OpenPair) -> Proved | None:
        accesses = (pair.p.pair.first, pair.p.pair.second)
        if not any(access.members for access in accesses):
            return None
        if pair.excludes(pair.p.formula):
            return Proved()
        shared = shared_level(pair.p.pair.relation)
        stays = (copy_of(x.holds, i, shared, {}) for i, a in enumerate(accesses, 1) for x in a.members)
        kept = evolve(pair, p=evolve(pair.p, guards=t.and_(pair.p.guards, *stays)))
        texts = tuple(dict.fromkeys(x.text for access in accesses for x in access.members))
        if kept.excludes(kept.p.formula):
            return Proved(texts)
        answer = first_answer(proofs, kept)
        return Proved((*texts, *answer.assumptions)) if isinstance(answer, Proved) else None

    return inside
