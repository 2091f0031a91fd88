"""Which blocks of a launch form a cluster, and which place each has in it.

A grid is cut into boxes of neighbouring blocks. Source: PTX ISA 2.2.2 "Cluster of Cooperative Thread Arrays"
and 10.12 to 10.20, the registers that begin with ``%cluster``.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.model import Dim3

Array = Any

ALONE: Dim3 = (1, 1, 1)


def fits(grid: Dim3, size: Dim3) -> bool:
    """Whether a grid consists of whole clusters."""
    return all(extent % part == 0 for extent, part in zip(grid, size, strict=True))


def whole(blocks: Iterable[int], grid: Dim3, size: Dim3) -> tuple[int, ...]:
    """These blocks with all others of their clusters, cluster after cluster."""
    if size == ALONE:
        return tuple(blocks)
    across = _divided(grid, size)
    first = dict.fromkeys(_linear(_divided(_coordinates(b, grid), size), across) for b in blocks)
    return tuple(
        _linear(_sum(_product(_coordinates(cluster, across), size), _coordinates(rank, size)), grid)
        for cluster in first
        for rank in range(prod(size))
    )


def every(grid: Dim3, size: Dim3) -> Iterable[int]:
    """All blocks of a grid, cluster after cluster."""
    blocks = range(prod(grid))
    return blocks if size == ALONE else whole(blocks, grid, size)


@frozen(eq=False)
class Places:
    """Of some blocks of a launch, whole clusters. ``cluster``: the number of each block's cluster here;
    ``rank``: its number within; ``peers``: the blocks of each cluster by rank, ``(clusters, blocks)``;
    ``within``, ``of``: coordinates of a block in its cluster, and of that in the grid, ``(blocks, 3)``;
    ``across``: how many clusters there are.
    """

    size: Dim3
    cluster: Array
    rank: Array
    peers: Array
    within: Array
    of: Array
    across: Dim3


def places(blocks: tuple[int, ...], grid: Dim3, size: Dim3) -> Places:
    """``blocks``: as ``whole`` gives them."""
    across = _divided(grid, size)
    coordinates = np.array([_coordinates(b, grid) for b in blocks], np.int64).reshape(-1, 3)
    within, of = coordinates % size, coordinates // size
    numbers = np.arange(len(blocks))
    of_each = prod(size)
    peers = numbers.reshape(-1, of_each)
    return Places(size, numbers // of_each, numbers % of_each, peers, within, of, across)


def _coordinates(number: int, extents: Dim3) -> Dim3:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def _linear(at: Dim3, extents: Dim3) -> int:
    x, y, _ = extents
    return at[0] + x * (at[1] + y * at[2])


def _divided(a: Dim3, b: Dim3) -> Dim3:
    return a[0] // b[0], a[1] // b[1], a[2] // b[2]


def _product(a: Dim3, b: Dim3) -> Dim3:
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


def _sum(a: Dim3, b: Dim3) -> Dim3:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]
