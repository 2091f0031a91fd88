"""Bank conflicts: the wavefronts of every shared-memory access site, every warp, every execution.

The cost of one warp instruction is ``cuda_lsp.wavefronts`` (measured on hardware); here the trace is cut
into warp instructions and summed up per source site.  Accesses at addresses that depend on data have
no report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from cuda_lsp.model import BankReport, Code, Mode, Site, Space, Status
from cuda_lsp.static import budgets
from cuda_lsp.static.deadline import passed
from cuda_lsp.static.execution.trace import Access, Trace, spread_out
from cuda_lsp.static.execution.values import Data, Flags, Lanes
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.launches.lane_distances import counters_between_lanes
from cuda_lsp.wavefronts import (
    Touch,
    WarpPicture,
    instruction_bytes,
    sharing,
    touched_words,
    warp_wavefronts,
)


@frozen(eq=False)
class SiteBanks:
    """The report of one access site. ``sure``: some warp surely executes it.

    ``round``: loop counters of one as dear as told, where others are not, or were not seen. ``sharing``: two
    of its lanes that come for words of one bank.
    """

    site: Site
    mode: Mode
    report: BankReport
    sure: bool
    access: Access
    round: Mapping[str, int]
    sharing: tuple[Touch, Touch] | None


MAX_BYTES = 16
"""The widest instruction; what is wider is a library's doing, or several instructions."""


def bank_reports(trace: Trace) -> tuple[SiteBanks, ...]:
    """One report per shared-memory site and mode, in order of the text, until ``trace.until``."""
    reports: list[SiteBanks] = []
    for accesses in _by_site(trace):
        if passed(trace.until):
            trace.late = True
            break
        reports.append(_report(trace, accesses))
    return tuple(sorted(reports, key=lambda r: r.site.range.start))


def _by_site(trace: Trace) -> list[list[Access]]:
    by_site: dict[object, dict[object, Access]] = {}
    for path in trace.paths:
        for a in path.accesses:
            if a.array.space is not Space.SHARED or a.size > MAX_BYTES:
                continue
            if not isinstance(a.offset, Data) and not a.copied:
                by_site.setdefault((a.site.range, a.mode), {})[a.signature[:5], a.size] = a
    return [list(accesses.values()) for accesses in by_site.values()]


def bank_pictures(trace: Trace, line: int) -> tuple[WarpPicture, ...]:
    """The dearest instruction of each shared-memory site on a line, in order of the text."""
    sites = [a for a in _by_site(trace) if a[0].site.range.start.line == line]
    sites.sort(key=lambda accesses: accesses[0].site.range.start)
    return tuple(found for accesses in sites if (found := _picture(trace, accesses)) is not None)


def _picture(trace: Trace, accesses: list[Access]) -> WarpPicture | None:
    gpu, load = trace.gpu, not accesses[0].mode.writes
    best: tuple[int, WarpPicture] | None = None
    for a in accesses:
        rows, active, warps = warp_rows(a, trace.threads, gpu.warp_size)
        addresses = rows + (a.array.offset or 0)
        if not len(addresses):
            continue
        how: dict[str, Any] = {"load": load, "banks": gpu.banks, "bank_bytes": gpu.bank_bytes}
        size = instruction_bytes(a.size)
        cost = warp_wavefronts(addresses, active, size, **how)
        top = cost.dearest
        wavefronts, ideal = int(cost.wavefronts[top]), int(cost.ideal[top])
        if best is None or wavefronts > best[0]:
            touches = touched_words(addresses[top : top + 1], active[top : top + 1], size, **how)
            place, warp = a.site, int(warps[top])
            shown = (gpu.banks, gpu.warp_size, wavefronts, ideal, touches)
            best = wavefronts, WarpPicture(place.text, place.range.start.line, warp, *shown)
    return best[1] if best is not None else None


