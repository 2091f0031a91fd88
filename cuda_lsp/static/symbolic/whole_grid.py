"""Kernels that know their grid as one line of blocks: ``grid.thread_rank()`` and ``grid.size()``.

Blocks of a grid of any shape are numbered as those of a line of as many, so that a kernel which asks for
nothing but a block's number and how many there are does the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuda_lsp.ir.program import BID, GDIM, Binary, BinaryOp, Builtin, Expr
from cuda_lsp.ir.walk import subexpressions

_X, _Y, _Z = (Builtin(axis) for axis in BID)
_WIDE, _HIGH, _DEEP = (Builtin(axis) for axis in GDIM)


def _of(op: BinaryOp, left: Expr, right: Expr) -> Binary:
    return Binary(op, left, right, _X.type)


_PLANES = _of(BinaryOp.ADD, _of(BinaryOp.MUL, _Z, _HIGH), _Y)
_NUMBER = _of(BinaryOp.ADD, _of(BinaryOp.MUL, _PLANES, _WIDE), _X)
_COUNT = _of(BinaryOp.MUL, _of(BinaryOp.MUL, _WIDE, _HIGH), _DEEP)
_OF_LINE: Mapping[Expr, Expr] = {_NUMBER: _X, _COUNT: _WIDE}


def without_line(expressions: Sequence[Expr]) -> list[Expr]:
    """The parts of expressions that ask for built-ins: of a line of blocks only what lies along x.

    A kernel that asks for a coordinate besides is left as it is.
    """
    along: list[Expr] = []

    def enter(e: Expr) -> bool:
        line = _along(e)
        along.extend(() if line is None else (line,))
        return line is None

    rest = [e for e in subexpressions(expressions, enter) if isinstance(e, Builtin)]
    if not along or any(e.axis in (*BID, *GDIM) for e in rest):
        return list(expressions)
    return [*rest, *along]


def _along(e: Expr) -> Expr | None:
    """What a line has for a block's number and for how many there are; None: it is neither."""
    ends_so = isinstance(e, Binary) and (e.right == _X or e.right == _DEEP)
    return _OF_LINE.get(e) if ends_so else None
