"""Values that lanes of one warp or block hand to one another: shuffles, votes, ``__activemask``.

Only known operands are exchanged here (CUDA C++ Programming Guide, warp shuffle and warp vote
functions); the barrier each of them implies is a statement of its own.
"""

from __future__ import annotations

import numpy as np

from cuda_lsp.static.execution.values import Data, Flags, Lanes, Scalar

_WARP = 32


def exchange(
    name: str, operands: tuple[Scalar, ...], executing: Flags, threads: int, sure: bool = True
) -> int | Lanes | None:
    """The result when all operands are known and ``name`` is such a function; else None.

    ``executing``: ``(lanes,)`` lanes that take part; not ``sure``: that may take part, by data.
    """
    if any(isinstance(o, Data) for o in operands) or executing.ndim != 1:
        return None
    if not sure and not name.startswith("__shfl"):
        return None  # who votes is not known
    known = [o for o in operands if not isinstance(o, Data)]
    if name == "__activemask":
        return _ballot(np.ones(len(executing), bool), executing, threads)
    if name in ("__ballot_sync", "__any_sync", "__all_sync") and len(known) == 2:
        vote = np.broadcast_to(np.asarray(known[1]) != 0, executing.shape)
        if name == "__ballot_sync":
            return _ballot(vote, executing, threads)
        return _vote(vote, executing, threads, name == "__all_sync")
    if name.startswith("__syncthreads_") and len(known) == 1:
        return _block_vote(name, np.broadcast_to(np.asarray(known[0]) != 0, executing.shape), threads)
    if name.startswith("__shfl") and len(known) >= 3:
        if all(isinstance(o, int) for o in known[1:2]):
            return known[1]
        return _shuffle(name, known, executing, threads)
    return None


def _warps(lanes: Lanes, threads: int) -> Lanes:
    """``lanes`` of whole blocks as ``(warps, 32)``, missing lanes 0."""
    per_block = np.reshape(lanes, (-1, threads))
    pad = -threads % _WARP
    return np.reshape(np.pad(per_block, ((0, 0), (0, pad))), (-1, _WARP))


def _flat(warps: Lanes, threads: int, lanes: int) -> Lanes:
    per_block = -(-threads // _WARP) * _WARP
    return np.reshape(np.reshape(warps, (-1, per_block))[:, :threads], lanes)


def _ballot(vote: Flags, executing: Flags, threads: int) -> Lanes:
    ayes = _warps(vote & executing, threads).astype(np.uint64)
    bits = (ayes << np.arange(_WARP, dtype=np.uint64)).sum(axis=1)
    every = np.repeat(bits.astype(np.uint32)[:, None], _WARP, axis=1)
    return _flat(every, threads, len(vote))


def _vote(vote: Flags, executing: Flags, threads: int, every: bool) -> Lanes:
    ayes = _warps(vote & executing, threads).sum(axis=1)
    result = ayes == _warps(executing, threads).sum(axis=1) if every else ayes > 0
    return _flat(np.repeat(result[:, None], _WARP, axis=1), threads, len(vote)).astype(np.int32)


def _block_vote(name: str, vote: Flags, threads: int) -> Lanes | None:
    by_block = np.reshape(vote, (-1, threads)).sum(axis=1)
    results = {
        "__syncthreads_count": by_block,
        "__syncthreads_or": by_block > 0,
        "__syncthreads_and": by_block == threads,
    }
    result = results.get(name)
    return None if result is None else np.repeat(result, threads).astype(np.int32)


def _shuffle(name: str, known: list[int | Lanes], executing: Flags, threads: int) -> Lanes | None:
    """``__shfl[_up|_down|_xor]_sync(mask, value, by, width)``: every lane reads its source lane's value."""
    value = np.broadcast_to(np.asarray(known[1]), executing.shape)
    by = np.broadcast_to(np.asarray(known[2]).astype(np.int64), executing.shape)
    width = known[3] if len(known) > 3 and isinstance(known[3], int) else _WARP
    lane = np.arange(len(value)) % threads % _WARP
    first = lane // width * width
    sources = {
        "__shfl_sync": first + by % width,
        "__shfl_up_sync": np.where(lane - by < first, lane, lane - by),
        "__shfl_down_sync": np.where(lane + by >= first + width, lane, lane + by),
        "__shfl_xor_sync": np.where(lane ^ by >= first + width, lane, lane ^ by),
    }
    source = sources.get(name)
    if source is None:
        return None
    at = np.arange(len(value)) - lane + source
    if (at // threads != np.arange(len(value)) // threads).any() or not executing[at[executing]].all():
        return None
    return value[at]
