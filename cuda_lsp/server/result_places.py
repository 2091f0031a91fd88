"""Which text a dynamic result belongs to, and where its places are in a text that says the same.

A result depends on its kernel's text, on the text outside kernels (empty lines and white space at the ends
of lines do not count), on the launch it ran under, and on how the file is compiled: all that is its key.
Kernel and surroundings may have moved apart, so each line outside kernels is followed by its number among the
lines that count. Headers are compared by whoever keeps the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from attrs import evolve, frozen

from cuda_lsp.config import Settings
from cuda_lsp.confirm import compile_options
from cuda_lsp.dynamic.job import CheckResult
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import FileReport, KernelReport, Position, SourceRange


@frozen
class Layout:
    """Where a kernel and the lines outside all kernels stand; numbers from 1."""

    start: int
    end: int
    outside: tuple[int, ...]

    def to(self, other: Layout) -> Callable[[int], int]:
        """From lines of this text to those of another with the same key."""
        moved = dict(zip(self.outside, other.outside, strict=True))
        down = other.start - self.start
        return lambda line: line + down if self.start <= line <= self.end else moved.get(line, line + down)


def belongings(report: FileReport, text: str, settings: Settings) -> dict[str, tuple[str, Layout]]:
    """For each kernel a key of all that its behaviour can depend on in the file, and its layout."""
    lines = text.splitlines()
    inside = {n for k in report.kernels for n in range(k.range.start.line, k.range.end.line + 1)}
    outside = tuple(n for n, line in enumerate(lines, 1) if n not in inside and line.strip())
    around = "\n".join(lines[n - 1].rstrip() for n in outside)
    shared = (str(report.path), around, repr(compile_options(settings)), settings.arch)
    found: dict[str, tuple[str, Layout]] = {}
    for kernel in report.kernels:
        start, end = kernel.range.start.line, kernel.range.end.line
        own = "\n".join(lines[start - 1 : end])
        parts = (*shared, kernel.name, own, _launch(kernel))
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
        found[kernel.name] = key, Layout(start, end, outside)
    return found


def _launch(kernel: KernelReport) -> str:
    """The launch that a check runs; where it stands does not count."""
    return repr([
        (launch.block, launch.grid, launch.dynamic_shared, sorted(launch.arguments.items()))
        for launch in kernel.launches[:1]
    ])  # fmt: skip


def relocated(result: CheckResult, report: FileReport, line: Callable[[int], int]) -> CheckResult:
    """The result with its places in the report's file where the same text stands now."""
    here = report.path.absolute()

    def now(extent: SourceRange) -> SourceRange:
        if extent.path != here:
            return extent
        start, end = (Position(line(place.line), place.column) for place in (extent.start, extent.end))
        return SourceRange(here, start, end)

    def moved(site: PtxSite) -> PtxSite:
        place = site.site
        return site if place is None else evolve(site, site=evolve(place, range=now(place.range)))

    return evolve(
        result,
        sites=tuple(map(moved, result.sites)),
        bank_sites=tuple(map(moved, result.bank_sites)),
        errors=tuple(evolve(e, range=now(e.range)) if e.range else e for e in result.errors),
    )