def bank_findings(trace: Trace, extra_wavefronts: int = 1) -> tuple[Diagnosis, ...]:
    """A finding for each site whose worst warp needs so many more wavefronts than the ideal."""
    worst: dict[object, tuple[int, Diagnosis]] = {}
    for banks in bank_reports(trace):
        report = banks.report
        extra = report.wavefronts - report.ideal
        if extra < extra_wavefronts:
            continue
        known = worst.get(banks.site.range)  # `s[i] += x` reads and writes at one site
        if known is None or extra > known[0]:
            story = words.bank_conflict(
                banks.site, banks.access.array.name, report, banks.sharing, banks.round
            )
            finding = Diagnosis(
                Code.BANK_CONFLICT, Status.PROVED if banks.sure else Status.POSSIBLE,
                story, trace.kernel.name, banks.site, bank=report,
                doubt=None if banks.sure else OnData(_doubt(banks.access)), launch=trace.launch,
            )  # fmt: skip
            worst[banks.site.range] = (extra, finding)
    return tuple(finding for _, finding in worst.values())


def _doubt(a: Access) -> str:
    return a.doubt.reason if a.doubt is not None else "a condition that depends on data"


def _report(trace: Trace, accesses: list[Access]) -> SiteBanks:
    """All accesses are of one site, hence of one size but for templates; sizes are costed apart.

    What takes several instructions is told by one of them: the others do the same some words further.
    """
    gpu = trace.gpu
    worst: tuple[tuple[int, int], BankReport] | None = None
    shared: tuple[Touch, Touch] | None = None
    how: dict[str, Any] = {
        "load": not accesses[0].mode.writes, "banks": gpu.banks, "bank_bytes": gpu.bank_bytes,
    }  # fmt: skip
    dearest, costs = (accesses[0], 0), dict[_Round, int]()
    total, count, ways, atomic = 0, 0, 1, 1
    for size in sorted({a.size for a in accesses}):
        members = [a for a in accesses if a.size == size]
        rows = [_rows(a, trace.threads, gpu.warp_size) for a in members]
        starts = [r[0] + (a.array.offset or 0) for a, r in zip(members, rows, strict=True)]
        addresses = np.concatenate(starts)[: budgets.MOST_WARPS]
        active = np.concatenate([r[1] for r in rows])[: budgets.MOST_WARPS]
        warp = np.concatenate([r[2] for r in rows])[: budgets.MOST_WARPS]
        if len(addresses) == 0:
            continue
        rounds = [(member, n) for member, (_, _, _, r) in enumerate(rows) for n in r.tolist()][: len(warp)]
        active &= (addresses >= 0) & (addresses < budgets.MOST_ADDRESS)  # no bank holds the others
        addresses = np.where(active, addresses, 0)
        cost = warp_wavefronts(addresses, active, instruction_bytes(size), **how)
        total += int(cost.wavefronts.sum())
        count += len(addresses)
        ways = max(ways, int(cost.ways.max()))
        if accesses[0].mode is Mode.ATOMIC:
            atomic = max(atomic, lanes_per_address(addresses, active))
        top = cost.dearest
        wavefronts, ideal = int(cost.wavefronts[top]), int(cost.ideal[top])
        rank = (wavefronts - ideal, wavefronts)
        for (member, n), wavefronts_there in zip(rounds, cost.wavefronts.tolist(), strict=True):
            costs[members[member], n] = max(costs.get((members[member], n), 0), wavefronts_there)
        if worst is None or rank > worst[0]:
            dearest = members[rounds[top][0]], rounds[top][1]
            histogram = tuple(int(n) for n in cost.histogram[top])
            report = BankReport(1, wavefronts, ideal, 0.0, histogram, int(warp[top]))
            worst = (rank, report)
            row = slice(top, top + 1)
            shared = (
                sharing(touched_words(addresses[row], active[row], instruction_bytes(size), **how))
                if wavefronts > ideal
                else None
            )
    found = dearest[0]
    sure = any(bool(a.must.any()) for a in accesses)
    report = worst[1] if worst is not None else BankReport(1, 0, 0, 0.0, (0,) * gpu.banks)
    report = evolve(report, ways=ways, mean_wavefronts=total / max(count, 1), atomic_ways=atomic)
    round = _told_round(trace, dearest, costs, any(a.decided for a in accesses)) if shared is not None else {}
    return SiteBanks(found.site, found.mode, report, sure, found, round, shared)


