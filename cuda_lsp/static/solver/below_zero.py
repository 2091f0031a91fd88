"""Races that need a size below zero, or a difference of sizes: hosts have none.

``hi - lo + 1`` of two unsigned parameters is how many there are from one to the other: a race that is there
only where ``hi < lo``, so that the difference wraps, is one for arguments that nobody passes. So is one of a
block behind the end of what there is, which ``x < (unsigned)(n - blockIdx.x * 64)`` does not stop: no grid
has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BID, GDIM, TID, BinaryOp
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import expressions, stripped, subexpressions
from cuda_lsp.static.findings.conditions import Conditions, below_zero
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Op, Term

_THREADS = {axis.value for axis in TID}


def needs_sizes_below_zero(
    conditions: Conditions, arguments: Mapping[str, int], p: Problem, facts: Term, query: Query
) -> bool:
    """Whether the race needs what is below zero and no condition of the source is about.

    ``arguments``: of its witness.
    """
    alone = (c for c in t.conjuncts(p.guards) if t.level_of(c) is t.Level.GRID)
    said = [{x.args[0] for x in t.subterms(c) if x.op is Op.SYMBOL} for c in alone]
    below = below_zero(conditions) - frozenset[str]().union(*said)
    sizes = [x for x in query.parameters(p.formula) if x.args[0] in below]
    natural = [t.le(t.ZERO, x) for x in sizes]
    negative = bool(below)
    for name, less in _differences(query.kernel):
        if not any({name, less} <= names for names in said) and {name, less} <= arguments.keys():
            negative |= arguments[name] < arguments[less]
            natural.append(t.le(_parameter(query, less), _parameter(query, name)))
    left = [t.le(t.ZERO, x) for x in _left_for_blocks(p, query)]
    if left and query.possible(p, t.and_(facts, *left)) is not True:
        return True
    return negative and query.possible(p, t.and_(facts, *natural)) is not True


def _left_for_blocks(p: Problem, query: Query) -> Iterator[Term]:
    """What is left of a size for a block and those behind it, as the guards compare it without a sign.

    Where the host tells how many blocks there are, it tells too whether one is behind the end.
    """
    axes = {x.value: query.where.axes[extent] for x, extent in zip(BID, GDIM, strict=True)}
    told = set(t.subterms(*query.told))
    unknown = {name for name, extent in axes.items() if not extent.is_const and extent not in told}
    for part in t.subterms(p.guards):
        if part.op is Op.WRAP and not part.args[2] and part.args[0].lo < 0:
            names = {x.args[0].partition("#")[0] for x in t.subterms(part.args[0]) if x.op is Op.SYMBOL}
            if names & unknown and names.isdisjoint(_THREADS):
                yield part.args[0]


def _parameter(query: Query, name: str) -> Term:
    value = query.where.arguments[query.where.free[name]] if name in query.where.free else None
    return value if isinstance(value, Term) else t.symbol(name, t.Level.GRID)


def _differences(kernel: ir.Kernel) -> Iterator[tuple[str, str]]:
    """Pairs of unsigned parameters of which the kernel takes the one from the other."""
    params = set(kernel.params)
    for e in subexpressions(expressions(kernel.body)):
        if (
            isinstance(e, ir.Binary)
            and e.op is BinaryOp.SUB
            and isinstance(e.type, Int)
            and not e.type.signed
        ):
            left, right = stripped(e.left), stripped(e.right)
            if isinstance(left, ir.Var) and isinstance(right, ir.Var) and {left, right} <= params:
                yield left.name, right.name
