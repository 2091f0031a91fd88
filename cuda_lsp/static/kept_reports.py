"""What is known of each kernel that was analysed, and the key that it is kept under.

A key holds all that a kernel's report hangs on: the digest of its text and of what that depends on, and what
launch sites say of it. So undoing an edit is free. Places do not count: a report moves with its kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from attrs import define, evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import KernelReport, LaunchConfig, Verdict
from cuda_lsp.static.background import Answer, budget_of
from cuda_lsp.static.likeness import likeness
from cuda_lsp.static.proofs import proof
from cuda_lsp.static.same_program import Program
from cuda_lsp.static.solver.answer import Budget, Failure, SolverResult
from cuda_lsp.static.tiers import FirstTier, refined

Launches = tuple[LaunchConfig, ...]
Alike = dict[str, tuple[SolverResult, Launches]]
"""What the solver says of kernels of one likeness, and the launches of the one that it looked at."""

_SPENT = 0.8
"""Of its budget: what a kernel took that might have been decided with more."""


@define
class KeptReport:
    """One analysed kernel. ``report`` is the newest; positions are those of ``line``.

    ``identity``: which of the file's kernels it is, whatever is written in it. ``complaints``: of clang.
    """

    kernel: Kernel
    base_name: str
    identity: str
    first: FirstTier
    report: KernelReport
    line: int
    complaints: frozenset[str] = frozenset()
    _shown: tuple[KernelReport, int, KernelReport] | None = None
    _program: Program | None = None

    @property
    def program(self) -> Program:
        """The kernel, to be compared with others."""
        if self._program is None or self._program.kernel is not self.kernel:
            self._program = Program(self.kernel, self.complaints)
        return self._program

    def at(self, line: int) -> KernelReport:
        """The report where the kernel begins on ``line``; the same object until one of them changes."""
        if self._shown is None or self._shown[0] is not self.report or self._shown[1] != line:
            self._shown = (self.report, line, self.report.moved(line - self.line))
        return self._shown[2]

    @property
    def template(self) -> tuple[str, int]:
        """What it has in common with other instances, if there are any."""
        return self.base_name, self.line

    def take_in(self, answer: Answer, settings: Settings) -> None:
        """Make the newest report of what was known and an answer."""
        if isinstance(answer, Failure):
            if self.first.cut:  # the solver's turn
                self.first = evolve(self.first, cut=False, open_reasons=(answer.reason,))
                self.report = evolve(self.report, reasons=(answer.reason,))
                return
            answer = SolverResult(Verdict.UNDECIDED, (answer.reason,))
        if isinstance(answer, FirstTier):
            self.first, self.report = answer, answer.report
        else:
            self.report = refined(self.first, self.kernel, answer, settings)

    def likeness(self) -> str:
        """What kernels have in common of which one answer is enough."""
        return likeness(self.kernel, self.report.launches)

    def settle(self, settings: Settings, alike: Alike, key: str) -> bool:
        """Ask the second tier in this process, blocking; whether more time may tell more.

        What it says of the first of kernels that are ``alike`` (by ``key``) holds for the others, but for
        accusations.
        """
        budget, launches = budget_of(settings), self.report.launches
        if key in alike:
            answer = _moved(*alike[key], self.kernel, launches)
        else:
            answer = self._answer(settings, budget)
            if not any(finding.certain for finding in answer.findings):
                alike[key] = answer, launches
        before = self.report
        if not (before.refined and before.verdict is Verdict.RACY and answer.verdict is Verdict.UNDECIDED):
            self.take_in(answer, settings)  # else it shows less than an answer before
        return answer.verdict is not Verdict.RACE_FREE and answer.stats.seconds > _SPENT * budget.kernel

    def _answer(self, settings: Settings, budget: Budget) -> SolverResult:
        try:
            return proof(self.kernel, self.report.launches, settings.gpu, budget)
        except Exception as error:  # noqa: BLE001 - a bug in the solver must not silence the kernel
            reason = f"the solver failed: {type(error).__name__}: {error}"
            return SolverResult(Verdict.UNDECIDED, (reason,))


def _moved(answer: SolverResult, before: Launches, kernel: Kernel, launches: Launches) -> SolverResult:
    """What is said of one kernel, said of another that is alike."""
    same = dict(zip(map(id, before), launches, strict=True))
    findings = (
        evolve(f, kernel=kernel.name, launch=same.get(id(f.launch), f.launch)) for f in answer.findings
    )
    return evolve(answer, findings=tuple(findings))


def keyed(translation: Translation) -> list[tuple[str, KernelSource]]:
    """The kernels whose types are known, each behind what its report is kept under."""
    launches = _launches_by_kernel(translation)
    return [(_key(translation, s, launches), s) for s in translation.kernels() if not s.dependent]


def _key(translation: Translation, source: KernelSource, launches: Mapping[str, list[str]]) -> str:
    return f"{translation.path}|{source.digest}|{source.name}|{launches.get(source.base_name)}"


def _launches_by_kernel(translation: Translation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for site in (*translation.launch_sites, *itertools.chain(*translation.sites_elsewhere.values())):
        found.setdefault(site.kernel, []).append(site.facts)
    return found
