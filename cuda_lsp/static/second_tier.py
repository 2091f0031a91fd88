"""The second tier on one kernel: the solver and, under an assumed launch, what others say of its answer."""

from __future__ import annotations

from collections.abc import Sequence, Set

from attrs import evolve

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static import budgets, work
from cuda_lsp.static.diagnostics.bounds import misuses_arrays
from cuda_lsp.static.exact.report import races_by_running
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.findings.conditions import Open, parameters_of
from cuda_lsp.static.findings.diagnosis import Key, open_reasons
from cuda_lsp.static.launches.alternatives import with_sizes_of_blocks
from cuda_lsp.static.launches.arguments import sample
from cuda_lsp.static.launches.claims import claimed
from cuda_lsp.static.launches.second_opinion import accusations, entitled, second_opinion
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel
from cuda_lsp.static.witnessed_values import with_values

_ASSUMED = (Open.LAUNCH_UNTOLD, Open.LAUNCH_AND_TEMPLATE, Open.TEMPLATE)
"""What is not of the program, and may be all that makes a race."""


def refine_with_second_opinion(
    kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget
) -> SolverResult:
    """``refine_kernel``, with findings that need the assumed launch demoted. One budget for all of it."""
    first = refine_kernel(kernel, launches, gpu, budget)
    if launches:
        findings = with_values(kernel, first.findings, gpu)
        first = _left_open(evolve(first, findings=claimed(kernel, launches[0], gpu, findings)))
    if not launches or not launches[0].assumed or not accusations(first.findings):
        return first

    def misuses(of: LaunchConfig) -> bool:
        """With natural arguments."""
        return misuses_arrays(execute(kernel, of, sample(kernel, of) or of.arguments, gpu))

    launch = launches[0]
    sizes = parameters_of(c for f in first.findings if f.certain for c in f.conditions)
    others = [*entitled(kernel, launch, misuses), *with_sizes_of_blocks(kernel, launch, sizes)]
    left = max(budgets.SECOND_OPINION_SHARE * budget.kernel, budget.kernel - first.stats.seconds)
    share = evolve(budget, kernel=left / max(1, len(others)))

    def shown(other: LaunchConfig, wanted: Set[Key]) -> set[Key]:
        other = evolve(other, source=LaunchSource.DIRECTIVE)  # what would it show if it were the one?
        pairs = sorted((here, there) for code, here, there in wanted if code is None)
        seconds = max(share.kernel, budgets.SECOND_OPINION_RUNNING_SHARE * budget.kernel)
        found = accusations(races_by_running(kernel, other, gpu, pairs, work.begin(seconds)).values())
        if wanted - found:
            found |= accusations(refine_kernel(kernel, (other,), gpu, share).findings)
        return found

    findings = second_opinion(kernel, launch, first.findings, others, shown)
    return _left_open(evolve(first, findings=findings))


def _left_open(answer: SolverResult) -> SolverResult:
    """A kernel of which no race is certain any more is undecided, for what these hang on."""
    if answer.verdict is not Verdict.RACY or any(f.certain and f.kind for f in answer.findings):
        return answer
    doubts = open_reasons(f for f in answer.findings if f.kind and f.doubt in _ASSUMED)
    reasons = tuple(dict.fromkeys((*answer.reasons, *doubts)))
    return evolve(answer, verdict=Verdict.UNDECIDED, reasons=reasons)
