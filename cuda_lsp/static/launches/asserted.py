"""What a kernel demands of its block: ``assert(blockDim.x == 32)``, ``if (blockDim.x != 32) return;``.

Where nothing tells the launch, an assumed block has to satisfy these: under another one no thread would run,
and nothing would race. Only equalities with constants are read, and only at the kernel's top level. What the
launches of the source have in common, where the whole block is not known, counts as well.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Axis, BinaryOp, Expr
from cuda_lsp.ir.types import BOOL
from cuda_lsp.ir.walk import stripped
from cuda_lsp.model import Dim3
from cuda_lsp.static.launches.coordinates import BLOCK_EXTENTS, THREAD_AXES


def asserted_extents(kernel: ir.Kernel) -> Mapping[Axis, int]:
    """Block extent → the number of threads that the kernel demands."""
    names = zip(BLOCK_EXTENTS, "xyz", strict=True)
    found = {axis: n for axis, name in names if (n := kernel.required.get(f"launched_{name}"))}
    for statement in _top(kernel.body):
        if isinstance(statement, ir.Assume):
            found.update(_equalities(statement.condition))
        elif isinstance(statement, ir.If) and any(map(_ends, statement.then)):
            found.update(_equalities(_opposite(statement.condition)))
    return {axis: found[axis] for axis in BLOCK_EXTENTS if found.get(axis, 0) > 0}


def with_extents(block: Dim3, asserted: Mapping[Axis, int], used: Collection[Axis]) -> Dim3:
    """``block`` with the asserted extents.

    The last other axis among the ``used`` ones gets what is left of the block's threads.
    """
    free = [i for i in range(3) if BLOCK_EXTENTS[i] not in asserted]
    last = max((i for i in free if THREAD_AXES[i] in used), default=None)
    found = [asserted.get(BLOCK_EXTENTS[i], 1 if i == last else block[i]) for i in range(3)]
    if last is not None:
        found[last] = max(1, math.prod(block) // math.prod(found))
    return (found[0], found[1], found[2])


def _top(statements: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """The statements on no condition but that of not having returned."""
    for statement in statements:
        if isinstance(statement, ir.Block):
            yield from _top(statement.body)
        else:
            yield statement


def _ends(statement: ir.Stmt) -> bool:
    """Nothing behind it runs: a trap or, at the top level, a return."""
    return isinstance(statement, ir.Leave) or (
        isinstance(statement, ir.Assume) and statement.condition == ir.FALSE
    )


def _equalities(condition: Expr) -> Iterator[tuple[Axis, int]]:
    """The built-ins that a conjunction of conditions makes equal to constants."""
    e = stripped(condition)
    if not isinstance(e, ir.Binary):
        return
    if e.op is BinaryOp.AND and e.type == BOOL:
        yield from _equalities(e.left)
        yield from _equalities(e.right)
    if e.op is BinaryOp.EQ:
        left, right = stripped(e.left), stripped(e.right)
        for axis, number in ((left, right), (right, left)):
            if isinstance(axis, ir.Builtin) and isinstance(number, ir.Const):
                yield axis.axis, int(number.value)


def _opposite(condition: Expr) -> Expr:
    """What holds behind a trap under ``condition``, as far as it is an equality."""
    e = stripped(condition)
    if isinstance(e, ir.Unary) and e.op is ir.UnaryOp.NOT:
        return e.operand
    if isinstance(e, ir.Binary) and e.op is BinaryOp.NE:
        return ir.Binary(BinaryOp.EQ, e.left, e.right, e.type)
    return ir.FALSE
