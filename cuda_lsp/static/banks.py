"""Bank conflicts: the wavefronts of every shared-memory access site, every warp, every execution.

The cost of one warp instruction is ``cuda_lsp.wavefronts`` (measured on hardware); here the trace is cut
into warp instructions and summed up per source site.  Accesses at addresses that depend on data have
no report.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from cuda_lsp.model import BankReport, Code, Finding, GpuModel, Mode, Site, Space, Status
from cuda_lsp.static import messages
from cuda_lsp.static.trace import Access, Trace, spread_out
from cuda_lsp.static.values import Data, Flags, Lanes
from cuda_lsp.wavefronts import warp_wavefronts

_MAX_WARPS = 1 << 15  # warp instructions of one site that are counted


@frozen
class BankThresholds:
    """When a conflict is worth a finding: extra wavefronts of the worst warp, lanes on one atomic address."""

    extra_wavefronts: int = 1
    atomic_lanes: int = 33  # 33: never; atomics on one address serialise by their nature


@frozen(eq=False)
class SiteBanks:
    """The report of one access site. ``sure``: some warp surely executes it."""

    site: Site
    mode: Mode
    report: BankReport
    sure: bool
    access: Access


def bank_reports(trace: Trace) -> tuple[SiteBanks, ...]:
    """One report per shared-memory site and mode, in order of the text; block 0 only."""
    by_site: dict[object, dict[object, Access]] = {}
    for path in trace.paths:
        for a in path.accesses:
            if a.array.space is Space.SHARED and not isinstance(a.offset, Data) and not a.copied:
                by_site.setdefault((a.site.range, a.mode), {})[a.signature[:5], a.size] = a
    reports = [_report(trace, list(accesses.values())) for accesses in by_site.values()]
    return tuple(sorted(reports, key=lambda r: r.site.range.start))


def bank_findings(trace: Trace, thresholds: BankThresholds | None = None) -> tuple[Finding, ...]:
    """A finding for each site whose worst warp needs more wavefronts than the ideal."""
    limits = thresholds or BankThresholds()
    findings: list[Finding] = []
    for banks in bank_reports(trace):
        report = banks.report
        extra = report.wavefronts - report.ideal >= limits.extra_wavefronts
        if not extra and report.atomic_ways < limits.atomic_lanes:
            continue
        findings.append(
            Finding(
                code=Code.BANK_CONFLICT,
                status=Status.PROVED if banks.sure else Status.POSSIBLE,
                message=messages.bank_conflict(banks.site, report),
                kernel=trace.kernel.name,
                site=banks.site,
                bank=report,
                launch=trace.launch,
                reason=None if banks.sure else _doubt(banks.access),
            )
        )
    return tuple(findings)


def _doubt(a: Access) -> str:
    return a.doubt.reason if a.doubt is not None else "a condition that depends on data"


def _report(trace: Trace, accesses: list[Access]) -> SiteBanks:
    gpu = trace.gpu
    worst: tuple[tuple[int, int], Access, dict[str, int], tuple[int, ...]] | None = None
    total, count, sure, ways, atomic = 0, 0, False, 1, 1
    for a in accesses:
        base = a.array.offset or 0
        addresses, active, warp = warp_rows(a, trace.threads, gpu.warp_size)
        if len(addresses) == 0:
            continue
        addresses, active, warp = addresses[:_MAX_WARPS] + base, active[:_MAX_WARPS], warp[:_MAX_WARPS]
        cost = warp_wavefronts(
            addresses, active, a.size, load=a.mode is Mode.READ, banks=gpu.banks, bank_bytes=gpu.bank_bytes
        )
        sure |= bool(a.must[..., : trace.threads].any())
        total += int(cost.wavefronts.sum())
        count += len(addresses)
        ways = max(ways, int(cost.ways.max()))
        if a.mode is Mode.ATOMIC:
            atomic = max(atomic, lanes_per_address(addresses, active))
        top = int(np.argmax(cost.wavefronts - cost.ideal))
        counts = {"wavefronts": cost.wavefronts, "ideal": cost.ideal, "warp": warp}
        found = {name: int(values[top]) for name, values in counts.items()}
        rank = (found["wavefronts"] - found["ideal"], found["wavefronts"])
        if worst is None or rank > worst[0]:
            worst = (rank, a, found, tuple(int(n) for n in cost.histogram[top]))
    last = accesses[-1]
    if worst is None:
        report = BankReport(1, 0, 0, 0.0, (0,) * gpu.banks)
        return SiteBanks(last.site, last.mode, report, sure, last)
    _, access, found, histogram = worst
    report = BankReport(
        ways, found["wavefronts"], found["ideal"], total / count, histogram, found["warp"], atomic
    )  # fmt: skip
    return SiteBanks(access.site, access.mode, report, sure, access)


def warp_rows(a: Access, threads: int, warp_size: int) -> tuple[Lanes, Flags, Lanes]:
    """``a`` as warp instructions of block 0 that have an active lane.

    Byte addresses in the array and active lanes, both ``(rows, warp_size)``, and the warp of each row.
    """
    assert not isinstance(a.offset, Data)
    may: Flags = np.reshape(a.may[..., :threads], (-1, threads))
    offset: Lanes = np.reshape(spread_out(a.offset, a.may.shape)[..., :threads], (-1, threads))
    pad = ((0, 0), (0, -threads % warp_size))
    active: Flags = np.reshape(np.pad(may, pad), (-1, warp_size))
    addresses: Lanes = np.reshape(np.pad(offset, pad), (-1, warp_size))
    rows = len(active)
    warps = np.arange(rows) % (rows // len(may))
    active &= addresses >= 0  # an index before the array is another finding
    keep = active.any(axis=1)
    addresses = np.where(active, addresses, 0)
    return addresses[keep], active[keep], warps[keep]


def lanes_per_address(addresses: Lanes, active: Flags) -> int:
    """The largest number of lanes of one warp instruction at one address."""
    row = np.broadcast_to(np.arange(len(addresses))[:, None], addresses.shape)[active]
    span = int(addresses.max(initial=0)) + 1
    _, counts = np.unique(row * span + addresses[active], return_counts=True)
    return int(counts.max(initial=1))


def instruction_report(
    addresses: Lanes, active: Flags, size: int, gpu: GpuModel, *, load: bool
) -> Mapping[str, int]:
    """Wavefronts and conflicts of one warp instruction; both arrays ``(warp_size,)``."""
    cost = warp_wavefronts(
        addresses[None], active[None], size, load=load, banks=gpu.banks, bank_bytes=gpu.bank_bytes
    )
    wavefronts, ideal = int(cost.wavefronts[0]), int(cost.ideal[0])
    return {"wavefronts": wavefronts, "bank_conflicts": wavefronts - ideal}
