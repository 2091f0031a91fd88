"""Code actions: repairs that ``cuda_lsp.repairs`` finds, silence a finding, set the launch, run a check.

A repair is preferred only when the finished analysis of the edited text bears it out; one of which only the
first tier has spoken says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from attrs import frozen
from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.barrier_intervals import meeting_of
from cuda_lsp.model import Code, FileReport, Finding, KernelReport, LaunchConfig, Position
from cuda_lsp.repair import Repair
from cuda_lsp.repairs.difference import difference
from cuda_lsp.repairs.kinds import repairable
from cuda_lsp.repairs.search import Trials, composed, every_one, mended, suggested
from cuda_lsp.repairs.source import Source
from cuda_lsp.report.defects import places_of, template_of
from cuda_lsp.server.check_commands import (
    action_for,
    interval_action,
    picture_action,
    program_action,
    program_line,
)
from cuda_lsp.server.diagnostics import templates
from cuda_lsp.server.edits import line_above
from cuda_lsp.server.launch_actions import known_launches, launch_actions
from cuda_lsp.server.positions import range_at, to_client

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.cuda-lsp"
_NOT_VERIFIED = "not verified"


@frozen
class Wanted:
    """What a client asks for: actions on these lines (0-based), of these kinds; none named: of all but fixes
    of the whole file, which are made at once and asked for by name.

    ``resolves``: it asks again for the edits of an action that it has chosen. ``asks_launch``: it can ask its
    user for a launch. ``others``: of open files; ``elsewhere``: launches in the rest of the workspace.
    ``built``: a command builds the program.
    """

    first: int
    last: int
    only: tuple[str, ...] = ()
    resolves: bool = False
    asks_launch: bool = False
    others: tuple[FileReport, ...] = ()
    elsewhere: tuple[LaunchConfig, ...] = ()
    built: bool = False

    def kind(self, kind: str) -> bool:
        """Whether it asks for actions of a kind."""
        return not self.only or any(kind == asked or kind.startswith(f"{asked}.") for asked in self.only)


def actions(
    report: FileReport, document: TextDocument, wanted: Wanted, trials: Trials
) -> list[lsp.CodeAction]:
    """What can be done about the findings within ``wanted``."""
    found: list[lsp.CodeAction] = []
    if wanted.kind(lsp.CodeActionKind.QuickFix.value):
        found += _quick_fixes(report, document, wanted, trials)
        found += _without_idle_comments(report, document, wanted)
    if wanted.only and wanted.kind(FIX_ALL):
        found += _fix_all(report, document, trials)
    if wanted.kind(lsp.CodeActionKind.Source.value):
        found += _pictures(report, document, wanted)
        found += _program(report, document, wanted)
    for kernel, *_ in templates(report.kernels):
        if kernel.range.has_line(wanted.first + 1):
            if wanted.kind(lsp.CodeActionKind.RefactorRewrite.value):
                known = known_launches(kernel, (report, *wanted.others), wanted.elsewhere)
                found += launch_actions(kernel, document, known, wanted.asks_launch)
                found += _suggestions(report, document, wanted, trials)
            if kernel.key and wanted.kind(lsp.CodeActionKind.Source.value):
                found.append(_run(kernel, document))
    return found


def resolved(action: lsp.CodeAction, report: FileReport, document: TextDocument, trials: Trials) -> None:
    """Give an action that mends all of a kind in a kernel its edit; none where nothing of it verifies."""
    data = cast("dict[str, Any]", action.data)

    def meant(finding: Finding) -> bool:
        return finding.kernel == data.get("kernel") and finding.code.value == data.get("code")

    action.edit = _composed(report, document, trials, meant) or lsp.WorkspaceEdit(changes={})


# ---------------------------------------------------------------------------------------- repairs


def _quick_fixes(
    report: FileReport, document: TextDocument, wanted: Wanted, trials: Trials
) -> Iterator[lsp.CodeAction]:
    source = Source(report.path, document.source)
    told: set[object] = set()
    mended_by_one: list[Finding] = []
    here = [finding for finding in report.findings if _is_here(finding, report, document, wanted)]
    in_step = {finding.kernel for finding in here if finding.code is Code.WARP_SYNCHRONOUS}
    for finding in here:
        tried_as_one = finding.kernel in told and finding.code is Code.WARP_SYNCHRONOUS
        place = (finding.code, places_of(finding))  # the same in another instance of a template
        if finding in mended_by_one or tried_as_one or place in told:
            continue
        if finding.code is Code.WARP_SYNCHRONOUS:
            told.add(finding.kernel)
        found = mended(source, report, finding, trials)
        if found is not None and found.repair.edits not in told:
            told |= {found.repair.edits, place}
            mended_by_one += found.repair.findings
            yield _action(found.repair, document)
    if wanted.resolves:
        yield from _all_of_a_kind(here, report, document)
    silenced = {(f.code, f.site.range.start.line): f for f in here if f.code is not Code.WARP_SYNCHRONOUS}
    yield from (_silence(finding, document) for finding in silenced.values())
    for kernel, *_ in templates(k for k in report.kernels if k.name in in_step):
        yield _keep_lock_step(kernel, document)


def _is_here(finding: Finding, report: FileReport, document: TextDocument, wanted: Wanted) -> bool:
    if finding.site.range.path != report.path:
        return False
    extent = to_client(finding.site.range, document)
    return extent.start.line <= wanted.last and wanted.first <= extent.end.line


def _action(repair: Repair, document: TextDocument) -> lsp.CodeAction:
    """The client's form of a repair."""
    edits = [lsp.TextEdit(to_client(edit.range, document), edit.text) for edit in repair.edits]
    return lsp.CodeAction(
        title=_title(repair),
        kind=lsp.CodeActionKind.QuickFix,
        is_preferred=True if repair.verified and repair.keeps_meaning else None,
        edit=lsp.WorkspaceEdit(changes={document.uri: edits}),
    )


