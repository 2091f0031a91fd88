"""Axes of a grid that a kernel reads as one: ``blockIdx.y + blockIdx.z * gridDim.y``.

A host that needs more blocks than an axis may have folds them into the next one. Where the kernel asks for
neither index but in this sum, a grid of ``gridDim.y * gridDim.z`` blocks along y alone numbers them alike:
that grid stands for all of its shapes.
"""

from __future__ import annotations

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BID, GDIM, Axis, BinaryOp, Expr
from cuda_lsp.ir.walk import expressions, stripped, subexpressions
from cuda_lsp.model import Extents


def folded_axes(kernel: ir.Kernel, grid: Extents) -> frozenset[int]:
    """Axes (1, 2) of the grid that may be taken to be one block long; ``grid``: what is known of it."""
    return frozenset(
        axis
        for axis in (1, 2)
        if grid[axis - 1] is None and grid[axis] is None and _is_folded(kernel, axis)
    )  # fmt: skip


def _is_folded(kernel: ir.Kernel, axis: int) -> bool:
    """The kernel reads the axis, and the one before it, in numbers of blocks along both only."""
    own = {BID[axis - 1], GDIM[axis - 1], BID[axis], GDIM[axis]}
    every = (*expressions(kernel.body), *kernel.directives.assumptions)
    found = False

    def enter(e: Expr) -> bool:
        nonlocal found
        numbers = _numbers(e, axis)
        found = found or numbers
        return not numbers

    others = {e.axis for e in subexpressions(every, enter) if isinstance(e, ir.Builtin)}
    return found and not own & others


def _numbers(e: Expr, axis: int) -> bool:
    """``blockIdx.y + blockIdx.z * gridDim.y``."""
    if not isinstance(e, ir.Binary) or e.op is not BinaryOp.ADD:
        return False
    return any(
        _is(one, BID[axis - 1])
        and isinstance(other, ir.Binary)
        and other.op is BinaryOp.MUL
        and any(_is(a, BID[axis]) and _is(b, GDIM[axis - 1]) for a, b in _both_ways(other))
        for one, other in _both_ways(e)
    )


def _both_ways(e: ir.Binary) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    left, right = stripped(e.left), stripped(e.right)
    return (left, right), (right, left)


def _is(e: Expr, axis: Axis) -> bool:
    return isinstance(e, ir.Builtin) and e.axis is axis
