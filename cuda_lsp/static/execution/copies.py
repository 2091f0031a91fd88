"""Asynchronous copies: from where they are issued to the wait that completes them.

A copy may read and write at any time in between, so it counts as an access again behind every barrier that is
passed meanwhile. The copies of a thread since its last commit form a group; a wait leaves at most so many of
its latest groups open (PTX ISA, ``cp.async.commit_group``, ``cp.async.wait_group``; CUDA's pipeline
primitives). Those that are bound to a phase of a barrier object are done when it is complete
(``split_barriers``). What a group of threads copies together is moved by any of them: two of each stand for
all. What the issuing thread itself does with the bytes before its wait is not decided.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from cuda_lsp.ir.program import AwaitCopies, Barrier, BarrierPhase, BarrierScope, Copy
from cuda_lsp.model import Mode, Site
from cuda_lsp.static import budgets
from cuda_lsp.static.execution.lanes import by_lane
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.trace import Access, Trace, spread_out
from cuda_lsp.static.execution.values import Address, Data, Flags, Lanes, distinct, identity

Groups = NDArray[np.int64]


@define(eq=False)
class InFlight:
    """One execution of one side of a copy. ``group``: its number in each lane, -1 before the commit.

    ``access``: as it was first recorded, with ``finishes`` filled in when the copy is bound.
    """

    site: Site
    address: Address
    mode: Mode
    size: int
    mask: Mask
    group: Groups
    finishes: Groups
    team: Lanes | None
    access: Access


@define(eq=False)
class Copies:
    """The copies that are under way in one execution.

    ``groups``: how many each lane has committed. ``touched``: copies that are bound to a phase, and accesses
    of bytes that they move: phases say whether they are done by then.
    """

    trace: Trace
    groups: Groups
    open: list[InFlight] = field(factory=list[InFlight])
    touched: list[tuple[Access, Access]] = field(factory=list[tuple[Access, Access]])

    def team(self, s: Copy, mask: Mask) -> Lanes | None:
        """The number of the group that each lane copies with; None: alone."""
        if s.team is None:
            return None
        threads, warp = self.trace.threads, self.trace.gpu.warp_size
        lane: Lanes = np.arange(mask.may.shape[-1], dtype=np.int64)
        block: Lanes = lane // threads
        thread: Lanes = lane % threads
        if s.team is BarrierScope.TILE and s.team_size:
            return block * threads + thread // s.team_size
        if s.team in (BarrierScope.COALESCED, BarrierScope.WARP):
            return block * threads + thread // warp
        return block

    def commit(self, site: Site, mask: Mask) -> None:
        """What the lanes of ``mask`` have issued since their last commit becomes a group."""
        if not mask.sure:
            self.trace.not_decided(_line(site, "commits copies under a condition that depends on data"))
        for copy in self.open:
            copy.group = np.where((copy.group < 0) & mask.may, self.groups, copy.group)
        self.groups = self.groups + mask.may.astype(np.int64)

    def wait(self, s: AwaitCopies, allowed: int | Lanes | Data, mask: Mask) -> None:
        """Complete what all but ``allowed`` groups have under way, in the lanes that surely execute ``s``."""
        if isinstance(allowed, Data):
            self.trace.not_decided(_line(s.site, "waits for a number of copies that is not known"))
            return
        if (np.broadcast_to(allowed, mask.may.shape)[mask.may] < 0).any():
            self.trace.not_decided(_line(s.site, "waits for a stage that was not committed"))
            return
        allowed = min(allowed, budgets.MOST_COPIES) if isinstance(allowed, int) else allowed
        for copy in list(self.open):
            covered = (copy.group >= 0) & (copy.group < self.groups - allowed) | (s.pending is None)
            self._done(copy, np.asarray(mask.must & covered))

    def _done(self, copy: InFlight, done: Flags) -> None:
        """The copy is complete in these lanes."""
        if not done.any():
            return
        may: Flags = copy.mask.may & ~done
        if may.any():
            must = may if copy.mask.sure else copy.mask.must & ~done
            copy.mask = evolve(copy.mask, may=may, must=must, given=None)
        else:
            self.open.remove(copy)

    def bind(self, lanes: Lanes, phases: Lanes) -> None:
        """What each of these lanes has under way is done before its phase is complete."""
        for copy in self.open:
            issued: Flags = np.reshape(copy.mask.may[..., lanes], (-1, len(lanes)))
            bound: Flags = np.asarray(np.any(issued, axis=0)) & (copy.finishes[lanes] < 0)
            copy.finishes[lanes[bound]] = phases[bound]

    def phases(self) -> set[int]:
        """The phases that copies under way are bound to."""
        return {int(p) for copy in self.open for p in distinct(copy.finishes)}

    def complete(self, lanes: slice, phases: set[int]) -> None:
        """Everybody knows that these phases are complete."""
        for copy in list(self.open):
            done = np.zeros(len(copy.finishes), bool)
            done[lanes] = np.isin(copy.finishes[lanes], list(phases))
            self._done(copy, done & copy.mask.may)

    def behind(self, s: Barrier, whole_object: bool) -> Iterator[tuple[InFlight, Mask]]:
        """What goes on behind a barrier, and in which lanes. ``whole_object``: one of the whole block."""
        if s.phase in (BarrierPhase.INIT, BarrierPhase.BIND):
            return
        whole = s.scope.of_blocks or (s.scope is BarrierScope.OBJECT and whole_object)
        for copy in self.open:
            mask = copy.mask
            if not whole and (copy.finishes >= 0).any():  # phases say when these are done
                may: Flags = mask.may & (copy.finishes < 0)
                if not may.any():
                    continue
                mask = evolve(mask, may=may, must=may if mask.sure else mask.must & may, given=None)
            yield copy, mask

    def check_own(self, a: Access) -> None:
        """An access of bytes that the same thread's copy is moving: nobody knows what it sees."""
        for copy in self.open:
            if copy.address.array is not a.array or not (copy.mode.writes or a.mode.writes):
                continue
            if copy.site is a.site or copy.team is not None:
                continue
            if _may_touch(copy, a, copy.finishes < 0):
                self.trace.not_decided(own_access(copy, a))
            elif (copy.finishes >= 0).any() and _may_touch(copy, a, copy.finishes >= 0):
                self.touched.append((copy.access, a))

    def state(self) -> object:
        """Hashable; equal where the same copies are equally far."""
        behind = [(self.groups - c.group).tobytes() for c in self.open]
        where = [(id(c.site), c.mode, identity(c.address.offset), c.mask.may.tobytes()) for c in self.open]
        return tuple(zip(where, behind, strict=True))


