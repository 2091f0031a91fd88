"""What loops count up to is an extent, and no extent is 0: windows of ``k`` elements have some.

``out = in - k + 1`` rows are no more than ``in`` where there is a window at all; that a launch passes 0 is
not meant. Not where the kernel says itself what it does with such a size.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.walk import walk
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, where_positive
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.terms import Term

_COMPARISONS = frozenset({BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.NE})


def of_loops(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show where the parameters of the pair that loops count up to are positive."""

    def counted(pair: OpenPair) -> Proved | None:
        named = set(pair.query.parameters(pair.p.formula))
        extents = tuple(x for x in dict.fromkeys(_extents(pair.query)) if x in named and x.lo <= 0)
        answer = where_positive(pair, extents, proofs)
        if answer is None:
            return None
        return Proved((*(f"`{t.show(x)}` is positive" for x in extents), *answer.assumptions))

    return counted


def _extents(query: Query) -> Iterator[Term]:
    """Parameters that the condition of a loop compares something with."""
    for s in walk(query.kernel.body):
        if isinstance(s, ir.Loop) and isinstance(s.condition, ir.Binary) and s.condition.op in _COMPARISONS:
            for side in (s.condition.left, s.condition.right):
                while isinstance(side, ir.Cast):
                    side = side.operand
                if isinstance(side, ir.Var) and query.where.free.get(side.name) is side:
                    value = query.where.arguments[side]
                    if isinstance(value, Term):
                        yield value
