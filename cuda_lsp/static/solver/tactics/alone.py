"""Pairs that take two threads where only one comes by: lane 0 of a warp, thread 0 of a block.

A loop that ends in ``if (lane == 0) out[row] = sum`` behind shuffles has a pair for every way in which two of
its rounds may follow one another. What keeps all of them apart says nothing of rounds: it is asked once.
"""

from __future__ import annotations

from cuda_lsp.ir.program import BDIM, TID
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Op, Term

_THREADS = frozenset(axis.value for axis in (*TID, *BDIM))


def one_comes_by(pair: OpenPair) -> Proved | None:
    """No two threads that relate as these do have the coordinates that both accesses ask for."""
    if not pair.p.pair.relation.same_block:
        return None
    asked = [condition for condition in t.conjuncts(pair.p.guards) if _is_of_threads(condition)]
    # The same question for all such pairs, whose answer is kept.
    return Proved() if asked and pair.query.refutes_quickly(t.and_(pair.facts, *asked)) else None


def _is_of_threads(condition: Term) -> bool:
    """It is about coordinates in the block alone."""
    named = [x for x in t.subterms(condition) if x.op in (Op.SYMBOL, Op.APPLY, Op.TEST)]
    return any(map(side, named)) and all(base_name(x.args[0]) in _THREADS for x in named)
