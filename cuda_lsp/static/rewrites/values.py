"""What conditions come to when some variables are known."""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BinaryOp, Expr, Var
from cuda_lsp.ir.walk import mapped, stripped
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
