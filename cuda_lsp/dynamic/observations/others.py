"""What a run saw besides races: threads that wait in vain, accesses out of bounds, costs in banks."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.dynamic.job import CheckResult, TrialResult
from cuda_lsp.dynamic.observations.places import (
    line_of,
    made_up,
    missed,
    observation_of,
    overlap,
    source_name,
    thread_words,
    triple,
    waiting_places,
)
from cuda_lsp.dynamic.runs import RunOutcome, SeenBanks, SeenFault, SiteKind, Stuck
from cuda_lsp.model import BankReport, Code, Finding, LaunchConfig, Observation, Space, Status


def add_divergence(
    findings: list[Finding], stuck: Stuck, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    """Threads that waited in vain at a barrier: confirms a finding, or adds one if others went on."""
    places = waiting_places(stuck, result)
    barriers = [place for place in places if place[0].kind is SiteKind.BARRIER]
    if not barriers:
        return
    site, _, count, _ = barriers[0]
    assert site.site is not None
    others = [f"{n} at line {line_of(s)}" for s, _, n, _ in places if s is not site]
    left = [f"{stuck.exited} have returned"] if stuck.exited else []
    rest = " and ".join([*others, *left])
    message = (
        f"not all threads of a block reach {site.site.text}: {count} wait there, {rest};"
        f" seen on {result.device}"
    )
    observation = observation_of(trial, result.device, 0, 0)
    for k, finding in enumerate(findings):
        if finding.code is Code.BARRIER_DIVERGENCE and overlap(finding.site.range, site.site.range):
            findings[k] = evolve(
                finding, status=Status.CONFIRMED, severity=None, reason=None, observation=observation
            )
            return
    if (others or left) and not stuck.late:
        seen = Finding(
            Code.BARRIER_DIVERGENCE, Status.CONFIRMED, message, kernel, site.site,
            launch=trial.trial.launch, observation=observation,
        )  # fmt: skip
        findings.append(missed(seen))


def add_fault(
    findings: list[Finding], fault: SeenFault, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    """An access outside shared memory, or outside what a whole program has allocated."""
    site = result.sites[fault.site].site
    if site is None or made_up(fault, trial):
        return
    shared = fault.place.space is Space.SHARED
    code = Code.SHARED_OUT_OF_BOUNDS if shared else Code.GLOBAL_OUT_OF_BOUNDS
    observation = observation_of(trial, result.device, 0, 0)
    for k, finding in enumerate(findings):
        if finding.code is code and overlap(finding.site.range, site.range):
            findings[k] = evolve(
                finding, status=Status.CONFIRMED, severity=None, reason=None, observation=observation
            )
            return
    space = "shared memory" if shared else "global memory"
    name = source_name(fault.place.array) if fault.place.array else space
    where = f"is not aligned in {name}" if fault.misaligned else f"is outside {name}"
    grid = trial.trial.launch.grid or (1, 1, 1)
    block = None if shared and fault.outlived is None else triple(fault.block, grid)
    thread = thread_words(triple(fault.thread, trial.trial.launch.block), block)
    message = f"{site.text} {where}: {thread} reaches byte {fault.place.offset}; seen on {result.device}"
    if fault.outlived is not None:
        x, y, z = triple(fault.outlived, grid)
        message = (
            f"{site.text} is in shared memory of block ({x},{y},{z}), which may have ended: no thread of it"
            f" waits for {thread}, as `cluster.sync()` would; seen on {result.device}"
        )
    seen = Finding(
        code, Status.CONFIRMED, message, kernel, site,
        launch=trial.trial.launch, observation=observation,
    )  # fmt: skip
    findings.append(missed(seen) if shared else seen)


def add_conflict(
    findings: list[Finding], seen: SeenBanks, result: CheckResult, trial: TrialResult, kernel: str
) -> None:
    """A shared-memory access that cost more wavefronts than its ideal: confirms a finding, or adds one."""
    site = result.bank_sites[seen.site].site
    if site is None or trial.banks is None:
        return
    observation = _bank_observation(trial.banks, trial.trial.launch, result.device)
    mean = seen.wavefronts / max(seen.executions, 1)
    bank = BankReport(seen.worst_ways, seen.worst_wavefronts, seen.worst_ideal, mean, seen.histogram)
    for k, finding in enumerate(findings):
        if finding.code is Code.BANK_CONFLICT and overlap(finding.site.range, site.range):
            if finding.status is not Status.CONFIRMED and seen.worst_wavefronts > seen.worst_ideal:
                findings[k] = evolve(finding, status=Status.CONFIRMED, severity=None, observation=observation)
            return
    if seen.worst_wavefronts > seen.worst_ideal:
        message = (
            f"{seen.worst_ways}-way bank conflict: {site.text} takes {seen.worst_wavefronts} wavefronts"
            f" instead of {seen.worst_ideal}; seen on {result.device}"
        )
        findings.append(
            Finding(
                Code.BANK_CONFLICT, Status.CONFIRMED, message, kernel, site,
                bank=bank, launch=trial.trial.launch, observation=observation,
            )
        )  # fmt: skip


def _bank_observation(outcome: RunOutcome, launch: LaunchConfig, device: str) -> Observation:
    return Observation(device, launch, outcome.seconds, 0, 0, outcome.blocks_checked, outcome.blocks_total)
