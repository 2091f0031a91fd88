"""Clusters of blocks, as groups and as the functions and instructions that these are made of.

Source: CUDA C++ Programming Guide, "Cluster Group", "Distributed Shared Memory". How many blocks a cluster
has, an attribute of the kernel tells (``__cluster_dims__``). That of a launch is not read: a rank is then a
number that nobody knows, and memory of other blocks is not followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from cuda_lsp.frontend.lowering.build import binary, cast, linear_thread, product
from cuda_lsp.frontend.lowering.places import Value, is_expr
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.tree import Node
from cuda_lsp.frontend.vocabulary.builtin_call import Call
from cuda_lsp.ir.clusters import block_rank, on_rank, place_in_cluster
from cuda_lsp.ir.program import (
    BDIM,
    TID,
    Barrier,
    BarrierPhase,
    BarrierScope,
    BinaryOp,
    Builtin,
    Const,
    Expr,
    NextStep,
)
from cuda_lsp.ir.types import INT64, UINT32
from cuda_lsp.model import Dim3

MAP = "map_shared_rank"
_UNKNOWN = "how many blocks a cluster has is not known: no attribute of the kernel tells"


def member(call: Call, name: str) -> Value:
    """What a member of ``cluster_group`` gives."""
    cluster = call.low.launched.cluster
    if name == MAP:
        return _map(call, cluster)
    if name in _OF_BLOCK:
        return call.record(tuple(Builtin(axis) for axis in _OF_BLOCK[name]))
    if cluster is None or name not in _MEMBERS:
        return call.unknown(f"{name} of a cluster", varies=True)
    given = _MEMBERS[name](cluster)
    return call.record(given) if isinstance(given, tuple) else cast(given, call.info.ir)


def cluster_barrier(low: Lowering, node: Node, phase: BarrierPhase, name: str) -> None:
    """A step at the cluster's barrier; what a relaxed arrival tells others is not followed."""
    if "relaxed" in name:
        low.incomplete(
            name, "a relaxed arrival at a cluster's barrier is not modelled", node, synchronises=True
        )
    else:
        low.emit(Barrier(BarrierScope.CLUSTER, low.site(node), phase))


def intrinsic(call: Call) -> Value:
    """One of CUDA's own functions about clusters."""
    phase = _STEPS.get(call.name)
    if phase is None:
        return member(call, _FUNCTIONS[call.name])
    cluster_barrier(call.low, call.node, phase, call.name)
    return call.nothing()


def _map(call: Call, cluster: Dim3 | None) -> Value:
    pointer, rank = call.value(0), call.scalar(1)
    if cluster is None or not is_expr(pointer):
        reason = _UNKNOWN if cluster is None else "which object of the other block is meant is not known"
        step = NextStep.CLUSTER if cluster is None else NextStep.RUN
        call.low.incomplete(f"cluster.{MAP}", reason, call.node, step=step)
        return pointer
    return on_rank(call.low.pointer(pointer), cast(rank, INT64), cluster)


def _thread_rank(cluster: Dim3) -> Expr:
    before = binary(BinaryOp.MUL, block_rank(cluster), product(BDIM))
    return binary(BinaryOp.ADD, before, linear_thread())


def _count(n: int) -> Expr:
    return Const(n, UINT32)


def _extents(cluster: Dim3) -> tuple[Expr, ...]:
    return tuple(map(_count, cluster))


_OF_BLOCK = {"thread_index": TID}
_MEMBERS: Mapping[str, Callable[[Dim3], Expr | tuple[Expr, ...]]] = {
    "block_rank": block_rank,
    "thread_rank": _thread_rank,
    "block_index": place_in_cluster,
    "dim_blocks": _extents,
    "num_blocks": lambda cluster: _count(math.prod(cluster)),
    "num_threads": lambda cluster: binary(BinaryOp.MUL, product(BDIM), _count(math.prod(cluster))),
    "size": lambda cluster: binary(BinaryOp.MUL, product(BDIM), _count(math.prod(cluster))),
    "dim_threads": lambda cluster: tuple(
        binary(BinaryOp.MUL, Builtin(axis), _count(extent))
        for axis, extent in zip(BDIM, cluster, strict=True)
    ),
}
_STEPS = {
    "__cluster_barrier_arrive": BarrierPhase.ARRIVE,
    "__cluster_barrier_arrive_relaxed": BarrierPhase.ARRIVE,
    "__cluster_barrier_wait": BarrierPhase.WAIT,
}
_FUNCTIONS = {
    "__cluster_map_shared_rank": MAP,
    "__cluster_query_shared_rank": "query_shared_rank",
    "__clusterDim": "dim_blocks",
    "__clusterRelativeBlockIdx": "block_index",
    "__clusterRelativeBlockRank": "block_rank",
    "__clusterSizeInBlocks": "num_blocks",
}
INTRINSICS = (*_STEPS, *_FUNCTIONS)
MEMBERS = frozenset({MAP, "query_shared_rank", *_MEMBERS, *_OF_BLOCK})
