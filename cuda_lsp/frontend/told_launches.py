"""A kernel program with what launch sites and directives say of how it is launched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import evolve

from cuda_lsp.frontend.directives import KernelDirective
from cuda_lsp.frontend.host.launch_facts import (
    block_of_template,
    common_extents,
    common_facts,
    common_sums,
    common_ties,
    conditions_by_launch,
    conditions_of,
    launched_extents,
    launches_for,
    launches_outside,
    sites_of,
    unread_launch,
    with_own_buffers,
)
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.ir.program import TID, Builtin, Expr, Kernel
from cuda_lsp.ir.walk import expressions, subexpressions
from cuda_lsp.model import Dim3, LaunchConfig, LaunchSource, Site, apart


def with_launches(
    kernel: Kernel,
    source: KernelSource,
    here: tuple[LaunchSite, ...],
    elsewhere: tuple[LaunchSite, ...],
    directive: KernelDirective | None,
) -> Kernel:
    """``here``: the launches of the kernel's file; ``elsewhere``: those of others, of this kernel only."""
    axes = _thread_axes(kernel) if any(site.held_blocks for site in (*here, *elsewhere)) else set[int]()
    here, elsewhere = (tuple(site.with_block_along(axes) for site in part) for part in (here, elsewhere))
    sites = sites_of(source, (*here, *elsewhere))
    own = set(map(id, sites))  # a part of all may seem to be of it, for want of others
    here, elsewhere = (tuple(s for s in part if id(s) in own) for part in (here, elsewhere))
    grid, arguments = common_facts(source, sites)
    known = (*launches_for(source, here, directive), *launches_outside(source, elsewhere, directive))
    launches = _best_told(known)
    beside = () if any(map(_by_sizes, launches)) else tuple(filter(_by_sizes, known))
    separate = [name for name in kernel.behind if any(v.name == apart(name) for v in kernel.params)]
    launches = with_own_buffers(source, sites, launches, separate) if separate else launches
    in_part = launched_extents(source, sites) if all(launch.assumed for launch in launches) else {}
    return evolve(
        kernel,
        launches=launches,
        grid=grid,
        required={**kernel.required, **block_of_template(source), **in_part},
        arguments={**arguments, **(directive.arguments if directive else {})},
        extents=common_extents(source, sites),
        sums=common_sums(source, sites, directive),
        ties=common_ties(source, sites) if directive is None else frozenset(),
        by_sizes=beside if directive is None else (),
        unread=None if directive is not None else unread_launch(source, sites),
    )


def _thread_axes(kernel: Kernel) -> set[int]:
    """Along which axes threads ask where they are in their block."""
    asked = {e.axis for e in subexpressions(expressions(kernel.body)) if isinstance(e, Builtin)}
    return {i for i, axis in enumerate(TID) if axis in asked}


def said_of_launches(
    kernel: Kernel,
    source: KernelSource,
    sites: tuple[LaunchSite, ...],
    common: Collection[str],
    formulas: Mapping[str, Expr],
) -> dict[tuple[Site | None, Dim3], tuple[Expr, ...]]:
    """What holds at single launches of the kernel, besides what all have in ``common``."""
    by_launch = conditions_by_launch(source, sites, kernel.launches)
    return {
        launch: conditions_of((c for c in said if c not in common), kernel, formulas)
        for launch, said in by_launch.items()
    }


def _best_told(known: Sequence[LaunchConfig]) -> tuple[LaunchConfig, ...]:
    """Those that the source tells, here and elsewhere; else those that sizes make, or that are assumed."""
    by_sizes = [launch for launch in known if _by_sizes(launch)]
    told = [launch for launch in known if not _by_sizes(launch)]
    here = [launch for launch in told if launch.source is not LaunchSource.WORKSPACE]
    certain = [launch for launch in told if not launch.assumed]
    return tuple(told if certain else by_sizes or here or told)


def _by_sizes(launch: LaunchConfig) -> bool:
    return launch.source is LaunchSource.SIZES
