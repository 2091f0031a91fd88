"""Where each thread of a launch stands: built-in registers, warps, and exchange between lanes.

Warps are rows of 32 lanes; the last one of a block may be ragged, so lane values are padded into
``(warps, 32)`` before they are exchanged. Source: PTX ISA 9.7.9.6 "shfl.sync", 9.7.12, chapter 10.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.emulator.clusters import ALONE, Places, places
from cuda_lsp.dynamic.runs import WARP
from cuda_lsp.model import Dim3

Array = Any
_POWERS = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def distinct(values: Array) -> Array:
    """The different values, sorted: ``np.unique`` hashes, which costs several times as much."""
    ordered = np.sort(values)
    first = np.empty(len(ordered), bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


@frozen(eq=False)
class _Shape:
    """What all launches of so many blocks of one shape have in common."""

    thread_numbers: Array
    thread: Array
    block: Array
    warp: Array
    lane: Array
    warps: int
    slot: Array
    registers: Mapping[str, Array]


@lru_cache(16)
def _shape(block: Dim3, blocks: int) -> _Shape:
    per_block = int(np.prod(block))
    numbers = np.arange(per_block * blocks)
    thread, home = numbers % per_block, numbers // per_block
    block_warps = -(-per_block // WARP)
    warp, lane = home * block_warps + thread // WARP, (thread % WARP).astype(np.uint32)
    one, local = np.uint32(1), thread
    registers: dict[str, Array] = {}
    for axis, extent in zip("xyz", block, strict=True):
        registers[f"%tid.{axis}"] = (local % extent).astype(np.uint32) if extent > 1 else np.uint32(0)
        registers[f"%ntid.{axis}"] = np.uint32(extent)
        local = local // extent
    registers |= {
        "%laneid": lane,
        "%warpid": (thread // WARP).astype(np.uint32),
        "%nwarpid": np.uint32(block_warps),
        "%lanemask_eq": one << lane,
        "%lanemask_lt": (one << lane) - one,
        "%lanemask_le": ((one << lane) - one) | (one << lane),
        "%lanemask_ge": ~((one << lane) - one),
        "%lanemask_gt": ~(((one << lane) - one) | (one << lane)),
    }
    zero = ("%smid", "%gridid", "%envreg0", "%envreg1", "%envreg2", "%reserved_smem_offset_0",
            "%reserved_smem_offset_1", "%is_explicit_cluster", "%cluster_ctarank", "%cluster_ctaid.x",
            "%cluster_ctaid.y", "%cluster_ctaid.z")  # fmt: skip
    registers |= dict.fromkeys(zero, np.uint32(0))
    one_each = ("%nsmid", "%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z")
    registers |= dict.fromkeys(one_each, np.uint32(1))
    return _Shape(numbers, thread, home, warp, lane, block_warps * blocks, warp * WARP + lane, registers)


class Lanes:
    """The threads of some blocks of a launch, block after block. ``count``: how many.

    Arrays are shared with other launches and never changed. ``registers``: a scalar where all agree.
    ``clusters``: where the blocks stand in theirs, None: each is alone.
    """

    def __init__(self, block: Dim3, grid: Dim3, blocks: tuple[int, ...], cluster: Dim3 = ALONE) -> None:
        self.per_block = int(np.prod(block))
        self.count = self.per_block * len(blocks)
        shape = _shape(block, len(blocks))
        self.thread_numbers, self.thread, self.block = shape.thread_numbers, shape.thread, shape.block
        self.warp, self.lane, self.warps, self.slot = shape.warp, shape.lane, shape.warps, shape.slot
        self.registers: dict[str, Array] = dict(shape.registers)
        number = np.asarray(blocks)
        for axis, extent in zip("xyz", grid, strict=True):
            place = (number % extent).astype(np.uint32)
            agree = len(place) > 0 and (place == place[0]).all()
            self.registers[f"%ctaid.{axis}"] = place[0] if agree else place.repeat(self.per_block)
            self.registers[f"%nctaid.{axis}"] = np.uint32(extent)
            self.registers[f"%clusterid.{axis}"] = self.registers[f"%ctaid.{axis}"]
            self.registers[f"%nclusterid.{axis}"] = np.uint32(extent)
            number = number // extent
        self.clusters = places(blocks, grid, cluster) if cluster != ALONE else None
        if self.clusters is not None:
            self._join(self.clusters)

    def _join(self, clusters: Places) -> None:
        """The registers that say where blocks stand in their clusters."""
        self.registers["%is_explicit_cluster"] = np.uint32(1)
        self.registers["%cluster_nctarank"] = np.uint32(clusters.peers.shape[1])
        self.registers["%cluster_ctarank"] = self._each(clusters.rank)
        for k, axis in enumerate("xyz"):
            self.registers[f"%cluster_nctaid.{axis}"] = np.uint32(clusters.size[k])
            self.registers[f"%nclusterid.{axis}"] = np.uint32(clusters.across[k])
            self.registers[f"%cluster_ctaid.{axis}"] = self._each(clusters.within[:, k])
            self.registers[f"%clusterid.{axis}"] = self._each(clusters.of[:, k])

    def _each(self, of_blocks: Array) -> Array:
        return of_blocks.astype(np.uint32).repeat(self.per_block)

    @property
    def cluster(self) -> Array:
        """The number of each thread's cluster, ``(n,)``."""
        return self.block if self.clusters is None else self.clusters.cluster[self.block]

    def rows(self, values: Array, filler: Any) -> Array:
        """Lane values as ``(warps, 32)``; ``filler`` where there is no thread."""
        padded = np.full(self.warps * WARP, filler, np.asarray(values).dtype)
        padded[self.slot] = values
        return padded.reshape(self.warps, WARP)

    def mask(self, active: Array) -> Array:
        """``(n,)`` flags (None: all) → the bit mask of each warp, ``(warps,)`` u32."""
        if active is None:
            active = np.ones(self.count, bool)
        bits = np.where(self.rows(active, False), _POWERS, np.uint32(0))
        return np.bitwise_or.reduce(bits, axis=1)

    def shuffle(
        self, mode: str, value: Array, lane: Array, clamp: Array, active: Array
    ) -> tuple[Array, Array]:
        """The value of another lane, and whether that lane is in range; its own value where not."""
        value = np.broadcast_to(np.asarray(value), (self.count,))
        own = self.lane.astype(np.int64)
        b = np.asarray(lane).astype(np.int64) & 31
        c = np.asarray(clamp).astype(np.int64)
        segment, limit = c >> 8 & 31, c & 31
        highest = own & segment | limit & ~segment
        lowest = own & segment
        if mode == "up":
            source = own - b
            inside = source >= highest  # PTX gives the lower bound in the clamp field here
        elif mode == "down":
            source = own + b
            inside = source <= highest
        elif mode == "bfly":
            source = own ^ b
            inside = source <= highest
        else:
            source = lowest | b & ~segment
            inside = source <= highest
        source = np.where(inside, source, own)
        padded = self.rows(value, 0).ravel()
        return padded[self.warp * WARP + source], np.broadcast_to(inside, (self.count,))

    def members(self, active: Array, named: Array | None) -> Array:
        """For each lane the bits of the lanes it acts with: active, and named by it (None: its warp)."""
        there = self.mask(active)[self.warp]
        return there if named is None else there & np.asarray(named, np.uint32)

    def vote(self, mode: str, predicate: Array, active: Array, named: Array | None = None) -> Array:
        """A vote of the lanes that act together, ``(n,)``: ``ballot`` gives u32 bits, the others flags."""
        everyone = self.members(active, named)
        predicate = np.broadcast_to(np.asarray(predicate), (self.count,))
        yes = self.mask(predicate if active is None else predicate & active)[self.warp] & everyone
        if mode == "ballot":
            return yes
        return {"all": yes == everyone, "any": yes != 0, "uni": (yes == everyone) | (yes == 0)}[mode]

    def match(
        self, value: Array, everyone: bool, active: Array, named: Array | None = None
    ) -> tuple[Array, Array]:
        """The lanes that hold the same value, of those that act together (``all``: all or none of them)."""
        full = self.members(active, named)
        rows = self.rows(np.broadcast_to(np.asarray(value), (self.count,)), 0)
        same = rows[:, :, None] == rows[:, None, :]
        masks = np.bitwise_or.reduce(np.where(same, _POWERS, np.uint32(0)), axis=2)
        found = masks.ravel()[self.slot] & full
        if not everyone:
            return found, found != 0
        return np.where(found == full, full, np.uint32(0)), found == full

    def reduce(self, operation: str, value: Array, active: Array, named: Array | None = None) -> Array:
        """``redux``: one value for all lanes that act together, ``(n,)`` in the type of ``value``.

        ``operation``: ``add``, ``min``, ``max``, ``and``, ``or``, ``xor``.
        """
        value = np.broadcast_to(np.asarray(value), (self.count,))
        function: Any = {
            "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
            "or": np.bitwise_or, "xor": np.bitwise_xor,
        }[operation]  # fmt: skip
        limits = np.iinfo(value.dtype)
        neutral = {"min": limits.max, "max": limits.min, "and": -1 if limits.min else limits.max}.get(
            operation, 0
        )
        filler = value.dtype.type(neutral)
        if active is not None:
            value = np.where(active, value, filler)
        rows, members = self.rows(value, filler), self.members(active, named)
        if (members == self.members(active, None)).all():
            return function.reduce(rows, axis=1, dtype=value.dtype)[self.warp]
        theirs = self.rows(members, 0)[:, :, None] & _POWERS != 0  # (warps, lanes, whom each acts with)
        mine = function.reduce(np.where(theirs, rows[:, None, :], filler), axis=2, dtype=value.dtype)
        return mine.ravel()[self.slot]
