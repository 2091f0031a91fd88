"""Races of stores that turn out to store one value: a second look, with floating-point values followed.

Most kernels compute with floats what no address hangs on, so their values are not followed. Where two threads
are found to write one place, the kernel is executed once more as ``Kernel.followed``, and asked whether these
two can store anything different (``execution.equal_values``).
"""

from __future__ import annotations

import math

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import KernelReport, RaceKind, Verdict
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.words import doubt
from cuda_lsp.static.tiers import FirstTier, enumerate_kernel, of_one_value, shown, verdict_of
from cuda_lsp.static.witnessed_values import is_suspected, repeated_by_blocks, stores_of_floats


def first_tier(kernel: Kernel, settings: Settings) -> FirstTier:
    """The first tier without a limit of time, the values of stores included where the kernel has them."""
    first = enumerate_kernel(kernel, settings)
    return with_stored_values(first, kernel, settings) if is_open(first, kernel) else first


def is_open(first: FirstTier, kernel: Kernel) -> bool:
    """Whether what threads store matters and is not known: two of them write one place, and floats."""
    suspected = {f.site.range for f in first.findings if is_suspected(f)}
    return bool(suspected and suspected & stores_of_floats(kernel))


def may_open(first: FirstTier, kernel: Kernel) -> bool:
    """Whether it may matter later, as the solver may tell of such stores."""
    return not first.decided and not kernel.errors and bool(stores_of_floats(kernel))


def with_stored_values(
    first: FirstTier, kernel: Kernel, settings: Settings, *, until: float = math.inf
) -> FirstTier:
    """The answer, and which races are of one value; ``cut`` where that could not be seen by ``until``."""
    if kernel.followed is None:
        return first
    again = enumerate_kernel(kernel.followed, settings, until=until)
    if again.cut:
        return evolve(first, cut=True, report=_without_suspected(first, kernel, settings))
    alike = frozenset(f.key for f in again.findings if f.kind is RaceKind.WAW and f.same_value)
    if not any(_is_in_a_block(f) for f in first.findings):
        alike |= {f.key for f in first.findings if repeated_by_blocks(kernel, f, settings.gpu)}
    differing = {f.key: f for f in again.findings if is_suspected(f)}
    findings = tuple(
        differing.get(f.key, f) if is_suspected(f) else f
        for f in (of_one_value(finding, alike) for finding in first.findings)
    )
    report = evolve(first.report, findings=shown(findings, kernel, first.report.launches, settings))
    return evolve(first, findings=findings, report=report, alike=alike)


def _is_in_a_block(finding: Diagnosis) -> bool:
    """A race that makes what a block computes hang on more than what it is given."""
    blocks = finding.witness.blocks if finding.witness is not None else None
    return finding.certain and finding.kind is not None and (blocks is None or blocks[0] == blocks[1])


def _without_suspected(first: FirstTier, kernel: Kernel, settings: Settings) -> KernelReport:
    """What can be told while nobody knows whether threads that write one place store one value."""
    known = [finding for finding in first.findings if not is_suspected(finding)]
    verdict = verdict_of(known, race_free=False)
    return evolve(
        first.report,
        findings=shown(known, kernel, first.report.launches, settings),
        verdict=verdict,
        reasons=first.report.reasons if verdict is Verdict.RACY else (doubt(Open.BACKGROUND),),
        refined=False,
    )
