"""What conditions and values come to when some variables are known; numbers that nothing has yet."""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.ops import BINARY, UNARY
from cuda_lsp.ir.program import BinaryOp, Expr, Var
from cuda_lsp.ir.types import BOOL, Int
from cuda_lsp.ir.walk import assigned, expressions, mapped, stripped, subexpressions, walk
from cuda_lsp.static import budgets


def substituted(e: Expr, values: Mapping[Var, Expr], depth: int = budgets.MOST_SUBSTITUTIONS) -> Expr:
    """The expression with variables replaced by their values, and the variables in those, ``depth`` deep.

    What calls or chooses stays as it is.
    """
    if isinstance(e, Var):
        found = values.get(e)
        return e if found is None or depth == 0 else substituted(found, values, depth - 1)
    if isinstance(e, (ir.Select, ir.Intrinsic)):
        return e
    return mapped(e, lambda part: substituted(part, values, depth))


def truth_of(condition: Expr) -> int | None:
    """What the condition comes to, as far as comparisons for equality of constants go."""
    condition = stripped(condition)
    if isinstance(condition, ir.Const) and isinstance(condition.value, int):
        return condition.value
    if isinstance(condition, ir.Unary) and condition.op is ir.UnaryOp.NOT:
        inner = truth_of(condition.operand)
        return None if inner is None else int(not inner)
    if isinstance(condition, ir.Binary) and condition.op in (BinaryOp.EQ, BinaryOp.NE):
        a, b = truth_of(condition.left), truth_of(condition.right)
        return None if a is None or b is None else int((a == b) is (condition.op is BinaryOp.EQ))
    return None


def number(e: Expr, values: Mapping[Var, int]) -> int | None:
    """The integer that the expression is, where only these variables are known."""
    if isinstance(e, ir.Const):
        return e.value if isinstance(e.value, int) and isinstance(e.type, Int) else None
    if isinstance(e, Var):
        return values.get(e)
    if isinstance(e, ir.Cast):
        inner = number(e.operand, values)
        if inner is None or not isinstance(e.type, Int) or not isinstance(e.operand.type, Int):
            return None
        return int(inner != 0) if e.type == BOOL else e.type.wrap(inner)
    if isinstance(e, ir.Unary):
        inner = number(e.operand, values)
        type = e.operand.type
        return UNARY[e.op].python(inner, type) if inner is not None and isinstance(type, Int) else None
    if isinstance(e, ir.Select):
        chosen = number(e.condition, values)
        return None if chosen is None else number(e.then if chosen else e.otherwise, values)
    return _joined(e, values) if isinstance(e, ir.Binary) else None


def _joined(e: ir.Binary, values: Mapping[Var, int]) -> int | None:
    a, b = number(e.left, values), number(e.right, values)
    if e.op in (BinaryOp.AND, BinaryOp.OR):
        decisive = int(e.op is BinaryOp.OR)
        if decisive in [int(bool(x)) for x in (a, b) if x is not None]:
            return decisive
    type = e.left.type
    return (
        BINARY[e.op].exact(a, b, type) if a is not None and b is not None and isinstance(type, Int) else None
    )


def highest(kernel: ir.Kernel) -> int:
    """The greatest number that a variable or an unknown value has."""
    parts = subexpressions(expressions(kernel.body))
    numbers = [e.id for e in parts if isinstance(e, (Var, ir.Unknown))]
    numbers += [v.id for s in walk(kernel.body) if (v := assigned(s)) is not None]
    return max([*numbers, *(p.id for p in kernel.params)], default=0)
