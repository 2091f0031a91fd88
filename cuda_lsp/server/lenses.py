"""Code lenses above kernels and inlay hints beside accesses. Instances of a template are one kernel here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import Code, FileReport, Finding, KernelReport, Status, Verdict
from cuda_lsp.server.check_commands import STALE, action_for, program_action, program_line, verdict_action
from cuda_lsp.server.diagnostics import templates
from cuda_lsp.server.positions import to_client
from cuda_lsp.server.verdicts import title

if TYPE_CHECKING:
    from cuda_lsp.server.run_outcomes import LastRun


def lenses(report: FileReport, document: TextDocument, runs: Mapping[str, LastRun]) -> list[lsp.CodeLens]:
    """Two a kernel: its verdict, and the launch it holds for; what runs it, and what the last run came to.

    A click on the verdict of a template tells that of each instance.
    """
    found: list[lsp.CodeLens] = []
    for instances in templates(report.kernels):
        place = to_client(instances[0].range, document)
        verdict = lsp.Command(title(instances), "")
        if len(instances) > 1:
            verdict = verdict_action(title(instances), document.uri, instances[0].range.start.line)
        found.append(lsp.CodeLens(range=place, command=verdict))
        run = _run(instances, document.uri, runs)
        if run is not None:
            found.append(lsp.CodeLens(range=place, command=run))
    return found


def _run(instances: Sequence[KernelReport], uri: str, runs: Mapping[str, LastRun]) -> lsp.Command | None:
    """What runs the instance of which most is to be learnt."""
    runnable = [kernel for kernel in instances if kernel.key]
    if not runnable:
        return None
    worst = (Verdict.RACY, Verdict.UNDECIDED, Verdict.RACE_FREE)
    kernel = min(runnable, key=lambda k: (k.name not in runs, worst.index(k.verdict)))
    command = action_for(kernel, uri)
    run = runs.get(kernel.name)
    if run is not None:
        command.title = f"Run again · {run.counts} {run.where}, {run.at}"
    elif STALE in kernel.notes:
        command.title += " again (edited since)"
    elif not kernel.launches or kernel.launches[0].assumed:
        command.title += " (guessed launch)"
    return command


def program_lens(report: FileReport, document: TextDocument, built: bool) -> list[lsp.CodeLens]:
    """A lens above ``main`` that runs the program; above the first kernel where a command builds it."""
    line = program_line(report, document.source, built)
    if line is None:
        return []
    place = lsp.Range(lsp.Position(line - 1, 0), lsp.Position(line - 1, 0))
    return [lsp.CodeLens(range=place, command=program_action(document.uri))]


def kernel_at(report: FileReport, which: str | int) -> KernelReport | None:
    """A kernel by its name, or by a line (from 0) that it is on."""
    if isinstance(which, str):
        return next((kernel for kernel in report.kernels if kernel.name == which), None)
    return next((kernel for kernel in report.kernels if kernel.range.has_line(which + 1)), None)


def told_instances(report: FileReport, line: int) -> str:
    """The verdicts of the instances of the template on a line (from 1), a line each."""
    found = [kernel for kernel in report.kernels if kernel.range.start.line == line]
    return "\n".join(f"{title([kernel])} {'; '.join(kernel.reasons[:1])}".rstrip() for kernel in found)


def hints(
    report: FileReport, document: TextDocument, lines: tuple[int, int], runs: Mapping[str, LastRun]
) -> list[lsp.InlayHint]:
    """``n-way`` behind each conflicting access within ``lines`` (0-based, inclusive), and what a run saw."""
    found: dict[tuple[int, int, str], lsp.InlayHint] = {}
    for finding in report.findings:
        position = to_client(finding.site.range, document).end
        label, tooltip = _hint(finding, runs)
        if label and lines[0] <= position.line <= lines[1]:
            found[position.line, position.character, label] = lsp.InlayHint(
                position=position, label=label, padding_left=True, tooltip=tooltip
            )
    return list(found.values())


def _hint(finding: Finding, runs: Mapping[str, LastRun]) -> tuple[str, str]:
    """What stands beside an access, and what the pointer shows there."""
    bank, seen, run = finding.bank, finding.observation, runs.get(finding.kernel)
    if finding.code is Code.BANK_CONFLICT and bank is not None:
        return f"{bank.ways}-way", f"{bank.wavefronts} wavefronts, ideal {bank.ideal}"
    if finding.status is Status.CONFIRMED and seen is not None:
        when = f"{run.where}, {run.at}" if run is not None else f"on {seen.device}"
        return "new, seen" if finding.missed else "confirmed", f"{seen.told}; {when}"
    if finding.status is Status.NOT_OBSERVED and run is not None:
        return "not observed", f"{run.where}, {run.at}: it ran and was not seen, which proves nothing"
    return "", ""
