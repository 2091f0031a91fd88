"""Which of its coordinates a kernel asks for, and so which shapes of block it is made for."""

from __future__ import annotations

import math
from functools import lru_cache

from cuda_lsp.ir.program import BID, GDIM, Axis, Binary, BinaryOp, Builtin, Const, Expr, Kernel
from cuda_lsp.ir.walk import expressions, read_expressions, stripped, subexpressions
from cuda_lsp.model import WARP_SIZE, LaunchConfig

THREAD_AXES = (Axis.TID_X, Axis.TID_Y, Axis.TID_Z)
BLOCK_AXES = (Axis.BID_X, Axis.BID_Y, Axis.BID_Z)
BLOCK_EXTENTS = (Axis.BDIM_X, Axis.BDIM_Y, Axis.BDIM_Z)
_PITCHES = (Axis.BDIM_X, Axis.BDIM_Y, Axis.GDIM_X, Axis.GDIM_Y)


@lru_cache(maxsize=4)  # as ``facts_of``
def axes_of(kernel: Kernel) -> frozenset[Axis]:
    """The built-in variables that a kernel reads, linear thread ranks (``y * blockDim.x``) left out.

    A rank is as good in one dimension as in two: it says nothing of the block's shape.
    """
    parts = subexpressions(read_expressions(kernel.body), lambda e: not _is_rank(e))
    return frozenset(e.axis for e in parts if isinstance(e, Builtin))


@lru_cache(maxsize=4)
def has_planes(kernel: Kernel) -> bool:
    """Threads of a block are told apart by planes: not only ``blockIdx.z * blockDim.z + threadIdx.z``."""
    parts = subexpressions(read_expressions(kernel.body), lambda e: not (_is_rank(e) or _is_plane_of_grid(e)))
    return any(isinstance(e, Builtin) and e.axis is Axis.TID_Z for e in parts)


def unlike(kernel: Kernel, launch: LaunchConfig) -> bool:
    """The kernel uses a thread coordinate that the launch does not have: it is meant for another one."""
    used = axes_of(kernel)
    return any(n == 1 and axis in used for n, axis in zip(launch.block, THREAD_AXES, strict=True))


def meant_for_blocks(kernel: Kernel, launch: LaunchConfig) -> bool:
    """Whether the launch may have several blocks: the grid is told, or the kernel tells blocks apart.

    Where nobody knows the grid, a kernel that does not ask which block it is, nor how many there are, may be
    meant for one.
    """
    return launch.grid is not None or math.prod(launch.least_grid) > 1 or _tells_blocks_apart(kernel)


@lru_cache(maxsize=4)
def _tells_blocks_apart(kernel: Kernel) -> bool:
    """It reads their numbers or extents, or the host says what these are made of."""
    said = (*kernel.directives.assumptions, *(c for conditions in kernel.said.values() for c in conditions))
    parts = subexpressions((*expressions(kernel.body), *said))
    return any(isinstance(e, Builtin) and e.axis in (*BID, *GDIM) for e in parts)


@lru_cache(maxsize=4)
def rows_are_warps(kernel: Kernel) -> bool:
    """Whether the kernel numbers its threads ``32 * threadIdx.y + threadIdx.x``."""
    return any(map(_is_row_of_warp, subexpressions(expressions(kernel.body))))


def _factors(e: Expr) -> tuple[Expr, ...]:
    """What a product multiplies; nothing of another expression."""
    if not isinstance(e, Binary) or e.op is not BinaryOp.MUL:
        return ()
    return stripped(e.left), stripped(e.right)


def _is_rank(e: Expr) -> bool:
    return any(isinstance(f, Builtin) and f.axis in _PITCHES for f in _factors(e))


def _is_plane_of_grid(e: Expr) -> bool:
    """A plane of the grid: as good one in a block as several."""
    if not isinstance(e, Binary) or e.op is not BinaryOp.ADD:
        return False
    sides = stripped(e.left), stripped(e.right)
    planes = any(isinstance(side, Builtin) and side.axis is Axis.TID_Z for side in sides)
    factors = [f for side in sides for f in _factors(side)]
    return planes and any(isinstance(f, Builtin) and f.axis is Axis.BDIM_Z for f in factors)


def _is_row_of_warp(e: Expr) -> bool:
    factors = _factors(e)
    return any(isinstance(f, Builtin) and f.axis is Axis.TID_Y for f in factors) and any(
        isinstance(f, Const) and f.value == WARP_SIZE for f in factors
    )
