"""The solver under a launch that we assumed: only what another plausible launch shows too is certain.

A buffer of 512 words and a default block of 1024 threads prove nothing about the program. What the
solver finds under such a launch is asked for again under others; what does not come back is
*possible*, with the launch as its reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Finding, GpuModel, LaunchConfig, SourceRange, Status, Verdict
from cuda_lsp.static.assumed import ASSUMED, alternatives
from cuda_lsp.static.solve import Budget, SolverResult, refine_kernel

_LEAST_SHARE = 0.2
"""Of the budget, for the other launches together when the first took all of it."""


def refine_with_second_opinion(
    kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
) -> SolverResult:
    """``refine_kernel``, with findings that need the assumed launch demoted. One budget for all of it."""
    first = refine_kernel(kernel, launches, gpu, budget)
    others = alternatives(kernel, launches[0]) if launches and launches[0].assumed else ()
    again = {_place(f) for f in first.findings if _certain(f)}
    if not others or not again:
        return first
    left = max(_LEAST_SHARE * budget.kernel, budget.kernel - first.stats.seconds)
    share = evolve(budget, kernel=left / len(others))
    for other in others:
        if again:
            answer = refine_kernel(kernel, (other,), gpu, share)
            again &= {_place(f) for f in answer.findings if _certain(f)}
    findings = tuple(f if not _certain(f) or _place(f) in again else _demoted(f) for f in first.findings)
    if first.verdict is not Verdict.RACY or any(_certain(f) and f.kind for f in findings):
        return evolve(first, findings=findings)
    return evolve(first, findings=findings, verdict=Verdict.UNDECIDED, reasons=(*first.reasons, ASSUMED))


def _certain(finding: Finding) -> bool:
    return finding.status in (Status.PROVED, Status.CONDITIONAL)


def _place(finding: Finding) -> tuple[object, ...]:
    ranges: list[SourceRange] = [finding.site.range, *(r.site.range for r in finding.related[:1])]
    return (finding.code, *sorted(ranges))


def _demoted(finding: Finding) -> Finding:
    message = f"{finding.message} (depends on {ASSUMED})"
    return evolve(finding, status=Status.POSSIBLE, reason=ASSUMED, message=message)
