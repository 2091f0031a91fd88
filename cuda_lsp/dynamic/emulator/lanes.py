"""Where each thread of a launch stands: built-in registers, warps, and exchange between lanes.

Warps are rows of 32 lanes; the last one of a block may be ragged, so lane values are padded into
``(warps, 32)`` before they are exchanged. Source: PTX ISA 9.7.9.6 "shfl.sync", 9.7.12, chapter 10.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_lsp.model import Dim3

Array = Any
_POWERS = np.uint32(1) << np.arange(32, dtype=np.uint32)


def distinct(values: Array) -> Array:
    """The different values, sorted: ``np.unique`` hashes, which costs several times as much."""
    ordered = np.sort(values)
    first = np.empty(len(ordered), bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


class Lanes:
    """The threads of some blocks of a launch, block after block. ``count``: how many."""

    def __init__(self, block: Dim3, grid: Dim3, blocks: tuple[int, ...]) -> None:
        self.per_block = int(np.prod(block))
        self.count = self.per_block * len(blocks)
        thread = np.arange(self.count)
        self.thread_numbers: Array = thread
        self.thread: Array = thread % self.per_block
        self.block: Array = thread // self.per_block
        per_block_warps = -(-self.per_block // 32)
        self.warp: Array = self.block * per_block_warps + self.thread // 32
        self.lane: Array = (self.thread % 32).astype(np.uint32)
        self.warps = per_block_warps * len(blocks)
        self.slot: Array = self.warp * 32 + self.lane
        self.registers: dict[str, Array] = {}
        number = np.asarray(blocks)[self.block]
        local = self.thread
        for axis, g, b in zip("xyz", grid, block, strict=True):
            self.registers[f"%tid.{axis}"] = (local % b).astype(np.uint32)
            self.registers[f"%ctaid.{axis}"] = (number % g).astype(np.uint32)
            self.registers[f"%ntid.{axis}"] = np.uint32(b)
            self.registers[f"%nctaid.{axis}"] = np.uint32(g)
            local, number = local // b, number // g
        self._fixed(per_block_warps)

    def _fixed(self, warps: int) -> None:
        lane, one = self.lane, np.uint32(1)
        self.registers |= {
            "%laneid": lane,
            "%warpid": (self.thread // 32).astype(np.uint32),
            "%nwarpid": np.uint32(warps),
            "%lanemask_eq": one << lane,
            "%lanemask_lt": (one << lane) - one,
            "%lanemask_le": ((one << lane) - one) | (one << lane),
            "%lanemask_ge": ~((one << lane) - one),
            "%lanemask_gt": ~(((one << lane) - one) | (one << lane)),
        }
        zero = ("%smid", "%gridid", "%envreg0", "%envreg1", "%envreg2", "%reserved_smem_offset_0",
                "%reserved_smem_offset_1", "%is_explicit_cluster", "%cluster_ctarank")  # fmt: skip
        self.registers |= dict.fromkeys(zero, np.uint32(0))
        self.registers |= {"%nsmid": np.uint32(1), "%cluster_nctarank": np.uint32(1)}

    def rows(self, values: Array, filler: Any) -> Array:
        """Lane values as ``(warps, 32)``; ``filler`` where there is no thread."""
        padded = np.full(self.warps * 32, filler, np.asarray(values).dtype)
        padded[self.slot] = values
        return padded.reshape(self.warps, 32)

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
        return padded[self.warp * 32 + source], np.broadcast_to(inside, (self.count,))

    def vote(self, mode: str, predicate: Array, active: Array) -> Array:
        everyone = self.mask(active)
        predicate = np.broadcast_to(np.asarray(predicate), (self.count,))
        yes = self.mask(predicate if active is None else predicate & active)
        if mode == "ballot":
            return yes[self.warp]
        answer = {"all": yes == everyone, "any": yes != 0, "uni": (yes == everyone) | (yes == 0)}[mode]
        return answer[self.warp]

    def match(self, value: Array, everyone: bool, active: Array) -> tuple[Array, Array]:
        """The lanes of the warp that hold the same value (``all``: all or none of them)."""
        value = np.broadcast_to(np.asarray(value), (self.count,))
        rows = self.rows(value, 0)
        there = self.rows(np.ones(self.count, bool) if active is None else active, False)
        same = (rows[:, :, None] == rows[:, None, :]) & there[:, None, :]
        masks = np.bitwise_or.reduce(np.where(same, _POWERS, np.uint32(0)), axis=2)
        found = masks.ravel()[self.slot]
        if not everyone:
            return found, found != 0
        full = self.mask(active)[self.warp]
        return np.where(found == full, full, np.uint32(0)), found == full

    def reduce(self, operation: str, value: Array, active: Array) -> Array:
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
        return function.reduce(self.rows(value, filler), axis=1, dtype=value.dtype)[self.warp]
