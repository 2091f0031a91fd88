"""Global accesses that move more sectors than they need.

A request of one warp is served in 32-byte sectors (CUDA C++ Best Practices Guide, coalesced access to
global memory).  Ideal: the distinct bytes of the warp packed into as few sectors as hold them.  One that
takes no more sectors than if each lane had a place of its own, side by side, is not worth a word: two rows
of threads that read one element each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from cuda_lsp.model import Code, Mode, Site, Space, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.banks import warp_rows
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Flags, Lanes, distinct
from cuda_lsp.static.findings.diagnosis import Diagnosis

SECTOR_BYTES = 32


@frozen(eq=False)
class SectorReport:
    """Sectors of one site's worst warp request against the ideal, and the mean over requests."""

    site: Site
    mode: Mode
    sectors: int
    ideal: int
    mean_sectors: float


def request_sectors(addresses: Lanes, active: Flags, size: int) -> tuple[Lanes, Lanes]:
    """Sectors and ideal sectors of warp requests; inputs ``(requests, lanes)``, outputs ``(requests,)``."""
    sectors = _distinct(addresses, active, size, SECTOR_BYTES)
    packed = _distinct(addresses, active, size, max(size, 1)) * size
    side_by_side = -(-active.sum(axis=1) * size // SECTOR_BYTES)
    ideal = np.maximum(-(-packed // SECTOR_BYTES), 1)
    return sectors, np.where(sectors <= side_by_side, sectors, ideal)


def _distinct(addresses: Lanes, active: Flags, size: int, grain: int) -> Lanes:
    """Distinct ``grain``-byte pieces that each request touches."""
    pieces = -(-size // grain)
    touched = [addresses // grain]
    touched += [(addresses + size - 1) // grain] * (grain > 1 and size > 1)
    touched += [addresses // grain + i for i in range(1, pieces)]
    row = np.arange(len(addresses))[:, None]
    span = int(max(t.max(initial=0) for t in touched)) + 1
    keys = np.concatenate([(row * span + t)[active] for t in touched])
    return np.bincount(distinct(keys) // span, minlength=len(addresses))


def sector_reports(trace: Trace) -> tuple[SectorReport, ...]:
    """One report per global access site, in order of the text; block 0, sampled rounds."""
    by_site: dict[object, tuple[Site, Mode, list[tuple[Lanes, Lanes]]]] = {}
    for a in _global_accesses(trace):
        addresses, active, _ = warp_rows(a, trace.threads, trace.gpu.warp_size)
        if len(addresses) and (addresses >= 0).all() and (addresses < budgets.MOST_ADDRESS).all():
            entry = by_site.setdefault((a.site.range, a.mode), (a.site, a.mode, []))
            entry[2].append(request_sectors(addresses[:1024], active[:1024], a.size))
    reports = [_report(*entry) for entry in by_site.values()]
    return tuple(sorted(reports, key=lambda r: r.site.range.start))


def _report(site: Site, mode: Mode, requests: list[tuple[Lanes, Lanes]]) -> SectorReport:
    sectors = np.concatenate([s for s, _ in requests])
    ideal = np.concatenate([i for _, i in requests])
    worst = int(np.argmax(sectors - ideal))
    return SectorReport(site, mode, int(sectors[worst]), int(ideal[worst]), float(sectors.mean()))


def _global_accesses(trace: Trace) -> Iterator[Access]:
    for path in trace.paths[:1]:
        seen: set[object] = set()
        for a in path.accesses:
            if a.array.space is not Space.GLOBAL or a.array.surface:
                continue
            if not isinstance(a.offset, Data) and not a.mode.atomic:
                key = (a.site.range, a.signature)
                if key not in seen and not a.copied:
                    seen.add(key)
                    yield a
        for load, array, offset, lanes in path.reads.values():
            if array.surface:
                continue
            yield Access(
                load.site, array, Mode.READ, load.type.size, offset, lanes, lanes, (0,), None, 0, (), ()
            )  # fmt: skip


def coalescing_findings(trace: Trace, factor: float = 2.0) -> tuple[Diagnosis, ...]:
    """Sites whose worst warp request needs at least ``factor`` times the ideal sectors."""
    return tuple(
        Diagnosis(
            Code.UNCOALESCED_ACCESS, Status.PROVED,
            f"uncoalesced access: a warp needs {r.sectors} sectors of {SECTOR_BYTES} bytes for "
            f"{r.site.text or 'this access'} instead of {r.ideal}",
            trace.kernel.name, r.site, launch=trace.launch,
        )
        for r in sector_reports(trace)
        if r.sectors >= factor * r.ideal
    )  # fmt: skip
