"""Costly pairs in shared memory, without the conditions that both threads share.

When the threads of a block cannot meet even so, they never do. When they can, only such a condition may keep
them apart. Products and quotients that both threads share may be anything in it, too.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.model import Space
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Outcome, is_linear
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_NUMBERS = frozenset(
    {Op.SUM, Op.DIV, Op.REM, Op.FLOOR_DIV, Op.FLOOR_MOD, *t.BIT_OPS, Op.ITE, Op.WRAP, Op.POWER}
)


def wherever_reached(pair: OpenPair) -> Proved | None:
    """They cannot meet even so; that they can is noted."""
    if pair.among <= budgets.MANY_PAIRS and is_linear(pair.p.formula):
        return None
    outcome = _outcome(pair)
    pair.meets = outcome is Outcome.MODEL
    return Proved() if outcome is Outcome.REFUTED else None


def _outcome(pair: OpenPair) -> Outcome:
    p = pair.p
    reached = {*t.conjuncts(p.pair.first.guard), *t.conjuncts(p.pair.second.guard)}
    own = t.and_(*(c for c in t.conjuncts(p.guards) if _differs(c) or c not in reached))
    in_block = p.pair.first.array.space is Space.SHARED and p.pair.relation.same_block
    if not in_block or own is p.guards:
        return Outcome.UNKNOWN
    values: dict[Term, Term] = {}

    def leaf(part: Term) -> Term | None:
        if part.op not in _NUMBERS or _differs(part) or is_linear(part):
            return None
        return values.setdefault(part, t.symbol(f"value {len(values)}", Level.GRID, part.lo, part.hi))

    memo: dict[Term, Term] = {}
    guards, overlap = t.replace(own, leaf, memo), t.replace(p.overlap, leaf, memo)
    return pair.query.ask(evolve(p, guards=guards, overlap=overlap), pair.facts).outcome


def _differs(term: Term) -> bool:
    """The two threads have different values of it."""
    return any(map(_is_of_one_thread, t.subterms(term)))


def _is_of_one_thread(part: Term) -> bool:
    return part.op in (Op.SYMBOL, Op.APPLY, Op.TEST) and part.args[0] != base_name(part.args[0])
