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

from cuda_lsp.model import Code, Mode, Site, SourceRange, Space, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.diagnostics.banks import warp_rows
from cuda_lsp.static.execution.trace import Access, Trace
from cuda_lsp.static.execution.values import Data, Flags, Lanes, distinct
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.diagnosis import Diagnosis

SECTOR_BYTES = 32
_MOST = 1024
"""Requests of one access that are looked at."""


@frozen(eq=False)
class SectorReport:
    """Sectors of one site's worst warp request against the ideal, and the mean over requests.

    ``layout``: how the lanes of the worst request lie, for people; ``apart``: the elements from each to the
    next, where that is one number. ``lanes``: how many it has; None: all of the warp.
    """

    site: Site
    mode: Mode
    sectors: int
    ideal: int
    mean_sectors: float
    layout: str
    apart: int | None
    array: str
    lanes: int | None = None

    @property
    def asking(self) -> str:
        """Who needs the sectors."""
        if self.lanes is None:
            return "a warp needs"
        return f"{self.lanes} lanes of a warp need" if self.lanes > 1 else "a lane needs"


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
    by_site: dict[tuple[SourceRange, Mode], list[_Requests]] = {}
    for a in _global_accesses(trace):
        addresses, active, _ = warp_rows(a, trace.threads, trace.gpu.warp_size)
        if len(addresses) and (addresses >= 0).all() and (addresses < budgets.MOST_ADDRESS).all():
            entry = by_site.setdefault((a.site.range, a.mode), [])
            rows, lanes = addresses[:_MOST], active[:_MOST]
            entry.append(
                _Requests(a.site, a.array.name, *request_sectors(rows, lanes, a.size), rows, lanes, a.size)
            )
    reports = [_report(mode, requests) for (_, mode), requests in by_site.items()]
    return tuple(sorted(reports, key=lambda r: r.site.range.start))


@frozen(eq=False)
class _Requests:
    """Of one access: sectors and ideal sectors, byte addresses and active lanes, bytes of a lane."""

    site: Site
    array: str
    sectors: Lanes
    ideal: Lanes
    addresses: Lanes
    active: Flags
    size: int

    @property
    def worst(self) -> int:
        return int(np.argmax(self.sectors - self.ideal))


def _report(mode: Mode, requests: list[_Requests]) -> SectorReport:
    mean = float(np.concatenate([r.sectors for r in requests]).mean())
    worst = max(requests, key=lambda r: int(r.sectors[r.worst] - r.ideal[r.worst]))
    row = worst.worst
    addresses, whole = worst.addresses[row][worst.active[row]], bool(worst.active[row].all())
    apart = np.diff(addresses)
    even = len(apart) > 0 and bool((apart == apart[0]).all())
    return SectorReport(
        worst.site,
        mode,
        int(worst.sectors[row]),
        int(worst.ideal[row]),
        mean,
        _layout(addresses, worst.size, "its lanes" if whole else "they"),
        abs(int(apart[0])) // worst.size if even else None,
        worst.array,
        None if whole else len(addresses),
    )


def _layout(addresses: Lanes, size: int, lanes: str) -> str:
    """``; its lanes are 40 bytes apart``: of the active lanes' addresses; "" where there is no rule."""
    apart = np.diff(addresses)
    if not len(apart):
        return ""
    if (apart == apart[0]).all() and abs(int(apart[0])) > size:
        return f"; {lanes} are {abs(int(apart[0]))} bytes apart"
    ascending = distinct(addresses)
    pieces = int((np.diff(ascending) > size).sum()) + 1
    if 1 < pieces < len(ascending):
        return f"; {lanes} lie in {pieces} rows"
    return "" if pieces > 1 else f"; it begins {int(ascending[0]) % SECTOR_BYTES} bytes into a sector"


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
            f"uncoalesced access: {r.asking} {r.sectors} sectors of {SECTOR_BYTES} bytes for "
            f"{words.accessed(r.site, r.array)} instead of {r.ideal}{r.layout}",
            trace.kernel.name, r.site, launch=trace.launch, apart=r.apart,
        )
        for r in sector_reports(trace)
        if r.sectors >= factor * r.ideal
    )  # fmt: skip
