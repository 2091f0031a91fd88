"""Barriers that not all threads of a block reach, and barriers that order nothing.

Divergence: CUDA C++ Programming Guide, synchronization functions: ``__syncthreads()`` in conditional code
needs a condition that is the same across the block.  A barrier is redundant when the kernel is race-free
under this launch with it and still is without it.
"""

from __future__ import annotations

from cuda_lsp.model import Code, Finding, Site, Status
from cuda_lsp.static import messages
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.trace import Divergence, Trace


def barrier_findings(trace: Trace) -> tuple[Finding, ...]:
    """One ``barrier-divergence`` per barrier in the text, surest first."""
    best: dict[object, Divergence] = {}
    for path in trace.paths:
        for d in path.divergences:
            key = d.barrier.site.range
            if key not in best or (best[key].reason is not None and d.reason is None):
                best[key] = d
    return tuple(_finding(trace, d) for d in best.values())


def _finding(trace: Trace, d: Divergence) -> Finding:
    here, there = messages.thread(trace.thread(d.present)), messages.thread(trace.thread(d.absent))
    name = d.barrier.site.text or "this barrier"
    does = "has returned before it" if d.exited else "does not"
    if d.why is not None:
        text = d.why
    elif d.reason is None:
        text = f"{name} is not reached by all threads of the block: {here} reaches it, {there} {does}"
    else:
        text = f"{name} may not be reached by all threads of the block: it depends on {d.reason}"
    return Finding(
        code=Code.BARRIER_DIVERGENCE,
        status=Status.PROVED if d.reason is None else Status.POSSIBLE,
        message=text,
        kernel=trace.kernel.name,
        site=d.barrier.site,
        reason=d.reason,
        launch=trace.launch,
    )


def redundant_barriers(trace: Trace) -> tuple[Finding, ...]:
    """Hints for barriers whose removal leaves the trace race-free; none when it already races."""
    if find_races(trace) or trace.undecided:
        return ()
    sites: dict[object, Site] = {}
    for path in trace.paths:
        sites.update({e.barrier.site.range: e.barrier.site for e in path.barriers})
    findings: list[Finding] = []
    for site in sites.values():
        if find_races(trace, merged_barrier=site):
            continue
        name = site.text or "this barrier"
        text = f"{name} orders nothing under this launch: without it no two threads race"
        findings.append(
            Finding(
                code=Code.REDUNDANT_BARRIER,
                status=Status.CONDITIONAL,
                message=text,
                kernel=trace.kernel.name,
                site=site,
                launch=trace.launch,
            )
        )
    return tuple(findings)
