"""The solver under a launch that we assumed: only what another plausible launch shows too is certain.

A buffer of 512 words and a default block of 1024 threads prove nothing about the program. What the
solver finds under such a launch is asked for again under others; what does not come back is
*possible*, with the launch as its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import GpuModel, LaunchConfig, Verdict
from cuda_lsp.static import work
from cuda_lsp.static.assumed import alternatives, sample, unlike
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.diagnosis import Key
from cuda_lsp.static.findings.words import doubt
from cuda_lsp.static.fitting import misuses_arrays
from cuda_lsp.static.schedules.report import races_by_running
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

_LEAST_SHARE = 0.3
"""Of the budget, for the other launches together when the first took all of it."""

_RUNNING = 0.1
"""Of the budget, for executions of each of them."""


def refine_with_second_opinion(
    kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
) -> SolverResult:
    """``refine_kernel``, with findings that need the assumed launch demoted. One budget for all of it."""
    first = refine_kernel(kernel, launches, gpu, budget)
    again = {f.key for f in first.findings if f.certain}
    if not again or not launches or not launches[0].assumed:
        return first
    others: Sequence[LaunchConfig] = ()
    if unlike(kernel, launches[0]):
        again.clear()
    else:
        others = alternatives(kernel, launches[0])
        if not others:
            return first
        others = _fitting(kernel, launches[0], others, gpu)
    left = max(_LEAST_SHARE * budget.kernel, budget.kernel - first.stats.seconds)
    share = evolve(budget, kernel=left / max(1, len(others)))
    for other in others:
        shown = _shown(kernel, other, gpu, again, max(share.kernel, _RUNNING * budget.kernel))
        if again - shown:
            answer = refine_kernel(kernel, (other,), gpu, share)
            shown |= {f.key for f in answer.findings if f.certain}
        again &= shown
    why = Open.LAUNCH_UNTOLD
    findings = tuple(f if not f.certain or f.key in again else f.doubted(why) for f in first.findings)
    if first.verdict is not Verdict.RACY or any(f.certain and f.kind for f in findings):
        return evolve(first, findings=findings)
    reasons = (*first.reasons, doubt(why))
    return evolve(first, findings=findings, verdict=Verdict.UNDECIDED, reasons=reasons)


def _fitting(
    kernel: Kernel, launch: LaunchConfig, others: Sequence[LaunchConfig], gpu: GpuModel
) -> list[LaunchConfig]:
    """The others but those that misuse shared arrays, natural arguments given, as the first does not."""

    def unfit(of: LaunchConfig) -> bool:
        return misuses_arrays(execute(kernel, of, sample(kernel, of) or of.arguments, gpu))

    wrong = [other for other in others if unfit(other)]
    return list(others) if wrong and unfit(launch) else [o for o in others if o not in wrong]


def _shown(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, places: Collection[Key], seconds: float
) -> set[Key]:
    """The places that executions under the launch show to race, which costs less than to ask the solver."""
    wanted = sorted((first, second) for code, first, second in places if code is None)
    found = races_by_running(kernel, launch, gpu, wanted, work.begin(seconds))
    return {finding.key for finding in found.values()}
