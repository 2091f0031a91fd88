"""What each kind of barrier does to the execution's clocks, and who fails to reach it.

Block-level barriers end an interval of every block they complete in; warp-level ones advance the
vector clocks of their lanes; those of some threads, and barrier objects, are in ``split_barriers``.  Cluster
barriers of a kernel that does not tell how many blocks a cluster has are said to be not decided.
"""

from __future__ import annotations

import numpy as np

from cuda_lsp.ir.deciding import deciding
from cuda_lsp.ir.program import Barrier, BarrierPhase, BarrierScope
from cuda_lsp.static import budgets
from cuda_lsp.static.execution.clocks import WarpClock
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.split_barriers import SplitBarriers
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.trace import BarrierEvent, Divergence
from cuda_lsp.static.execution.values import Data, Flags, Lanes
from cuda_lsp.static.findings.partings import only_leavers_miss


def synchronise(machine: Execution, split: SplitBarriers, s: Barrier, mask: Mask) -> None:
    """Execute barrier ``s`` by the lanes of ``mask``."""
    line = s.site.range.start.line
    if not s.assured:
        machine.not_modelled(f"line {line}: whether `{s.site.text}` is a barrier is up to the library")
    if s.scope.of_lanes:
        if s.scope is BarrierScope.TILE and (s.size or 0) > machine.trace.gpu.warp_size:
            machine.not_modelled(f"line {line}: a tile of more than one warp")
        elif machine.warp is not None:
            _warp_level(machine, split, s, mask)
        return
    partial = s.scope is BarrierScope.NAMED and not _of_the_block(machine, s, mask)
    apart = s.scope is BarrierScope.BLOCK and s.phase is not BarrierPhase.SYNC
    if s.scope is BarrierScope.OBJECT or partial or apart:
        if split.step(machine, s, mask):
            _block_level(machine, split, s, mask)
        return
    if s.phase is not BarrierPhase.SYNC:
        machine.not_modelled(f"line {line}: `{s.site.text}` arrives and waits in separate steps")
        if s.phase is BarrierPhase.ARRIVE:
            return
    if s.scope is BarrierScope.CLUSTER and machine.trace.kernel.cluster is None:
        machine.not_modelled(f"line {line}: a cluster barrier orders several blocks")
    _block_level(machine, split, s, mask)


def _of_the_block(machine: Execution, s: Barrier, mask: Mask) -> bool:
    """Whether a named barrier is one of the whole block, which all come to here or who does not misses it."""
    if machine.facts.arrives or not _whole_block(machine, s):
        return False
    return not machine.facts.named_apart or (mask.sure and bool(mask.may.all()))


def _whole_block(machine: Execution, s: Barrier) -> bool:
    if s.count is None:
        return True
    count = machine.eval.scalar(s.count)
    return isinstance(count, int) and count >= machine.trace.threads


def _block_level(machine: Execution, split: SplitBarriers, s: Barrier, mask: Mask) -> None:
    threads, blocks = machine.trace.threads, machine.blocks
    split.settle(machine)
    if mask.may is not machine.everyone.may or not mask.sure:
        _check_divergence(machine, s, mask)
        present = [bool(row.any()) for row in np.reshape(mask.may, (blocks, threads))]
    else:
        present = [True] * blocks
    machine.path.barriers.append(BarrierEvent(s, machine.clock, machine.sequence))
    machine.sequence += 1
    machine.clock = _advanced(machine.clock, present)
    if s.scope in (BarrierScope.CLUSTER, BarrierScope.GRID):
        machine.cluster_clock = _advanced(machine.cluster_clock, present)
        machine.grid_clock += s.scope is BarrierScope.GRID
        _check_blocks(machine, s)


def _advanced(clock: tuple[int, ...], present: list[bool]) -> tuple[int, ...]:
    return tuple([c + p for c, p in zip(clock, present, strict=True)])


def _check_divergence(machine: Execution, s: Barrier, mask: Mask) -> None:
    if len(machine.path.divergences) > budgets.MOST_DIVERGENCES:
        return
    whole, cluster = machine.trace.threads, machine.trace.together  # lanes that meet there
    together = -1 if s.scope is BarrierScope.GRID else cluster if s.scope is BarrierScope.CLUSTER else whole
    for sure in (True, False):
        teams = np.reshape(mask.must if sure else mask.may, (1, -1) if together < 0 else (-1, together))
        others = np.reshape(~mask.may if sure else ~mask.must, teams.shape)
        some = teams.any(axis=1) & others.any(axis=1)
        if not some.any():
            continue
        team = int(np.flatnonzero(some)[0])
        present = int(np.flatnonzero(teams[team])[0])
        left_out = others[team].copy()
        left_out[present] = False
        if not left_out.any():
            continue
        base = team * teams.shape[1]
        absent = base + int(np.flatnonzero(left_out)[0])
        returned = machine.left.get(0)
        exited = returned is not None and bool(returned.may[..., absent].any())
        reason = None if sure else machine.doubt or "a condition that depends on data"
        machine.path.divergences.append(Divergence(s, base + present, absent, exited, reason))
        return


def _check_blocks(machine: Execution, s: Barrier) -> None:
    """Blocks that decide otherwise, by data of theirs, whether they come to a barrier of the grid or cluster.

    A path has all of them decide alike.
    """
    known = machine.path.by_block
    trace, of_cluster = machine.trace, s.scope is BarrierScope.CLUSTER
    alone = machine.blocks < 2 or (of_cluster and trace.together == trace.threads)
    if not known or alone or any(d.barrier is s for d in machine.path.divergences):
        return
    for condition in deciding(machine.facts.kernel.body, s.site.range):
        if id(condition) in known:
            present, absent = 0, machine.trace.threads
            machine.path.divergences.append(Divergence(s, present, absent, False, known[id(condition)]))
            return


