"""Clusters: boxes of neighbouring blocks that run together and reach one another's shared memory.

Source: CUDA C++ Programming Guide, "Thread Block Clusters", "Distributed Shared Memory"; PTX ISA, ``mapa``,
``barrier.cluster``. A block's rank counts the blocks of its cluster, x fastest. ``map_shared_rank`` gives the
same place in the array of another block: the pointer, moved by ``STRETCH`` bytes for each rank that this is
behind the executing block. Among threads of one block such offsets are places like any other; between blocks
each counts from the rank of its own (``rank_of``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from cuda_lsp.ir.program import (
    BID,
    STRETCH,
    Binary,
    BinaryOp,
    Builtin,
    Cast,
    Const,
    Expr,
    Offset,
    const,
)
from cuda_lsp.ir.types import INT64, UINT32
from cuda_lsp.ir.walk import subexpressions
from cuda_lsp.model import Dim3


def place_in_cluster(cluster: Dim3) -> tuple[Expr, Expr, Expr]:
    """Where the executing block stands in its cluster, along each axis."""
    x, y, z = (
        Binary(BinaryOp.REM, Builtin(axis), const(extent, UINT32), UINT32) if extent > 1 else const(0, UINT32)
        for axis, extent in zip(BID, cluster, strict=True)
    )
    return x, y, z


def block_rank(cluster: Dim3) -> Expr:
    """The executing block's number in its cluster."""
    total: Expr = const(0, UINT32)
    for place, extent in zip(reversed(place_in_cluster(cluster)), reversed(cluster), strict=True):
        if extent > 1:
            total = _sum(_product(total, extent), place)
    return total


def on_rank(pointer: Expr, rank: Expr, cluster: Dim3) -> Expr:
    """The same place in the memory of the block with that rank (INT64)."""
    behind = Binary(BinaryOp.SUB, rank, Cast(block_rank(cluster), INT64), INT64)
    return Offset(pointer, Binary(BinaryOp.MUL, behind, Const(STRETCH, INT64), INT64))


def moved(pointer: Expr) -> Iterator[Expr]:
    """The pointers inside this one that are moved to another block's memory, or along a table of objects."""
    for e in subexpressions((pointer,)):
        if isinstance(e, Offset) and any(map(_is_stretch, subexpressions((e.bytes,)))):
            yield e.pointer


def _is_stretch(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == STRETCH and e.type == INT64


def whole(blocks: Sequence[Dim3], cluster: Dim3) -> tuple[Dim3, ...]:
    """All blocks of the clusters that these are in, cluster after cluster, by rank."""
    first = dict.fromkeys(cluster_of(block, cluster) for block in blocks)
    x, y, z = cluster
    within = [(i, j, k) for k, j, i in itertools.product(range(z), range(y), range(x))]
    return tuple((n[0] * x + i, n[1] * y + j, n[2] * z + k) for n in first for i, j, k in within)


def cluster_of(block: Dim3, cluster: Dim3) -> Dim3:
    """Which cluster of the grid a block is in."""
    x, y, z = (b // c for b, c in zip(block, cluster, strict=True))
    return x, y, z


def rank_of(block: Dim3, cluster: Dim3) -> int:
    """A block's number in its cluster."""
    x, y, z = (b % c for b, c in zip(block, cluster, strict=True))
    return (z * cluster[1] + y) * cluster[0] + x


def _sum(left: Expr, right: Expr) -> Expr:
    return right if left == const(0, UINT32) else Binary(BinaryOp.ADD, left, right, UINT32)


def _product(left: Expr, extent: int) -> Expr:
    zero = const(0, UINT32)
    return zero if left == zero else Binary(BinaryOp.MUL, left, const(extent, UINT32), UINT32)
