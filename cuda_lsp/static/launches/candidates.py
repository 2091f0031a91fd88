"""The launches that a kernel is analysed under: a list of sources, the first that answers has the word.

The order is that of ``docs/semantics.md``. What the source text or the user fixes is believed; what comes
from the kernel's own shape, or from nowhere, is assumed (``LaunchConfig.assumed``), and then
``second_opinion`` asks what other launches show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.hardware import accepts
from cuda_lsp.ir.program import Axis, Kernel
from cuda_lsp.model import WARP_SIZE, Dim3, LaunchConfig, LaunchSource
from cuda_lsp.static.launches import blocks
from cuda_lsp.static.launches.alike import looked_at
from cuda_lsp.static.launches.asserted import asserted_extents, with_extents
from cuda_lsp.static.launches.coordinates import axes_of
from cuda_lsp.static.launches.strides import block_strides

_USUAL = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

Source = Callable[[Kernel, Settings], Sequence[LaunchConfig]]
"""The launches of a kernel by one source, the one to show first; none: it does not tell."""


def launches_of(kernel: Kernel, settings: Settings) -> tuple[LaunchConfig, ...]:
    """The launches to analyse, the one to show first; never empty. None that the target refuses."""
    told = (source(kernel, settings) for source in SOURCES)
    answers = ([launch for launch in launches if accepts(settings.gpu, launch)] for launches in told)
    found = next(filter(None, answers), _hint(kernel, settings, (WARP_SIZE, 1, 1), LaunchSource.DEFAULT))
    return tuple(passing_extents(kernel, launch) for launch in found)


def passing_extents(kernel: Kernel, launch: LaunchConfig) -> LaunchConfig:
    """The launch with the arguments by which every launch passes the block's extents."""
    if not kernel.extents:
        return launch
    passed = {name: launch.block[axis] for name, axis in kernel.extents.items()}
    return evolve(launch, arguments={**launch.arguments, **passed})


def _settings(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    """``--block-dim``, with what a launch of the source tells besides."""
    if not settings.block_dim:
        return ()
    known = kernel.launches[0] if kernel.launches else None
    arguments, shared = (known.arguments, known.dynamic_shared) if known else (kernel.arguments, None)
    source = LaunchSource.COMMAND_LINE
    return (LaunchConfig(settings.block_dim, settings.grid_dim, shared, source, arguments),)


def _source_text(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    """Directive and launch sites, best first; each different launch once."""
    chosen = looked_at(kernel.launches)
    return [evolve(k, grid=settings.grid_dim) for k in chosen] if settings.grid_dim else chosen


def _launch_bounds(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    bounds = kernel.bounds
    return _hint(kernel, settings, blocks.folded(kernel, (bounds.max_threads, 1, 1)) if bounds else None)


def _collectives(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    return _hint(kernel, settings, blocks.of_collectives(kernel))


def _assertions(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    asserted = asserted_extents(kernel)
    block = blocks.of_shared_arrays(kernel) or blocks.folded(kernel, settings.default_block)
    fitting = with_extents(block, asserted, axes_of(kernel)) if asserted else None
    return _hint(kernel, settings, fitting)


def _template(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    flat = not axes_of(kernel) & {Axis.TID_Y, Axis.TID_Z}
    return _hint(kernel, settings, blocks.of_template(kernel) if flat else None)


def _shared_arrays(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    return _hint(kernel, settings, blocks.of_shared_arrays(kernel))


def _strides(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    """The default block, no larger than the kernel counts on, where that is an extent that blocks have."""
    strides = block_strides(kernel)
    usual = {axis: n for axis, n in strides.items() if n in _USUAL and (n >= WARP_SIZE or len(strides) > 1)}
    block = blocks.capped(blocks.folded(kernel, settings.default_block), usual)
    return _hint(kernel, settings, block if usual else None)


def _default(kernel: Kernel, settings: Settings) -> Sequence[LaunchConfig]:
    return _hint(kernel, settings, blocks.folded(kernel, settings.default_block), LaunchSource.DEFAULT)


def _hint(
    kernel: Kernel, settings: Settings, block: Dim3 | None, source: LaunchSource = LaunchSource.BOUNDS
) -> Sequence[LaunchConfig]:
    """The assumed launch with this block; none without one."""
    if not block:
        return ()
    launch = LaunchConfig(block, settings.grid_dim or kernel.grid, source=source, arguments=kernel.arguments)
    return (launch if accepts(settings.gpu, launch) else evolve(launch, grid=None),)


SOURCES: tuple[Source, ...] = (
    _settings,
    _source_text,
    _launch_bounds,
    _collectives,
    _assertions,
    _template,
    _shared_arrays,
    _strides,
    _default,
)
