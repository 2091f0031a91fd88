"""The one place where LSP methods are wired to features. No logic of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from cuda_lsp import settings_file
from cuda_lsp.server import actions, close_ups, hover, lenses
from cuda_lsp.server.analysis.process import AnalysisProcess
from cuda_lsp.server.client_progress import Progress, UserCancelled
from cuda_lsp.server.commands import wire_commands
from cuda_lsp.server.cuda_server import SECTION, CudaServer
from cuda_lsp.server.documents import as_it_is
from cuda_lsp.server.positions import from_client, path_of
from cuda_lsp.server.pygls_fixes import Protocol
from cuda_lsp.server.workspace_pull import PULL_WAIT, workspace_report

log = logging.getLogger(__name__)

_WATCHED = ("**/{cuda-lsp,pyproject}.toml", "**/*.{cu,h,hh,hpp,hxx,cuh,inl,inc}")
_HINTS_WAIT = 10.0  # seconds for the analysis of a text whose hints the client asks for once
_ACTIONS_WAIT = 2.0  # seconds a request for actions waits for the analysis of the text it is about
_VERIFY_WAIT = 3.0  # … and for the solver's word on repairs
_CHOSEN_WAIT = 20.0  # seconds for the repairs of an action that was chosen


def create_server(process: AnalysisProcess | None = None) -> CudaServer:
    """A server with every feature wired. ``process``: the one for its analyses, if there is one already."""
    server = CudaServer(process)
    _wire_documents(server)
    _wire_settings(server)
    _wire_reading(server)
    wire_commands(server)
    return server


def _wire_documents(server: CudaServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: CudaServer, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.opened_in(path_of(params.text_document.uri).parent)
        ls.changed(ls.workspace.get_text_document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: CudaServer, params: lsp.DidChangeTextDocumentParams) -> None:
        document = ls.workspace.text_documents.get(unquote(params.text_document.uri))
        if document is not None:
            ls.changed(document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: CudaServer, params: lsp.DidCloseTextDocumentParams) -> None:
        if ls.session:
            ls.session.close(params.text_document.uri)
        ls.forget(params.text_document.uri)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(ls: CudaServer, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.files_changed(headers=not params.text_document.uri.endswith(".cu"))
        ls.reread_settings()  # not every client that says so tells of files that others write

    del did_open, did_change, did_close, did_save


def _wire_settings(server: CudaServer) -> None:
    @server.feature(lsp.INITIALIZED)
    async def initialized(ls: CudaServer, params: lsp.InitializedParams) -> None:
        del params
        ls.loop = asyncio.get_running_loop()
        await _pull_settings(ls)
        await _watch_files(ls)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def changed(ls: CudaServer, params: lsp.DidChangeConfigurationParams) -> None:
        pushed = _table(params.settings)
        await _pull_settings(ls, _table(pushed.get(SECTION, pushed)))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def watched(ls: CudaServer, params: lsp.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith((settings_file.FILE_NAME, "pyproject.toml")) for change in params.changes):
            await _pull_settings(ls)
        ls.files_changed(headers=any(not change.uri.endswith(".cu") for change in params.changes))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders(ls: CudaServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        del params
        await _pull_settings(ls)

    del initialized, changed, watched, folders


async def _watch_files(ls: CudaServer) -> None:
    """Have the client tell of settings files and headers that change, where it can."""
    if ls.hears_of_files:
        watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = lsp.Registration("files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        try:
            await ls.client_register_capability_async(lsp.RegistrationParams([registration]))
        except JsonRpcException as refused:
            log.info("the client does not watch files: %s", refused)
            ls.watches_refused = True


async def _pull_settings(ls: CudaServer, pushed: Mapping[str, Any] | None = None) -> None:
    """Ask the client where it can answer; else what it pushed or sent at the start."""
    workspace = ls.client_capabilities.workspace
    roots = ls.roots
    editor: list[Any] = [pushed] * len(roots)
    if workspace and workspace.configuration:
        several = len(roots) > 1
        items = [lsp.ConfigurationItem(scope_uri=uri if several else None, section=SECTION) for uri in roots]
        answers = await ls.workspace_configuration_async(lsp.ConfigurationParams(items))
        editor = [*answers, *[None] * len(roots)][: len(roots)]
    given = cast("Protocol", ls.protocol).options.get("settings")
    ls.apply_settings([_own(_table(values or given)) for values in editor])


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is the extension's."""
    return {key: value for key, value in values.items() if key not in ("server", "trace")}


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _wire_reading(server: CudaServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def show(ls: CudaServer, params: lsp.HoverParams) -> lsp.Hover | None:
        report = ls.report(params.text_document.uri)
        if report is None:  # nothing may be read of a document that is not open
            return None
        document = as_it_is(ls.workspace.get_text_document(params.text_document.uri))
        where = from_client(params.position, document)
        text = hover.hover_text(report, where, tables=ls.draws_tables)
        if ls.session and close_ups.may_be_barrier(document, where):
            role = await close_ups.barrier_text(ls.session, report, where)
            text = "\n\n---\n\n".join(part for part in (role, text) if part)
        if ls.session:
            shown = ls.shows_pictures
            pictures = await close_ups.links(ls.session, report, document, where, shown=shown)
            text = "\n\n".join([text or "", *pictures])
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lens(ls: CudaServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        report = ls.report(params.text_document.uri)
        if report is None or not ls.settings_at(report.path).code_lens:
            return []
        document = ls.workspace.get_text_document(params.text_document.uri)
        shown = lenses.lenses(report, document, ls.runs(report, document.source))
        built = bool(ls.settings_at(report.path).build_command)
        return [*shown, *lenses.program_lens(report, document, built)]

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay(ls: CudaServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        lines = (params.range.start.line, params.range.end.line)
        if ls.session:  # clients ask for what is visible
            ls.session.look(params.text_document.uri, sum(lines) // 2 + 1)
        if not ls.refreshes_hints:  # they are asked for once
            asked = ls.workspace.get_text_document(params.text_document.uri)
            await ls.first_settled(asked, _HINTS_WAIT)
        report = ls.report(params.text_document.uri)
        if report is None:
            return []
        settings = ls.settings_at(report.path)
        document = ls.workspace.get_text_document(params.text_document.uri)
        runs = ls.runs(report, document.source)
        found = lenses.hints(report, document, lines, runs) if settings.inlay_hints else []
        if settings.interval_hints and ls.session:
            found += await close_ups.interval_hints(ls.session, report, as_it_is(document), lines)
        return found

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(
            code_action_kinds=[
                lsp.CodeActionKind.QuickFix,
                lsp.CodeActionKind.RefactorRewrite,
                lsp.CodeActionKind.Source,
                cast("Any", actions.FIX_ALL),
            ],
            resolve_provider=True,
        ),
    )
    async def act(ls: CudaServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = as_it_is(ls.workspace.get_text_document(params.text_document.uri))
        session = ls.session
        if session is None:
            return []
        report = await ls.settled(document, _ACTIONS_WAIT)
        if report is None:
            return []  # the client asks again when it has the findings of its newest text
        only = tuple(getattr(kind, "value", kind) for kind in params.context.only or ())
        lines = params.range.start.line, params.range.end.line
        asks = bool(cast("Protocol", ls.protocol).options.get("asksLaunch"))
        others, elsewhere = session.reports(), ls.workspace_check.launches
        built = bool(ls.settings_at(report.path).build_command)
        wanted = actions.Wanted(*lines, only, ls.resolves_edits, asks, others, elsewhere, built)
        # The analysis thread tries repairs when it has nothing else to do, and as fast as edits.
        trials = ls.trials(session, document, _VERIFY_WAIT)
        return await trials.used(actions.actions, report, document, wanted)

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(ls: CudaServer, action: lsp.CodeAction) -> lsp.CodeAction:
        data = _table(action.data)
        known = ls.workspace.text_documents.get(unquote(str(data.get("uri"))))
        session = ls.session
        if known is None or session is None or known.version != data.get("version"):
            return action
        document = as_it_is(known)
        report = await ls.settled(document, _ACTIONS_WAIT)
        if report is not None:
            trials = ls.trials(session, document, _CHOSEN_WAIT)
            mending = trials.used(actions.resolved, action, report, document)
            with contextlib.suppress(UserCancelled):
                async with Progress.shown(ls, action.title) as progress:
                    await progress.unless_cancelled(mending)
        return action

    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(
            inter_file_dependencies=False,
            workspace_diagnostics=True,
            identifier=SECTION,
            work_done_progress=True,
        ),
    )
    async def pull(
        ls: CudaServer, params: lsp.DocumentDiagnosticParams
    ) -> lsp.RelatedFullDocumentDiagnosticReport | lsp.RelatedUnchangedDocumentDiagnosticReport:
        document = ls.workspace.get_text_document(params.text_document.uri)
        await ls.settled(document, PULL_WAIT)
        items, result = ls.pulled(document)
        if params.previous_result_id == result:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
        return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=result)

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def pull_all(
        ls: CudaServer, params: lsp.WorkspaceDiagnosticParams
    ) -> lsp.WorkspaceDiagnosticReport:
        return await workspace_report(ls, params)

    del show, lens, inlay, act, resolve, pull, pull_all