def _check_lanes(machine: Execution, clock: WarpClock, s: Barrier, mask: Mask, named: Flags | bool) -> None:
    """Lanes that a barrier of a warp, or of a tile, waits for, and that neither come to it nor have returned.

    ``named``: the lanes of the masks, ``(lanes,)``, True: all. CUDA C++ Programming Guide, ``__syncwarp``:
    each that is named and has not exited must execute it, with the same mask. What is doubtful is told of
    barriers, and not of lane exchanges. Where whole warps come or not, of the lanes that may come none misses
    the others.
    """
    if mask.may is machine.everyone.may and mask.sure:
        return
    if len(machine.path.divergences) > budgets.MOST_DIVERGENCES:
        return
    if _lanes_missing(machine, clock, s, mask.must, named & ~mask.may, sure=True):
        return
    if not mask.sure and not s.implied and not _is_told(machine, s):
        away = named & ~(mask.must if mask.split else mask.may)
        _lanes_missing(machine, clock, s, mask.may, away, sure=False)


def _is_told(machine: Execution, s: Barrier) -> bool:
    return any(d.barrier is s for d in machine.path.divergences)


def _note_doubt(machine: Execution, s: Barrier, mask: Mask) -> None:
    """Lanes may come or not: what follows where they join others again is ordered by it, or is not.

    Not where those who do not come have returned: they do nothing that follows.
    """
    if mask.sure or _is_told(machine, s) or only_leavers_miss(machine.facts.kernel, s.site):
        return
    line, reason = s.site.range.start.line, "data" if mask.doubt is None else mask.doubt.reason
    machine.trace.not_decided(f"line {line}: whether lanes come to `{s.site.text}` depends on {reason}")


def _check_own_lane(machine: Execution, s: Barrier, masks: Lanes, outside: Flags) -> None:
    """Lanes that call with a mask which leaves themselves out.

    That is undefined: PTX ISA, ``bar.warp.sync``, ``vote.sync``, ``shfl.sync``. An H200 ended such a kernel.
    """
    if not outside.any() or _is_told(machine, s):
        return
    first = int(np.flatnonzero(outside)[0])
    number = first % machine.trace.threads % machine.trace.gpu.warp_size
    why = f"lane {number} calls {s.site.text} with mask {int(masks[first]):#x}, which leaves it out: "
    why += "what follows is undefined"
    machine.path.divergences.append(Divergence(s, first, first, False, None, why))


def _lanes_missing(
    machine: Execution, clock: WarpClock, s: Barrier, there: Flags, away: Flags, *, sure: bool
) -> bool:
    """Notes a lane that is away, and has not returned, of the warp, or tile, of one that is there.

    Whether there is any.
    """
    returned = machine.left.get(0)
    if returned is not None:
        away = away & ~(returned.may if sure else returned.must)
    if not away.any():
        return False
    together = s.size if s.scope is BarrierScope.TILE and s.size else clock.warp_size
    warp = clock.rows(np.arange(machine.trace.lanes)) // together
    for absent in (int(n) for n in np.flatnonzero(np.isin(warp, warp[there]) & away)):
        present = np.flatnonzero(there & (warp == warp[absent]))
        present = present[present != absent]
        if present.size:
            reason = None if sure else machine.doubt or "a condition that depends on data"
            machine.path.divergences.append(Divergence(s, int(present[0]), absent, False, reason))
            return True
    return False


def _warp_level(machine: Execution, split: SplitBarriers, s: Barrier, mask: Mask) -> None:
    clock = machine.warp
    if clock is None or mask.may.ndim != 1:
        return
    executing = mask.may
    group: Lanes = np.zeros(machine.trace.lanes, np.int64)
    lane = np.arange(machine.trace.lanes) % machine.trace.threads % machine.trace.gpu.warp_size
    name: object = None
    if s.scope is BarrierScope.TILE and s.size:
        group, name = lane // s.size, s.size
        _check_lanes(machine, clock, s, mask, True)
    elif s.scope is BarrierScope.WARP and s.mask is not None:
        members = machine.eval.scalar(s.mask)
        if isinstance(members, Data):
            # `__activemask()` and masks from votes: the executing lanes, as their authors mean them
            line = s.site.range.start.line
            machine.not_modelled(f"line {line}: the lane mask of `{s.site.text}` is data")
        else:
            group = np.broadcast_to(np.asarray(members).astype(np.int64) & 0xFFFFFFFF, lane.shape)
            named = (group >> lane & 1).astype(bool)
            executing = executing & named
            name = members if isinstance(members, int) else id(group)
            _check_lanes(machine, clock, s, mask, named)
            _check_own_lane(machine, s, group, mask.must & ~named)
    elif s.scope is BarrierScope.WARP:
        _check_lanes(machine, clock, s, mask, True)
    key = (machine.tracked_sequence, id(mask.may), s.scope, name)
    if key == machine.synced:  # nothing happened since the same lanes last met
        return
    machine.synced = key
    _note_doubt(machine, s, mask)
    split.meet(machine, executing, group, s)
    machine.warp = clock.synchronised(executing, group)
    machine.sequence += 1
