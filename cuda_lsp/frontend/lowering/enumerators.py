"""Which numbers a parameter of an enumeration takes: its enumerators, and their unions where they are flags.

The language lets it take others. That callers pass none is taken for granted, and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary
from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.ir.program import BinaryOp, Const, Expr, Var
from cuda_lsp.ir.types import Int

_MOST = 64


def values_of(ast: Ast, info: TypeInfo) -> tuple[int, ...]:
    """The numbers, ascending; none: it is no enumeration, or of too many."""
    if info.kind != "scalar" or info.declaration is None or not isinstance(info.ir, Int):
        return ()
    children = ast.children(info.declaration.cursor)
    named = {
        info.ir.wrap(ast.lib.clang_getEnumConstantDeclValue(child))
        for child in children
        if child.kind == K.ENUM_CONSTANT
    }
    values = range(reduce(lambda a, b: a | b, named) + 1) if _are_flags(named) else sorted(named)
    return tuple(values) if len(values) <= _MOST else ()


def _are_flags(named: set[int]) -> bool:
    """Powers of two that no counting from zero gives."""
    bits = named - {0}
    counted = named == set(range(len(named)))
    return len(bits) > 1 and not counted and all(n > 0 and n & (n - 1) == 0 for n in bits)


def among(var: Var, values: Sequence[int]) -> Expr:
    """That the variable holds one of these numbers."""
    low, high = (Const(n, var.type) for n in (values[0], values[-1]))
    if values[-1] - values[0] == len(values) - 1:
        below, above = binary(BinaryOp.GE, var, low), binary(BinaryOp.LE, var, high)
        return binary(BinaryOp.AND, below, above)
    equal = [binary(BinaryOp.EQ, var, Const(n, var.type)) for n in values]
    return reduce(lambda one, other: binary(BinaryOp.OR, one, other), equal)
