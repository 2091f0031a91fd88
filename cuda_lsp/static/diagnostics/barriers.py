"""Barriers that not all threads of a block, or of the grid, reach, and barriers that order nothing.

Divergence: CUDA C++ Programming Guide, synchronization functions: ``__syncthreads()`` in conditional code
needs a condition that is the same across the block.  A barrier is redundant when the kernel is race-free
under this launch with it and still is without it.
"""

from __future__ import annotations

from cuda_lsp.ir.program import BarrierScope
from cuda_lsp.model import Code, Site, Status
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.trace import Divergence, Trace
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Needs, OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.partings import as_decided, decided_by, have_returned, only_leavers_miss

_OF_BLOCKS = (BarrierScope.CLUSTER, BarrierScope.GRID)
"""What they order between blocks nobody pretends to be absent."""
_WHOM = {
    BarrierScope.GRID: "of the grid",
    BarrierScope.CLUSTER: "of the cluster",
    BarrierScope.WARP: "that its mask names",
    BarrierScope.TILE: "of the tile",
}


def barrier_findings(trace: Trace) -> tuple[Diagnosis, ...]:
    """One ``barrier-divergence`` per barrier in the text, surest first."""
    best: dict[object, Divergence] = {}
    for path in trace.paths:
        for d in path.divergences:
            key = d.barrier.site.range
            if key not in best or (best[key].reason is not None and d.reason is None):
                best[key] = d
    return tuple(_diagnosis(trace, d) for d in best.values() if not _of_leavers(trace, d))


def _of_leavers(trace: Trace, d: Divergence) -> bool:
    """Lanes may miss a barrier of their warp, which waits for none that has returned: no other can."""
    doubtful = d.barrier.scope.of_lanes and d.reason is not None
    return doubtful and only_leavers_miss(trace.kernel, d.barrier.site)


def _diagnosis(trace: Trace, d: Divergence) -> Diagnosis:
    lanes = (d.present, d.absent)
    blocks = {trace.block(lane) for lane in lanes}
    here, there = (words.thread(trace.thread(n), trace.block(n) if len(blocks) > 1 else None) for n in lanes)
    whom = _WHOM.get(d.barrier.scope, "of the block")
    name = d.barrier.site.text or "this barrier"
    returned = d.exited and have_returned(trace.kernel, d.barrier.scope, d.barrier.site)
    does = "has returned before it" if d.exited else "does not"
    if d.why is not None:
        text = d.why
    elif d.reason is None:
        text = f"{name} is not reached by all threads {whom}: {here} reaches it, {there} {does}"
        if returned:
            text = f"{here} reaches `{name}` and {there} has returned before it"
    else:
        text = f"{name} may not be reached by all threads {whom}: it depends on {d.reason}"
    if d.why is None:
        text += as_decided(trace.kernel, d.barrier.site)
    found = Diagnosis(
        Code.BARRIER_DIVERGENCE, Status.PROVED if d.reason is None else Status.POSSIBLE, text,
        trace.kernel.name, d.barrier.site, launch=trace.launch,
        doubt=None if d.reason is None else OnData(d.reason),
        parted=decided_by(trace.kernel, d.barrier.site) if d.why is None else (),
    )  # fmt: skip
    return found.needing(Needs.RETURNED) if returned and d.reason is None else found


def redundant_barriers(trace: Trace) -> tuple[Diagnosis, ...]:
    """Hints for barriers whose removal leaves the trace race-free; none when it already races."""
    if find_races(trace) or trace.undecided:
        return ()
    sites: dict[object, Site] = {}
    for path in trace.paths:
        here = (e.barrier for e in path.barriers if e.barrier.scope not in _OF_BLOCKS)
        sites.update({barrier.site.range: barrier.site for barrier in here})
    return tuple(
        Diagnosis(
            Code.REDUNDANT_BARRIER, Status.CONDITIONAL,
            f"{site.text or 'this barrier'} orders nothing under this launch: without it no two threads race",
            trace.kernel.name, site, launch=trace.launch,
        )
        for site in sites.values()
        if not find_races(trace, merged_barrier=site)
    )  # fmt: skip
