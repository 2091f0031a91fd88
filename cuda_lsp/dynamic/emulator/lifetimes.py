"""Shared memory lives as long as its block: accesses to that of another block which nothing keeps there.

A block ends when its last thread has left. So an access to its memory is safe where some thread of the
block learns of it, at a barrier of the cluster or elsewhere, before it leaves; the order that happened tells
nothing.
Source: CUDA C++ Programming Guide, "Distributed Shared Memory".
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.emulator.lanes import Lanes
from cuda_lsp.dynamic.emulator.memory import Memory
from cuda_lsp.dynamic.emulator.order import Order

Array = Any


@frozen
class Outlived:
    """An access that may come after the end of the block whose memory it is: instruction number, thread of
    the launch, address, that block (of the emulated ones), and how many threads do so."""

    number: int
    thread: int
    address: int
    block: int
    count: int


def outlived(visits: Array, lanes: Lanes, memory: Memory, order: Order) -> list[Outlived]:
    """One for each instruction. ``visits``: as ``Log.visits`` gives them, of a launch that has ended."""
    thread, address, number, at = visits
    owner = (address - memory.shared[0]) // memory.shared_stride
    last = np.lexsort((at, number, owner, thread))  # of each thread's visits to a block the last counts
    thread, address, number, at, owner = (column[last] for column in (thread, address, number, at, owner))
    new = np.ones(len(thread), bool)
    new[:-1] = (thread[1:] != thread[:-1]) | (owner[1:] != owner[:-1])
    kept = np.flatnonzero(new & ~_gate_follows(thread, at, lanes, order))
    found: dict[int, Outlived] = {}
    for k in kept.tolist():
        known, block = found.get(int(number[k])), int(owner[k])
        if order.learned(int(thread[k]), int(at[k]), lanes.block == block):
            continue
        one = known or Outlived(int(number[k]), int(thread[k]), int(address[k]), block, 0)
        found[one.number] = Outlived(one.number, one.thread, one.address, one.block, one.count + 1)
    return list(found.values())


def _gate_follows(thread: Array, at: Array, lanes: Lanes, order: Order) -> Array:
    """Whether all threads of a cluster meet after an access, ``(k,)`` flags."""
    found = np.zeros(len(thread), bool)
    for number, gates in order.gates.items():
        found |= (lanes.cluster[thread] == number) & (at < gates[-1][0])
    return found
