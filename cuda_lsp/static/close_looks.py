"""What somebody asks about one place of an open file: its banks as a picture, what its barrier orders.

Kernels are executed again for it, under their first launch with natural arguments; nothing here is on the
keystroke path.
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from cuda_lsp.config import Settings
from cuda_lsp.model import KernelReport, Position, Site
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.diagnostics.banks import bank_pictures
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Budget, Trace
from cuda_lsp.static.launches.arguments import sample
from cuda_lsp.wavefronts import WarpPicture

_MS = 1000.0  # of work; somebody waits for it, but not at a cursor
_TOLD = 6  # pairs of a barrier


@frozen
class BarrierRole:
    """``orders``: pairs of accesses that race without it, the first few of ``count``.

    ``decided``: that is all there is, under that launch. ``interval``: what it ends, from 1.
    """

    barrier: Site
    orders: tuple[tuple[Site, Site], ...]
    count: int
    decided: bool
    interval: int


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


def barrier_role(
    path: Path, report: KernelReport, position: Position, analyzer: Analyzer
) -> BarrierRole | None:
    """What the barrier at a position of a kernel orders; None: there is none of the whole block."""
    trace = _trace(path, report, analyzer)
    if trace is None:
        return None
    events = [e for p in trace.paths for e in p.barriers]
    there = [e for e in events if e.barrier.site.range.start <= position <= e.barrier.site.range.end]
    if not there:
        return None
    site = there[0].barrier.site
    before = {race.key for race in find_races(trace)}
    without = [r for r in find_races(trace, merged_barrier=site) if r.key not in before]
    pairs = [(race.first.site, race.second.site) for race in without]
    ordered = [(a, b) if a.range <= b.range else (b, a) for a, b in pairs]
    number = min(max(e.clock, default=0) for e in there) + 1
    decided = not trace.undecided and trace.whole
    return BarrierRole(site, tuple(ordered[:_TOLD]), len(ordered), decided, number)


def _trace(path: Path, report: KernelReport, analyzer: Analyzer) -> Trace | None:
    kernel = analyzer.kernel(path, report.name)
    if kernel is None or not report.launches:
        return None
    settings: Settings = analyzer.settings_of(path)
    launch = report.launches[0]
    arguments = {**(sample(kernel, launch) or {}), **launch.arguments}
    return execute(kernel, launch, arguments, settings.gpu, Budget(milliseconds=_MS))
