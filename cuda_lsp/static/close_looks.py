"""What somebody asks about one place of an open file: its banks as a picture, what its barrier orders.

Kernels are executed again for it; nothing here is on the keystroke path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.config import Settings
from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Barrier, Kernel
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import KernelReport, LaunchConfig, Position, Site, SourceRange
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.diagnostics.banks import bank_pictures
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import BarrierEvent, Budget, Trace
from cuda_lsp.static.launches.arguments import sample
from cuda_lsp.wavefronts import WarpPicture

_MS = 1000.0  # of work; somebody waits for it, but not at a cursor
_TOLD = 6  # pairs of a barrier
_NEVER = 1 << 62
_LOOKS = 8  # at kernels under launches, for one barrier

Launched = tuple[str, Sequence[LaunchConfig]]
"""A kernel's name and its launches."""


@frozen
class BarrierRole:
    """``orders``: pairs of accesses that race without it, the first few of ``count``.

    ``decided``: that is all there is, under these launches and for all arguments. ``interval``: what it ends,
    from 1, where it is executed first.
    """

    barrier: Site
    orders: tuple[tuple[Site, Site], ...]
    count: int
    decided: bool
    interval: int
    launches: tuple[LaunchConfig, ...]


def pictures(path: Path, report: KernelReport, line: int, analyzer: Analyzer) -> tuple[WarpPicture, ...]:
    """The dearest instruction of each shared-memory access on a line (from 1) of a kernel."""
    trace = _trace(path, report, analyzer)
    return bank_pictures(trace, line) if trace is not None else ()


def pictures_of_text(
    path: Path, text: str, kernel: str, line: int, analyzer: Analyzer
) -> tuple[WarpPicture, ...]:
    """The same of a text that the file does not have; in an analysis of its own, the first tier alone."""
    own = Analyzer(analyzer.settings_of(path))
    try:
        report = own.check(path, text, solver=False)
        found = next((k for k in report.kernels if k.name == kernel), None)
        return pictures(path, found, line, own) if found is not None else ()
    finally:
        own.shutdown()


def interval_ends(path: Path, reports: Sequence[KernelReport], analyzer: Analyzer) -> dict[SourceRange, int]:
    """Which barrier interval of its block each barrier of these kernels ends, from 1, executed first."""
    ends: dict[SourceRange, int] = {}
    for trace in (_trace(path, report, analyzer) for report in reports[:_LOOKS]):
        for event in (event for p in trace.paths for event in p.barriers) if trace is not None else ():
            place = event.barrier.site.range
            if place.path == path:
                ends[place] = min(ends.get(place, _NEVER), _interval(event))
    return ends


def barrier_role(
    path: Path, kernels: Sequence[Launched], position: Position, analyzer: Analyzer
) -> BarrierRole | None:
    """What the barrier at a position orders in any of these kernels, under any of their launches.

    ``kernels``: names and launches. None: there is no barrier of the whole block.
    """
    known = ((analyzer.kernel(path, name), launches) for name, launches in kernels)
    there = [
        (k, launch) for k, launches in known if k and _has_barrier(k, path, position) for launch in launches
    ]
    gpu = analyzer.settings_of(path).gpu
    looks = [look for k, launch in there[:_LOOKS] if (look := _look(k, launch, gpu, path, position))]
    if not looks:
        return None
    pairs = {key: pair for look in looks for key, pair in look.pairs.items()}
    ordered = [(a, b) if a.range <= b.range else (b, a) for a, b in pairs.values()]
    decided = all(look.decided for look in looks) and len(looks) == len(there)
    launches = tuple(launch for _, launch in there)
    interval = min(look.interval for look in looks)
    return BarrierRole(looks[0].barrier, tuple(ordered[:_TOLD]), len(ordered), decided, interval, launches)


def _has_barrier(kernel: Kernel, path: Path, position: Position) -> bool:
    barriers = (s for s in walk(kernel.body) if isinstance(s, Barrier))
    return any(_is_at(barrier.site, path, position) for barrier in barriers)


def _is_at(site: Site, path: Path, position: Position) -> bool:
    return site.range.path == path and site.range.start <= position <= site.range.end


@frozen
class _Look:
    """One kernel under one launch: what races without a barrier, and whether that is all."""

    barrier: Site
    pairs: Mapping[tuple[object, ...], tuple[Site, Site]]
    decided: bool
    interval: int


def _look(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, path: Path, position: Position
) -> _Look | None:
    """For all arguments; where they leave something open, with natural ones too."""
    found = _executed(kernel, launch, launch.arguments, gpu, path, position)
    natural = sample(kernel, launch)
    if natural is None or (found is not None and found.decided):
        return found
    other = _executed(kernel, launch, {**natural, **launch.arguments}, gpu, path, position)
    if other is None:
        return found
    return evolve(other, pairs={**(found.pairs if found else other.pairs), **other.pairs}, decided=False)


def _executed(
    kernel: Kernel,
    launch: LaunchConfig,
    arguments: Mapping[str, int],
    gpu: GpuModel,
    path: Path,
    position: Position,
) -> _Look | None:
    trace = execute(kernel, launch, arguments, gpu, Budget(milliseconds=_MS))
    events = [e for p in trace.paths for e in p.barriers if _is_at(e.barrier.site, path, position)]
    if not events:
        return None
    site = events[0].barrier.site
    before = {race.key for race in find_races(trace)}
    without = [race for race in find_races(trace, merged_barrier=site) if race.key not in before]
    pairs = {race.key: (race.first.site, race.second.site) for race in without}
    return _Look(site, pairs, not trace.undecided and trace.whole, min(map(_interval, events)))


def _interval(event: BarrierEvent) -> int:
    """That it ends, from 1."""
    return max(event.clock, default=0) + 1


def _trace(path: Path, report: KernelReport, analyzer: Analyzer) -> Trace | None:
    kernel = analyzer.kernel(path, report.name)
    if kernel is None or not report.launches:
        return None
    settings: Settings = analyzer.settings_of(path)
    launch = report.launches[0]
    arguments = {**(sample(kernel, launch) or {}), **launch.arguments}
    return execute(kernel, launch, arguments, settings.gpu, Budget(milliseconds=_MS))
