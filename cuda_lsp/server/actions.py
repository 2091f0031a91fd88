"""Code actions: insert the missing barrier (checked first), silence a finding, set the launch.

A repair is offered only after the edited text was analysed: the finding must be gone and nothing
new must have come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import Code, FileReport, Finding, KernelReport
from cuda_lsp.report.defects import places_of
from cuda_lsp.server.check_commands import action_for
from cuda_lsp.server.lock_step_repair import Edit, edited, repairs
from cuda_lsp.server.positions import range_at, to_client

Check = Callable[[str], FileReport | None]
"""Analyses a text as if it were the document's, unseen by the client; None: not wanted any more."""

_BARRIER = {Code.SHARED_RACE: "__syncthreads();", Code.WARP_RACE: "__syncwarp();"}
_MAX_PLACES = 4


def actions(
    report: FileReport, document: TextDocument, wanted: lsp.Range, check: Check
) -> list[lsp.CodeAction]:
    """What can be done about the findings within ``wanted``."""
    found: list[lsp.CodeAction] = []
    in_step: set[str] = set()
    for finding in report.findings:
        extent = to_client(finding.site.range, document)
        if extent.start.line <= wanted.end.line and wanted.start.line <= extent.end.line:
            if finding.code is Code.WARP_SYNCHRONOUS:
                in_step.add(finding.kernel)
                continue
            found += _repairs(finding, report, document, check)
            found.append(_silence(finding, document))
    for kernel in report.kernels:
        if kernel.name in in_step:
            found += _lock_step_repairs(kernel, report, document, check)
            found.append(_keep_lock_step(kernel, document))
        if kernel.range.start.line - 1 <= wanted.start.line <= kernel.range.end.line - 1:
            found.append(_set_launch(kernel, document))
            if kernel.key:
                found.append(_run(kernel, document))
    return found


def _repairs(
    finding: Finding, report: FileReport, document: TextDocument, check: Check
) -> Iterator[lsp.CodeAction]:
    statement = _BARRIER.get(finding.code)
    if statement is None:
        return
    for line in _places(finding, document):
        indent = _indent(document.lines[line])
        edited = list(document.lines)
        edited.insert(line, f"{indent}{statement}\n")
        after = check("".join(edited))
        if after is not None and _mends(finding, line, report, after):
            yield lsp.CodeAction(
                title=f"Insert {statement} before line {line + 1}",
                kind=lsp.CodeActionKind.QuickFix,
                is_preferred=True,
                edit=_insertion(document, line, f"{indent}{statement}\n"),
            )
            return


def _lock_step_repairs(
    kernel: KernelReport, report: FileReport, document: TextDocument, check: Check
) -> Iterator[lsp.CodeAction]:
    """All of the kernel's at once: the barriers that only some of them need order nothing."""
    races = [f for f in kernel.findings if f.code is Code.WARP_SYNCHRONOUS]
    if any(place.path != report.path for race in races for place in places_of(race)):
        return
    known = {_without_place(f) for f in report.findings if f not in races}
    for edits in repairs(races, document.lines):
        after = check(edited(document.lines, edits))
        if after is None or _messages(after) - _messages(report):
            continue
        if {_without_place(f) for f in after.findings} <= known:
            yield lsp.CodeAction(
                title=f"Insert __syncwarp(); where {kernel.name} relies on lock step",
                kind=lsp.CodeActionKind.QuickFix,
                is_preferred=True,
                edit=lsp.WorkspaceEdit(changes={document.uri: [_text_edit(e, document) for e in edits]}),
            )
            return


def _without_place(f: Finding) -> tuple[object, ...]:
    """The repair leaves lines where they are, and moves what stands on them."""
    return (f.code, f.kind, f.kernel, f.site.range.start.line)


def _text_edit(edit: Edit, document: TextDocument) -> lsp.TextEdit:
    extent = range_at(edit.start, edit.end, document)
    return lsp.TextEdit(extent, edit.text)


def _places(finding: Finding, document: TextDocument) -> list[int]:
    """Lines (0-based) before which a barrier may help: before the later access, then around the earlier."""
    sites = [finding.site, *(related.site for related in finding.related[:1])]
    lines = sorted({site.range.start.line - 1 for site in sites}, reverse=True)
    candidates = [*lines, *(line + 1 for line in lines)]
    return [line for line in dict.fromkeys(candidates) if line < len(document.lines)][:_MAX_PLACES]


def _mends(finding: Finding, line: int, before: FileReport, after: FileReport) -> bool:
    def identity(f: Finding, shift: int) -> tuple[object, ...]:
        start = f.site.range.start
        moved = start.line - shift if start.line > line + shift else start.line
        return (f.code, f.kind, moved, start.column, tuple(r.site.text for r in f.related))

    old = {identity(f, 0) for f in before.findings}
    new = {identity(f, 1) for f in after.findings}
    return identity(finding, 0) not in new and new <= old and not _messages(after) - _messages(before)


def _messages(report: FileReport) -> set[str]:
    """What is wrong with the text, wherever: an inserted line moves it."""
    return {error.message for error in report.errors}


def _silence(finding: Finding, document: TextDocument) -> lsp.CodeAction:
    line = finding.site.range.start.line - 1
    indent = _indent(document.lines[line])
    text = f"{indent}// cuda-lsp: ignore[{finding.code.value}] reason\n"
    return lsp.CodeAction(
        title=f"Ignore {finding.code.value} here",
        kind=lsp.CodeActionKind.QuickFix,
        edit=_insertion(document, line, text),
    )


def _keep_lock_step(kernel: KernelReport, document: TextDocument) -> lsp.CodeAction:
    line = kernel.range.start.line - 1
    text = f"{_indent(document.lines[line])}// cuda-lsp: warp-synchronous\n"
    return lsp.CodeAction(
        title=f"Declare {kernel.name} warp-synchronous",
        kind=lsp.CodeActionKind.QuickFix,
        edit=_insertion(document, line, text),
    )


def _run(kernel: KernelReport, document: TextDocument) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=f"Run dynamic check of {kernel.name}",
        kind=lsp.CodeActionKind.Source,
        command=action_for(kernel, document.uri),
    )


def _set_launch(kernel: KernelReport, document: TextDocument) -> lsp.CodeAction:
    x, y, z = kernel.launches[0].block if kernel.launches else (256, 1, 1)
    line = kernel.range.start.line - 1
    text = f"{_indent(document.lines[line])}// cuda-lsp: launch block=({x},{y},{z})\n"
    return lsp.CodeAction(
        title=f"Set launch configuration of {kernel.name}…",
        kind=lsp.CodeActionKind.RefactorRewrite,
        edit=_insertion(document, line, text),
    )


def _insertion(document: TextDocument, line: int, text: str) -> lsp.WorkspaceEdit:
    at = lsp.Position(line, 0)
    return lsp.WorkspaceEdit(changes={document.uri: [lsp.TextEdit(lsp.Range(at, at), text)]})


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
