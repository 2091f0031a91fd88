"""Expressions as sums: whole multiples of parts that are no sums themselves.

Casts are looked through: indices and addresses fit the types that they are computed in.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BinaryOp, Expr
from cuda_lsp.ir.walk import stripped

Sum = Mapping[Expr | None, int]
"""Part → what it is multiplied with, never 0; None: the constant."""


def linear(e: Expr) -> Sum:
    """The sum that an integer or a pointer is; of a pointer in bytes."""
    e = stripped(e)
    if isinstance(e, ir.Const) and isinstance(e.value, int):
        return {None: e.value} if e.value else {}
    if isinstance(e, ir.Offset):
        return combined(linear(e.pointer), linear(e.bytes))
    if isinstance(e, ir.Binary) and e.op in (BinaryOp.ADD, BinaryOp.SUB):
        return combined(linear(e.left), linear(e.right), 1 if e.op is BinaryOp.ADD else -1)
    if isinstance(e, ir.Binary) and e.op in (BinaryOp.MUL, BinaryOp.SHL):
        left, right = linear(e.left), linear(e.right)
        if e.op is BinaryOp.MUL and left.keys() <= {None}:
            left, right = right, left
        if right.keys() <= {None}:
            by = right.get(None, 0)
            return combined({}, left, by if e.op is BinaryOp.MUL else 1 << min(max(by, 0), 63))
    return {e: 1}


def combined(a: Sum, b: Sum, factor: int = 1) -> Sum:
    """``a + factor * b``."""
    found = {part: a.get(part, 0) + factor * b.get(part, 0) for part in {**a, **b}}
    return {part: n for part, n in found.items() if n}