def _suggestions(
    report: FileReport, document: TextDocument, wanted: Wanted, trials: Trials
) -> Iterator[lsp.CodeAction]:
    """What may be done with a barrier on the line that somebody is on."""
    line = document.lines[wanted.first] if wanted.first < len(document.lines) else ""
    if wanted.first != wanted.last or "__syncthreads" not in line:
        return
    source = Source(report.path, document.source)
    offset = source.offset(Position(wanted.first + 1, line.index("__syncthreads") + 1))
    found = suggested(source, report, offset, trials)
    if found is not None:
        action = _action(found.repair, document)
        action.kind, action.is_preferred = lsp.CodeActionKind.RefactorRewrite, None
        yield action


def _title(repair: Repair) -> str:
    """With what it costs, and what nobody has proved yet."""
    said = [repair.cost, "" if repair.verified else _NOT_VERIFIED]
    behind = ", ".join(part for part in said if part)
    return f"{repair.title} ({behind})" if behind else repair.title


def _all_of_a_kind(
    here: Iterable[Finding], report: FileReport, document: TextDocument
) -> Iterator[lsp.CodeAction]:
    """Where a kernel has several findings of a code; what of them can be mended is told when it is chosen."""
    state = {"uri": document.uri, "version": document.version}
    asked = {(template_of(f.kernel), f.code): f.kernel for f in here if f.code in repairable()}
    for (_, code), kernel in asked.items():
        several = sum((f.kernel, f.code) == (kernel, code) for f in report.findings) > 1
        if several and code is not Code.WARP_SYNCHRONOUS:
            yield lsp.CodeAction(
                title=f"Mend every {code.value} of {kernel} that can be verified",
                kind=lsp.CodeActionKind.QuickFix,
                data={**state, "kernel": kernel, "code": code.value},
            )


def _fix_all(report: FileReport, document: TextDocument, trials: Trials) -> Iterator[lsp.CodeAction]:
    edit = _composed(report, document, trials)
    if edit is not None:
        yield lsp.CodeAction(
            title="Make all verified repairs of cuda-lsp", kind=cast("Any", FIX_ALL), edit=edit
        )


def _composed(
    report: FileReport, document: TextDocument, trials: Trials, of: Callable[[Finding], bool] = every_one
) -> lsp.WorkspaceEdit | None:
    """Verified repairs that keep the program's meaning, one on top of the other; None: there are none."""
    text = document.source
    made = composed(report.path, text, report, trials, lambda candidate: candidate.keeps_meaning, of)
    if not made.repairs:
        return None
    edits = [lsp.TextEdit(range_at(e.start, e.end, document), e.text) for e in difference(text, made.text)]
    return lsp.WorkspaceEdit(changes={document.uri: edits})


# ------------------------------------------------------------------------------------ what else


def _silence(finding: Finding, document: TextDocument) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=f"Ignore {finding.code.value} here",
        kind=lsp.CodeActionKind.QuickFix,
        edit=line_above(
            document,
            finding.site.range.start.line - 1,
            f"// cuda-lsp: ignore[{finding.code.value}] reason",
        ),
    )


def _without_idle_comments(
    report: FileReport, document: TextDocument, wanted: Wanted
) -> Iterator[lsp.CodeAction]:
    for place in report.unused:
        number = place.start.line - 1
        if wanted.first <= number <= wanted.last:
            extent = to_client(place, document)
            before = document.lines[number][: place.start.column - 1]
            if before.strip():  # code with the comment behind it
                extent.start.character -= len(before) - len(before.rstrip())
            else:
                extent = lsp.Range(lsp.Position(number, 0), lsp.Position(number + 1, 0))
            yield lsp.CodeAction(
                title="Remove the comment that silences nothing",
                kind=lsp.CodeActionKind.QuickFix,
                is_preferred=True,
                edit=lsp.WorkspaceEdit(changes={document.uri: [lsp.TextEdit(extent, "")]}),
            )


def _keep_lock_step(kernel: KernelReport, document: TextDocument) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=f"Declare {kernel.name} warp-synchronous",
        kind=lsp.CodeActionKind.QuickFix,
        edit=line_above(document, kernel.range.start.line - 1, "// cuda-lsp: warp-synchronous"),
    )


def _pictures(report: FileReport, document: TextDocument, wanted: Wanted) -> Iterator[lsp.CodeAction]:
    here = [finding for finding in report.findings if _is_here(finding, report, document, wanted)]
    races = {f.site.range.start.line for f in here if meeting_of(f) is not None}
    conflicts = {f.site.range.start.line for f in here if f.code is Code.BANK_CONFLICT}
    commands = [interval_action(document.uri, line) for line in sorted(races)]
    commands += [picture_action(document.uri, line) for line in sorted(conflicts)]
    for command in commands:
        yield lsp.CodeAction(command.title, kind=lsp.CodeActionKind.Source, command=command)


def _run(kernel: KernelReport, document: TextDocument) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=f"Run dynamic check of {kernel.name}",
        kind=lsp.CodeActionKind.Source,
        command=action_for(kernel, document.uri),
    )


def _program(report: FileReport, document: TextDocument, wanted: Wanted) -> Iterator[lsp.CodeAction]:
    """Where the lens for it stands: not every client shows lenses."""
    line = program_line(report, document.source, wanted.built)
    if line is not None and wanted.first <= line - 1 <= wanted.last:
        command = program_action(document.uri)
        yield lsp.CodeAction(command.title, kind=lsp.CodeActionKind.Source, command=command)
