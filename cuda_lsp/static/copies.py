"""Asynchronous copies: from where they are issued to the wait that completes them.

A copy may read and write at any time in between, so it counts as an access again behind every barrier that is
passed meanwhile. The copies of a thread since its last commit form a group; a wait leaves at most so many of
its latest groups open (PTX ISA, ``cp.async.commit_group``, ``cp.async.wait_group``; CUDA's pipeline
primitives). What the issuing thread itself does with the bytes before its wait is not decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from cuda_lsp.ir.program import AwaitCopies
from cuda_lsp.model import Mode, Site
from cuda_lsp.static.masks import Mask
from cuda_lsp.static.memory_steps import record
from cuda_lsp.static.trace import Access, spread_out
from cuda_lsp.static.values import Address, Data, Flags, identity

if TYPE_CHECKING:
    from cuda_lsp.static.machine import Machine

Groups = NDArray[np.int64]


@define(eq=False)
class _InFlight:
    """One execution of one side of a copy. ``group``: its number in each lane, -1 before the commit."""

    site: Site
    address: Address
    mode: Mode
    size: int
    mask: Mask
    group: Groups


@define(eq=False)
class Copies:
    """The copies that are under way in one execution. ``groups``: how many each lane has committed."""

    groups: Groups
    open: list[_InFlight] = field(factory=list[_InFlight])

    def issue(
        self, machine: Machine, site: Site, address: Address, mode: Mode, size: int, mask: Mask
    ) -> None:
        """A copy begins; its first access has just been recorded."""
        group = np.full(mask.may.shape, -1, np.int64)
        self.open.append(_InFlight(site, address, mode, size, mask, group))

    def commit(self, machine: Machine, site: Site, mask: Mask) -> None:
        """What the lanes of ``mask`` have issued since their last commit becomes a group."""
        if not mask.sure:
            machine.trace.not_decided(_line(site, "commits copies under a condition that depends on data"))
        for copy in self.open:
            copy.group = np.where((copy.group < 0) & mask.may, self.groups, copy.group)
        self.groups = self.groups + mask.may.astype(np.int64)

    def wait(self, machine: Machine, s: AwaitCopies, mask: Mask) -> None:
        """Complete what the wait covers in the lanes that surely execute it."""
        allowed = 0 if s.pending is None else machine.eval.scalar(s.pending)
        if not isinstance(allowed, int):
            machine.trace.not_decided(_line(s.site, "waits for a number of copies that is not known"))
            return
        left: list[_InFlight] = []
        for copy in self.open:
            covered = (copy.group >= 0) & (copy.group < self.groups - allowed) | (s.pending is None)
            done: Flags = np.asarray(mask.must & covered)
            if not done.any():
                left.append(copy)
                continue
            may: Flags = copy.mask.may & ~done
            if may.any():
                must = may if copy.mask.sure else copy.mask.must & ~done
                copy.mask = evolve(copy.mask, may=may, must=must, given=None)
                left.append(copy)
        self.open = left

    def pass_barrier(self, machine: Machine) -> None:
        """What is under way goes on behind a barrier."""
        for copy in self.open:
            record(machine, copy.site, copy.address, copy.mode, copy.size, copy.mask, copied=True)

    def check_own(self, machine: Machine, a: Access) -> None:
        """An access of bytes that the same thread's copy is moving: nobody knows what it sees."""
        for copy in self.open:
            if copy.address.array is not a.array or not (copy.mode.writes or a.mode.writes):
                continue
            if copy.site is not a.site and _may_touch(copy, a):
                line = copy.site.range.start.line
                what = f"touches {a.array.name} while the copy of line {line} may be under way"
                machine.trace.not_decided(_line(a.site, what))

    def state(self) -> object:
        """Hashable; equal where the same copies are equally far."""
        behind = [(self.groups - c.group).tobytes() for c in self.open]
        where = [(id(c.site), c.mode, identity(c.address.offset), c.mask.may.tobytes()) for c in self.open]
        return tuple(zip(where, behind, strict=True))


def _may_touch(copy: _InFlight, a: Access) -> bool:
    if isinstance(copy.address.offset, Data) or isinstance(a.offset, Data):
        return bool((_by_lane(copy.mask.may) & _by_lane(a.may)).any())
    mine, other = (
        np.reshape(np.where(may, spread_out(offset, may.shape), -(1 << 40)), (-1, may.shape[-1]))
        for offset, may in ((copy.address.offset, copy.mask.may), (a.offset, a.may))
    )
    meet = (mine[:, None] < other + a.size) & (other < mine[:, None] + copy.size) & (mine[:, None] >= 0)
    return bool(meet.any())


def _by_lane(flags: Flags) -> NDArray[Any]:
    return np.asarray(np.reshape(flags, (-1, flags.shape[-1])).any(axis=0))


def _line(site: Site, what: str) -> str:
    return f"line {site.range.start.line}: `{site.text}` {what}"
