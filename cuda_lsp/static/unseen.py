"""Writes that an assumed block does not come by: ``if (blockDim.x > 128) return;`` under a block of 256.

What is proved of a launch that we assumed says nothing of code that only other launches run. Such a write is
seen when another plausible block runs it and shows no race.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cuda_lsp.ir.program import Assign, Atomic, Axis, Builtin, Copy, Expr, If, Kernel, Loop, Store, Var
from cuda_lsp.ir.walk import operands, walk
from cuda_lsp.model import LaunchConfig, SourceRange
from cuda_lsp.static.asserted import BLOCK_EXTENTS
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.execution.trace import Trace

_COORDINATES = frozenset({Axis.TID_X, Axis.TID_Y, Axis.TID_Z, Axis.BID_X, Axis.BID_Y, Axis.BID_Z, Axis.LANE})


def unseen_writes(kernel: Kernel, trace: Trace) -> Mapping[SourceRange, str]:
    """Writes that no thread of the trace does, on conditions on the block's extents; and why, for people."""
    if not _asks_for_extents(kernel):
        return {}
    ran = written(trace)
    stores = (s.site.range for s in walk(kernel.body) if isinstance(s, Store | Atomic | Copy))
    if all(place in ran for place in stores):
        return {}
    extents = set(BLOCK_EXTENTS)
    return {
        a.site.range: _reason(a.site.range, trace.launch)
        for a in data_flow(kernel).accesses
        if a.mode.writes and a.arrays and extents & a.guard and a.site.range not in ran
    }


def _asks_for_extents(kernel: Kernel) -> bool:
    """Some condition is on the block's extents and no coordinate: the same for all threads of a launch."""
    extents: set[Var] = set()

    def of_extents(e: Expr) -> bool:
        found = False
        stack = [e]
        while stack:
            node = stack.pop()
            if isinstance(node, Builtin):
                if node.axis in _COORDINATES:
                    return False
                found = found or node.axis in BLOCK_EXTENTS
            elif isinstance(node, Var):
                found = found or node in extents
            else:
                stack.extend(operands(node))
        return found

    for s in walk(kernel.body):
        if isinstance(s, Assign) and of_extents(s.value):
            extents.add(s.var)
        elif isinstance(s, If | Loop) and of_extents(s.condition):
            return True
    return False


def written(trace: Trace) -> set[SourceRange]:
    return {a.site.range for path in trace.paths for a in path.accesses if a.mode.writes}


def _reason(place: SourceRange, launch: LaunchConfig) -> str:
    extents = ", ".join(map(str, launch.block))
    return f"line {place.start.line} is not reached in blocks of ({extents}), which are only assumed"


def still_unseen(unseen: Mapping[SourceRange, str], others: Iterable[Trace]) -> Mapping[SourceRange, str]:
    """What is left when ``others`` are executions that are known not to race."""
    ran = {place for trace in others for place in written(trace)}
    return {place: reason for place, reason in unseen.items() if place not in ran}
