"""Code lenses above kernels and inlay hints beside accesses."""

from __future__ import annotations

import re

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import Code, FileReport, KernelReport, Verdict
from cuda_lsp.server.check_commands import STALE, action_for, program_action
from cuda_lsp.server.hover import launch_text
from cuda_lsp.server.positions import to_client

_MAIN = re.compile(r"^\s*(?:extern\s+\"C\"\s+)?(?:int|auto|void)\s+main\s*\(", re.MULTILINE)


def lenses(report: FileReport, document: TextDocument) -> list[lsp.CodeLens]:
    """One lens a kernel: verdict and the launch it holds for."""
    return [
        lsp.CodeLens(range=to_client(kernel.range, document), command=lsp.Command(_title(kernel), ""))
        for kernel in report.kernels
    ]


def run_lenses(report: FileReport, document: TextDocument) -> list[lsp.CodeLens]:
    """One lens a kernel that runs it instrumented; it says so where the last result is of another text."""
    found: list[lsp.CodeLens] = []
    for kernel in report.kernels:
        if kernel.key:
            command = action_for(kernel, document.uri)
            if STALE in kernel.notes:
                command.title += " again (edited since)"
            found.append(lsp.CodeLens(range=to_client(kernel.range, document), command=command))
    return found


def program_lens(report: FileReport, document: TextDocument, built: bool) -> list[lsp.CodeLens]:
    """A lens above ``main`` that runs the program; above the first kernel where a command builds it."""
    line = _main_line(document.source)
    if line is None and built:
        line = min(kernel.range.start.line for kernel in report.kernels)
    if line is None:
        return []
    place = lsp.Range(lsp.Position(line - 1, 0), lsp.Position(line - 1, 0))
    return [lsp.CodeLens(range=place, command=program_action(document.uri))]


def _title(kernel: KernelReport) -> str:
    known = [kernel.verdict.value] if kernel.refined or kernel.verdict is not Verdict.UNDECIDED else []
    state = " · ".join(known if kernel.refined else [*known, "proving…"])
    launch = f" · {launch_text(kernel.launches[0])}" if kernel.launches else ""
    name = f"{kernel.name}: " if "<" in kernel.name else ""
    return f"{name}{state}{launch}"


def hints(report: FileReport, document: TextDocument, lines: tuple[int, int]) -> list[lsp.InlayHint]:
    """``n-way`` behind each conflicting access within ``lines`` (0-based, inclusive)."""
    found: dict[tuple[int, int], lsp.InlayHint] = {}
    for finding in report.findings:
        if finding.code is not Code.BANK_CONFLICT or finding.bank is None:
            continue
        position = to_client(finding.site.range, document).end
        if lines[0] <= position.line <= lines[1]:
            found[position.line, position.character] = lsp.InlayHint(
                position=position,
                label=f"{finding.bank.ways}-way",
                padding_left=True,
                tooltip=f"{finding.bank.wavefronts} wavefronts, ideal {finding.bank.ideal}",
            )
    return list(found.values())


def _main_line(text: str) -> int | None:
    """The line (from 1) on which ``main`` is defined."""
    found = _MAIN.search(text)
    return text.count("\n", 0, found.end()) + 1 if found else None
