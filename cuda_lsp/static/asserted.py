"""What a kernel demands of its block: ``assert(blockDim.x == 32)``, ``if (blockDim.x != 32) return;``.

Where nothing tells the launch, an assumed block has to satisfy these: under another one no thread would run,
and nothing would race. Only equalities with constants are read, and only at the kernel's top level.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from cuda_lsp.ir.program import (
    FALSE,
    Assume,
    Axis,
    Binary,
    BinaryOp,
    Block,
    Builtin,
    Const,
    Expr,
    If,
    Kernel,
    Leave,
    Stmt,
    Unary,
    UnaryOp,
)
from cuda_lsp.ir.types import BOOL
from cuda_lsp.ir.walk import stripped
from cuda_lsp.model import Dim3

BLOCK_EXTENTS = (Axis.BDIM_X, Axis.BDIM_Y, Axis.BDIM_Z)
THREAD_AXES = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z)


def asserted_extents(kernel: Kernel) -> Mapping[Axis, int]:
    """Block extent → the number of threads that the kernel demands."""
    found: dict[Axis, int] = {}
    for statement in _top(kernel.body):
        if isinstance(statement, Assume):
            found.update(_equalities(statement.condition))
        elif isinstance(statement, If) and any(_ends(s) for s in statement.then):
            found.update(_equalities(_opposite(statement.condition)))
    return {axis: found[axis] for axis in BLOCK_EXTENTS if found.get(axis, 0) > 0}


def _top(statements: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements on no condition but that of not having returned."""
    for statement in statements:
        if isinstance(statement, Block):
            yield from _top(statement.body)
        else:
            yield statement


def with_extents(block: Dim3, asserted: Mapping[Axis, int], used: Collection[Axis]) -> Dim3:
    """``block`` with the asserted extents.

    The last other axis among the ``used`` ones gets what is left of the block's threads.
    """
    free = [i for i in range(3) if BLOCK_EXTENTS[i] not in asserted]
    last = max((i for i in free if THREAD_AXES[i] in used), default=None)
    x, y, z = (asserted.get(BLOCK_EXTENTS[i], 1 if i == last else block[i]) for i in range(3))
    found = [x, y, z]
    if last is not None:
        found[last] = max(1, math.prod(block) // (x * y * z))
    return (found[0], found[1], found[2])


def _ends(statement: object) -> bool:
    """Nothing behind it runs: a trap or, at the top level, a return."""
    return isinstance(statement, Leave) or (isinstance(statement, Assume) and statement.condition == FALSE)


def _equalities(condition: Expr) -> Iterator[tuple[Axis, int]]:
    """The built-ins that a conjunction of conditions makes equal to constants."""
    e = stripped(condition)
    if not isinstance(e, Binary):
        return
    if e.op is BinaryOp.AND and e.type == BOOL:
        yield from _equalities(e.left)
        yield from _equalities(e.right)
    if e.op is BinaryOp.EQ:
        for axis, number in ((stripped(e.left), stripped(e.right)), (stripped(e.right), stripped(e.left))):
            if isinstance(axis, Builtin) and isinstance(number, Const):
                yield axis.axis, int(number.value)


def _opposite(condition: Expr) -> Expr:
    """What holds behind a trap under ``condition``, as far as it is an equality."""
    e = stripped(condition)
    if isinstance(e, Unary) and e.op is UnaryOp.NOT:
        return e.operand
    if isinstance(e, Binary) and e.op is BinaryOp.NE:
        return Binary(BinaryOp.EQ, e.left, e.right, e.type)
    return FALSE
