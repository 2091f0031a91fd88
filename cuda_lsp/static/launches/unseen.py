"""Writes that an assumed block does not come by: ``if (blockDim.x > 128) return;`` under a block of 256.

What is proved of a launch that we assumed says nothing of code that only other launches run. Such a write is
seen when another plausible block runs it and shows no race. Nor does it say anything of threads that differ
in a coordinate which all threads of the assumed block have alike (`threadIdx.z` in a row of them).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Expr, Kernel, Var
from cuda_lsp.ir.walk import subexpressions, walk
from cuda_lsp.model import LaunchConfig, SourceRange
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.findings.steps import TELL_THE_LAUNCH
from cuda_lsp.static.launches.alternatives import alternatives
from cuda_lsp.static.launches.coordinates import BLOCK_AXES, BLOCK_EXTENTS, THREAD_AXES, axes_of, has_planes

_COORDINATES = frozenset({*THREAD_AXES, *BLOCK_AXES, ir.Axis.LANE})
Places = Collection[SourceRange]


def unseen_writes(
    kernel: Kernel, launch: LaunchConfig, ran: Places, ordered: Callable[[LaunchConfig], Places]
) -> tuple[str, ...]:
    """Why conditions on the block's extents keep writes from being known, for people; each reason once.

    ``ran``: the writes that some thread does under the assumed ``launch``. ``ordered``: those under another
    one, if it is known not to race.
    """
    if flat := _without_a_coordinate(kernel, launch):
        return flat
    others = alternatives(kernel, launch)
    left = _missing(kernel, ran) if others and _asks_for_extents(kernel) else []
    for other in others:
        if left:
            seen = ordered(other)
            left = [place for place in left if place not in seen]
    extents = ", ".join(map(str, launch.block))
    reason = "line {} is not reached in blocks of ({}), which are only assumed; {}"
    return tuple(dict.fromkeys(reason.format(place.start.line, extents, TELL_THE_LAUNCH) for place in left))


def _without_a_coordinate(kernel: Kernel, launch: LaunchConfig) -> tuple[str, ...]:
    """A coordinate that the kernel asks for is 0 for all threads of the assumed block."""
    axes = axes_of(kernel) - (set[ir.Axis]() if has_planes(kernel) else {ir.Axis.TID_Z})
    flat = [axis for n, axis in zip(launch.block, THREAD_AXES, strict=True) if n == 1 and axis in axes]
    blocks = f"in blocks of ({', '.join(map(str, launch.block))}), which are only assumed"
    return tuple(f"{axis.value} is 0 {blocks}; {TELL_THE_LAUNCH}" for axis in flat)


def _missing(kernel: Kernel, ran: Places) -> list[SourceRange]:
    """Writes on conditions on the block's extents that are not among those that ran."""
    stores = (s for s in walk(kernel.body) if isinstance(s, ir.Store | ir.Atomic | ir.Copy))
    if all(s.site.range in ran for s in stores):
        return []
    return [
        a.site.range
        for a in data_flow(kernel).accesses
        if a.mode.writes and a.arrays and a.guard & frozenset(BLOCK_EXTENTS) and a.site.range not in ran
    ]


def _asks_for_extents(kernel: Kernel) -> bool:
    """Some condition is on the block's extents and no coordinate: the same for all threads of a launch."""
    extents: set[Var] = set()

    def of_extents(e: Expr) -> bool:
        parts = list(subexpressions((e,)))
        axes = {part.axis for part in parts if isinstance(part, ir.Builtin)}
        through = any(isinstance(part, Var) and part in extents for part in parts)
        return not axes & _COORDINATES and (through or not axes.isdisjoint(BLOCK_EXTENTS))

    for s in walk(kernel.body):
        if isinstance(s, ir.Assign) and of_extents(s.value):
            extents.add(s.var)
        elif isinstance(s, ir.If | ir.Loop) and of_extents(s.condition):
            return True
    return False
