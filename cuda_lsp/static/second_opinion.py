"""The solver under a launch that we assumed: only what another plausible launch shows too is certain.

A buffer of 512 words and a default block of 1024 threads prove nothing about the program. What the
solver finds under such a launch is asked for again under others; what does not come back is
*possible*, with the launch as its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, Finding, GpuModel, LaunchConfig, SourceRange, Status, Verdict
from cuda_lsp.static import work
from cuda_lsp.static.assumed import ASSUMED, alternatives, sample, unlike
from cuda_lsp.static.exact.report import races_by_running
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.fitting import misuses_arrays
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

_LEAST_SHARE = 0.3
"""Of the budget, for the other launches together when the first took all of it."""

_RUNNING = 0.1
"""Of the budget, for executions of each of them."""

_RACE = "race"
Place = tuple[Code | str, tuple[SourceRange, ...]]
"""A diagnosis and its places in the text; of a race both, however near its threads are to one another."""


def refine_with_second_opinion(
    kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
) -> SolverResult:
    """``refine_kernel``, with findings that need the assumed launch demoted. One budget for all of it."""
    first = refine_kernel(kernel, launches, gpu, budget)
    again = {_place(f) for f in first.findings if _certain(f)}
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
            shown |= {_place(f) for f in answer.findings if _certain(f)}
        again &= shown
    findings = tuple(f if not _certain(f) or _place(f) in again else _demoted(f) for f in first.findings)
    if first.verdict is not Verdict.RACY or any(_certain(f) and f.kind for f in findings):
        return evolve(first, findings=findings)
    return evolve(first, findings=findings, verdict=Verdict.UNDECIDED, reasons=(*first.reasons, ASSUMED))


def _fitting(
    kernel: Kernel, launch: LaunchConfig, others: Sequence[LaunchConfig], gpu: GpuModel
) -> list[LaunchConfig]:
    """The others but those that misuse shared arrays, natural arguments given, as the first does not."""

    def unfit(of: LaunchConfig) -> bool:
        return misuses_arrays(execute(kernel, of, sample(kernel, of) or of.arguments, gpu))

    wrong = [other for other in others if unfit(other)]
    return list(others) if wrong and unfit(launch) else [o for o in others if o not in wrong]


def _shown(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, places: Collection[Place], seconds: float
) -> set[Place]:
    """The places that executions under the launch show to race, which costs less than to ask the solver."""
    wanted = sorted((ranges[0], ranges[-1]) for what, ranges in places if what is _RACE)
    found = races_by_running(kernel, launch, gpu, wanted, work.begin(seconds))
    return {_place(finding) for finding in found.values()}


def _certain(finding: Finding) -> bool:
    return finding.status in (Status.PROVED, Status.CONDITIONAL)


def _place(finding: Finding) -> Place:
    others = [related.site.range for related in finding.related[:1]]
    return (_RACE if finding.kind else finding.code, tuple(sorted([finding.site.range, *others])))


def _demoted(finding: Finding) -> Finding:
    message = f"{finding.message} (depends on {ASSUMED})"
    return evolve(finding, status=Status.POSSIBLE, reason=ASSUMED, message=message)