_Round = tuple[Access, int]
"""An access, and which of the rounds that it stands for."""


def _told_round(trace: Trace, dearest: _Round, costs: Mapping[_Round, int], unseen: bool) -> dict[str, int]:
    """What counters tell a round with the conflict from those without.

    ``unseen``: there are rounds that were not executed. Of these the counters tell by which lanes lie apart.
    """
    told = _counters(*dearest)
    if not told:
        return {}
    deciding = counters_between_lanes(trace.kernel, dearest[0].site, told.keys())
    cheap = [r for r, cost in costs.items() if cost < costs[dearest]][: budgets.MOST_ROUNDS_TOLD]
    alike = [_counters(*r) for r in cheap]
    found = dict(told)
    for name in sorted(told, key=lambda name: name in deciding):
        fewer = {n: value for n, value in found.items() if n != name}
        if _agreeing(alike, fewer) <= _agreeing(alike, found):
            found = fewer
    if cheap or not (unseen or len(costs) == 1):
        return found
    return {n: told[n] for n in told if n in deciding}


def _agreeing(rounds: Sequence[Mapping[str, int]], with_: Mapping[str, int]) -> int:
    """How many rounds have these numbers."""
    return sum(all(r.get(name) == value for name, value in with_.items()) for r in rounds)


def _counters(a: Access, round: int) -> dict[str, int]:
    """What the counters of its loops are in a round, those that all threads share."""
    found: dict[str, int] = {}
    for name, value in a.loops:
        if isinstance(value, int):
            found[name] = value
        elif isinstance(value, np.ndarray):
            lanes = np.reshape(spread_out(value, a.may.shape), (-1, a.may.shape[-1]))[round]
            if (lanes == lanes[0]).all():
                found[name] = int(lanes[0])
    return found


def warp_rows(a: Access, threads: int, warp_size: int) -> tuple[Lanes, Flags, Lanes]:
    """``a`` as warp instructions of the executed blocks that have an active lane.

    Byte addresses in the array and active lanes, both ``(rows, warp_size)``, and the warp of each row.
    Blocks that do what the first does add nothing and are left out.
    """
    return _rows(a, threads, warp_size)[:3]


def _rows(a: Access, threads: int, warp_size: int) -> tuple[Lanes, Flags, Lanes, Lanes]:
    """``warp_rows``, and the round of the loops around that each row is of."""
    assert not isinstance(a.offset, Data)
    blocks = a.may.shape[-1] // threads
    may: Flags = np.reshape(a.may, (-1, blocks, threads))
    offset: Lanes = np.reshape(spread_out(a.offset, a.may.shape), (-1, blocks, threads))
    if blocks > 1 and (may == may[:, :1]).all() and (offset == offset[:, :1]).all():
        may, offset = may[:, 0], offset[:, 0]
    may, offset = np.reshape(may, (-1, threads)), np.reshape(offset, (-1, threads))
    pad = ((0, 0), (0, -threads % warp_size))
    active: Flags = np.reshape(np.pad(may, pad), (-1, warp_size))
    addresses: Lanes = np.reshape(np.pad(offset, pad), (-1, warp_size))
    rows = len(active)
    warps = np.arange(rows) % (rows // len(may))
    rounds = np.arange(rows) // (rows // max(1, a.may.size // a.may.shape[-1]))
    active &= addresses >= 0  # an index before the array is another finding
    keep = active.any(axis=1)
    addresses = np.where(active, addresses, 0)
    return addresses[keep], active[keep], warps[keep], rounds[keep]


def lanes_per_address(addresses: Lanes, active: Flags) -> int:
    """The largest number of lanes of one warp instruction at one address."""
    row = np.broadcast_to(np.arange(len(addresses))[:, None], addresses.shape)[active]
    span = int(addresses.max(initial=0)) + 1
    _, counts = np.unique(row * span + addresses[active], return_counts=True)
    return int(counts.max(initial=1))
