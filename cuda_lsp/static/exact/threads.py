"""A thread of a launch as numbers, and where the bytes of an array are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from attrs import frozen

from cuda_lsp.ir.program import Array, Axis
from cuda_lsp.model import Dim3, Space, linear_index


@frozen(slots=False)
class Thread:
    """Where a thread stands: ``threadIdx``, ``blockIdx``, ``blockDim``, ``gridDim``."""

    tid: Dim3
    bid: Dim3
    bdim: Dim3
    gdim: Dim3
    warp_size: int

    @cached_property
    def linear(self) -> int:
        """Its number in the block, x fastest."""
        return linear_index(self.tid, self.bdim)

    @cached_property
    def warp(self) -> int:
        """The number of its warp in the block."""
        return self.linear // self.warp_size

    @cached_property
    def axes(self) -> Mapping[Axis, int]:
        """All built-in variables."""
        lane = self.linear % self.warp_size
        numbers = (*self.tid, *self.bid, *self.bdim, *self.gdim, lane, self.warp_size)
        return dict(zip(Axis, numbers, strict=True))


def memory_base(array: Array) -> tuple[Hashable, int]:
    """What object the array's bytes belong to, and where in it they start (bytes).

    Views of dynamic shared memory that begin at known places are one object.
    """
    if array.may_alias is not None and array.offset is not None and array.space is Space.SHARED:
        return array.may_alias, array.offset
    return array, 0
