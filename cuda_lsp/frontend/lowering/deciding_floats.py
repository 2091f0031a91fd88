"""Whether floating-point values decide what threads do together.

Mostly they are data that nobody looks at, and lowering drops their variables. Where they say who comes to a
barrier, or which one thread does something, it matters that threads which read one place have one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from cuda_lsp.frontend.lowering.float_reasons import is_floating
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.deciding import deciding
from cuda_lsp.ir.program import BinaryOp, Expr, Stmt, Var
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.ir.walk import subexpressions, walk

_CONVERTED = tuple(f"the result of {name}" for name in ("__float2", "__double2", "lrint", "llrint", "lround"))


def floats_decide(statements: Sequence[Stmt]) -> bool:
    """Whether such a value, which not all share evidently, decides who passes a barrier or is the one.

    Or where something is stored.
    """
    made: dict[Var, list[Expr]] = {}
    conditions: list[Expr] = []
    barriers: dict[object, ir.Barrier] = {}
    places: list[Expr] = []
    for s in walk(statements):
        if isinstance(s, ir.Assign):
            made.setdefault(s.var, []).append(s.value)
        elif isinstance(s, ir.If | ir.Loop):
            conditions.append(s.condition)
        elif isinstance(s, ir.Store):
            places.append(s.pointer)
        elif isinstance(s, ir.Barrier) and (s.scope.of_blocks or _of_warp(s)):
            barriers[s.site.range] = s
    values = chain.from_iterable(made.values())
    if not any(map(_is_floating, subexpressions([*conditions, *places, *values]))):
        return False
    if any(map(_is_floating, _made_of([*_compared(conditions), *places], made))):
        return True
    parting = (c.condition for b in barriers.values() for c in deciding(statements, b.site.range))
    return any(map(_is_floating, _made_of(parting, made)))


def _of_warp(s: ir.Barrier) -> bool:
    return s.scope is ir.BarrierScope.WARP and not s.implied


def _is_floating(e: Expr) -> bool:
    if not isinstance(e, ir.Unknown) or e.uniform:
        return False
    return is_floating(e) or (isinstance(e.type, Int) and e.reason.startswith(_CONVERTED))


def _compared(conditions: Iterable[Expr]) -> Iterator[Expr]:
    """Integers that conditions ask to be equal to something."""
    for e in subexpressions(conditions):
        if isinstance(e, ir.Binary) and e.op is BinaryOp.EQ and not isinstance(e.left.type, Float):
            yield from (e.left, e.right)


def _made_of(expressions: Iterable[Expr], made: Mapping[Var, Sequence[Expr]]) -> Iterator[Expr]:
    """All that expressions are made of, through the variables in them."""
    waiting, seen = list(expressions), set[Var]()
    while waiting:
        for part in subexpressions([waiting.pop()]):
            yield part
            if isinstance(part, Var) and part not in seen:
                seen.add(part)
                waiting.extend(made.get(part, ()))
