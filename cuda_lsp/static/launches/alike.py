"""Which of the launches that the source tells are looked at, where they are many.

Launches that differ in nothing that an analysis takes from them are one. Where more are left than there is
time for, those with one block are taken together, with what they have in common: what is proved of that holds
at each of them. Blocks that are still too many are left out, and this is told.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from attrs import evolve

from cuda_lsp.model import Dim3, LaunchConfig
from cuda_lsp.static import budgets


def looked_at(told: Sequence[LaunchConfig]) -> tuple[LaunchConfig, ...]:
    """The launches to analyse, in their order."""
    first: dict[object, LaunchConfig] = {}
    for launch in told:
        first.setdefault(launch.facts, launch)
    different = tuple(first.values())
    if len(different) <= budgets.MOST_LAUNCHES:
        return different
    joined = _by_block(different)
    if len(joined) <= budgets.MOST_LAUNCHES:
        return tuple(joined)
    largest = max(joined, key=lambda launch: launch.threads)
    others = [launch for launch in joined if launch is not largest]
    return (*others[: budgets.MOST_LAUNCHES - 1], largest)


def left_out(told: Sequence[LaunchConfig], launches: Sequence[LaunchConfig]) -> tuple[LaunchConfig, ...]:
    """The launches that the source tells, besides those to analyse; one for each block."""
    known = {launch.block for launch in launches}
    if known.isdisjoint(launch.block for launch in told):
        return ()  # what was asked for, or is assumed, is another question
    return tuple(_by_block([launch for launch in told if launch.block not in known]))


def not_looked_at(told: Sequence[LaunchConfig], launches: Sequence[LaunchConfig]) -> tuple[str, ...]:
    """Why what ``launches`` show is not the whole truth about those that the source tells, for people."""
    more = len(left_out(told, launches))
    return (f"{more} more blocks that the source launches are not looked at",) if more else ()


def _by_block(launches: Sequence[LaunchConfig]) -> list[LaunchConfig]:
    """Those with one block taken together."""
    found: dict[Dim3, list[LaunchConfig]] = {}
    for launch in launches:
        found.setdefault(launch.block, []).append(launch)
    return [functools.reduce(_in_common, several) for several in found.values()]


def _in_common(one: LaunchConfig, other: LaunchConfig) -> LaunchConfig:
    axes = (one.grid or one.grid_axes), (other.grid or other.grid_axes)
    x, y, z = (n if n == m else None for n, m in zip(*axes, strict=True))
    return evolve(
        one,
        grid=one.grid if one.grid == other.grid else None,
        grid_axes=(x, y, z),
        dynamic_shared=one.dynamic_shared if one.dynamic_shared == other.dynamic_shared else None,
        arguments={k: v for k, v in one.arguments.items() if other.arguments.get(k) == v},
        made_axes=one.made_axes & other.made_axes,
    )