def two_of_each(mask: Mask, team: Lanes) -> Mask:
    """The first and the last lane of each group, which stand for any."""
    lanes = np.flatnonzero(by_lane(mask.may))
    chosen = np.zeros(mask.may.shape[-1], bool)
    for order in (lanes, lanes[::-1]):
        _, first = np.unique(team[order], return_index=True)
        chosen[order[first]] = True
    may: Flags = mask.may & chosen
    return evolve(mask, may=may, must=may if mask.sure else mask.must & chosen, given=None)


def _may_touch(copy: InFlight, a: Access, lanes: Flags) -> bool:
    if isinstance(copy.address.offset, Data) or isinstance(a.offset, Data):
        return bool((by_lane(copy.mask.may) & by_lane(a.may) & lanes).any())
    mine, other = (
        np.reshape(np.where(may, spread_out(offset, may.shape), -budgets.MOST_ADDRESS), (-1, may.shape[-1]))
        for offset, may in ((copy.address.offset, copy.mask.may & lanes), (a.offset, a.may))
    )
    meet = (mine[:, None] < other + a.size) & (other < mine[:, None] + copy.size) & (mine[:, None] >= 0)
    return bool(meet.any())


def _line(site: Site, what: str) -> str:
    return f"line {site.range.start.line}: `{site.text}` {what}"


def own_access(copy: InFlight | Access, a: Access) -> str:
    """A thread touches what its own copy may still move, for people."""
    what = f"touches {a.array.name} while the copy of line {copy.site.range.start.line} may be under way"
    return f"line {a.site.range.start.line}: `{a.site.text}` {what}"
