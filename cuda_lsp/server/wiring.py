"""The one place where LSP methods are wired to features. No logic of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from attrs import evolve
from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp import __version__, config, settings_file
from cuda_lsp.children import working_folder
from cuda_lsp.config import Settings, SettingsProblem
from cuda_lsp.model import FileReport, Severity
from cuda_lsp.server import actions, check_commands, hover, lenses, run_messages
from cuda_lsp.server.analysis.process import AnalysisProcess
from cuda_lsp.server.diagnostics import DiagnosticsJson, diagnostics, settings_diagnostic
from cuda_lsp.server.positions import from_client, path_of, uri_of
from cuda_lsp.server.pygls_fixes import Protocol, Server, as_it_is
from cuda_lsp.server.session import Session
from cuda_lsp.server.trials import Trials
from cuda_lsp.server.verdicts import shown_verdict

if TYPE_CHECKING:
    from cuda_lsp.server.dynamic_check import DynamicChecks
    from cuda_lsp.server.run_outcomes import LastRun

SECTION = "cuda-lsp"
_WATCHED = ("**/{cuda-lsp,pyproject}.toml", "**/*.{h,hh,hpp,hxx,cuh,inl,inc}")
_ACTIONS_WAIT = 2.0  # seconds a request for actions waits for the analysis of the text it is about
_VERIFY_WAIT = 3.0  # … and for the solver's word on repairs
_CHOSEN_WAIT = 20.0  # seconds for the repairs of an action that was chosen
_PULL_WAIT = 5.0  # seconds a pull request waits for the analysis of its version


class CudaServer(Server):
    """The server of one client."""

    def __init__(self, process: AnalysisProcess | None = None) -> None:
        super().__init__(SECTION, __version__)
        self._process = process
        self.settings = Settings()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.session: Session | None = None
        self._checks: DynamicChecks | None = None
        self._blamed: set[Path] = set()  # settings files that something was told of
        self._trials: dict[str, tuple[Session, int | None, str, Trials]] = {}
        self._made = DiagnosticsJson(cast("Protocol", self.protocol).encode)

    def start_session(self, settings: Settings) -> None:
        """(Re)start the analysis, with the texts that are open."""
        if self.session:
            self.session.stop()
        self.settings = settings
        self._made = DiagnosticsJson(cast("Protocol", self.protocol).encode, settings.documentation)
        self.session, self._process = Session(settings, self._publish_later, self._process), None
        for document in self.workspace.text_documents.values():
            self.changed(document)

    def changed(self, document: TextDocument) -> None:
        """Analyse the newest text of a document."""
        if self.session:
            self.session.change(document.uri, path_of(document.uri), document.source, document.version)

    def report(self, uri: str) -> FileReport | None:
        """The newest report of a document, with what dynamic checks of its kernels saw."""
        report = self.session.report(uri) if self.session else None
        return self.with_checks(report, self._text(uri)) if report else None

    def _text(self, uri: str) -> str:
        document = self.workspace.text_documents.get(unquote(uri))
        return document.source if document else ""

    async def checks(self) -> DynamicChecks:
        """Dynamic checks; loaded when the first is wanted, half a second of imports."""
        module = await asyncio.to_thread(import_module, "cuda_lsp.server.dynamic_check")
        checks: DynamicChecks = self._checks or module.DynamicChecks()
        self._checks = checks
        return checks

    def with_checks(self, report: FileReport, text: str) -> FileReport:
        """The report of a text, with what dynamic checks of its kernels saw."""
        return self._checks.overlay(report, text, self.settings) if self._checks else report

    def runs(self, report: FileReport, text: str) -> Mapping[str, LastRun]:
        """What the last dynamic checks of kernels came to, by name."""
        return self._checks.runs(report, text, self.settings) if self._checks else {}

    def trials(self, session: Session, document: TextDocument, seconds: float) -> Trials:
        """Trials of repairs of a document as it is, for so long; what earlier ones found is known to them."""
        known = self._trials.get(document.uri)
        state = (session, document.version, document.source)
        trials = known[3] if known and known[:3] == state else Trials(session, document.uri, document.version)
        self._trials[document.uri] = (*state, trials)
        return evolve(trials, until=time.monotonic() + seconds)

    @property
    def resolves_edits(self) -> bool:
        """Whether the client asks for the edit of a code action when it is chosen."""
        document = self.client_capabilities.text_document
        support = document.code_action.resolve_support if document and document.code_action else None
        return support is not None and "edit" in support.properties

    @property
    def draws_tables(self) -> bool:
        """Whether the client says how it renders Markdown: those that do draw tables, others show bars."""
        general = self.client_capabilities.general
        return general is not None and general.markdown is not None

    @property
    def trusted(self) -> bool:
        """Whether the client says that this workspace may compile and run its code."""
        return bool(cast("Protocol", self.protocol).options.get("trusted", False))

    def show_again(self, uri: str) -> None:
        """Publish the newest report of a document once more."""
        report = self.session.report(uri) if self.session else None
        if report:
            self._publish(uri, report, all(kernel.refined for kernel in report.kernels))
        workspace = self.client_capabilities.workspace
        if cast("Protocol", self.protocol).pull and workspace and workspace.diagnostics:
            self.workspace_diagnostic_refresh(None)

    def files_changed(self, *, headers: bool) -> None:
        """Files changed on disk; ``headers``: also such as open files may include."""
        if headers and self.session:
            self.session.refresh()
        if self._checks and self._checks.files_changed():
            for document in self.workspace.text_documents.values():
                self.show_again(document.uri)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._made.forget(path_of(uri))
        self._trials.pop(unquote(uri), None)

    def at_exit(self) -> None:
        """End checks and analyses, with their processes."""
        if self._checks:
            self._checks.stop()
        if self.session:
            self.session.stop()
        if self._process:
            self._process.close()

    def _publish_later(self, uri: str, report: FileReport, refined: bool) -> None:
        if self.loop and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._publish, uri, report, refined)

    def _publish(self, uri: str, report: FileReport, refined: bool) -> None:
        document = self.workspace.text_documents.get(unquote(uri))  # pygls keeps them unquoted
        if document is None or document.version != report.version:
            return
        report = self.with_checks(report, document.source)
        if not cast("Protocol", self.protocol).pull:
            place = json.dumps({"uri": uri, "version": report.version})
            found = f'{place[:-1]}, "diagnostics": {self._made.of(report, document)}}}'
            cast("Protocol", self.protocol).notify_json(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, found)
        kernels = [
            {"name": k.name, "verdict": shown_verdict(k), "reasons": list(k.reasons)} for k in report.kernels
        ]
        errors = sum(error.severity is Severity.ERROR for error in report.errors)
        errors += sum(finding.effective_severity is Severity.ERROR for finding in report.findings)
        status = {
            "uri": uri,
            "version": report.version,
            "refined": refined,
            "kernels": kernels,
            "errors": errors,
        }
        self.protocol.notify(f"{SECTION}/fileStatus", status)
        self._refresh_annotations()

    def _refresh_annotations(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def apply_settings(self, editor: Mapping[str, Any]) -> None:
        """Merge file and editor settings; mistakes are shown once, the rest holds."""
        folders = list(self.workspace.folders.values())
        root_uri = folders[0].uri if folders else self.workspace.root_uri  # the latter: of older clients
        root = path_of(root_uri) if root_uri else Path(working_folder())
        loaded, problems = settings_file.load(root, trusted=self.trusted)
        settings, more = config.merge(loaded, editor, "editor settings")
        settings = settings_file.placed(settings, root)
        if not self.trusted and settings.compile_commands is None:
            settings = evolve(settings, compile_commands=config.NO_DATABASE)
        self._tell(problems)
        for problem in more:
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, str(problem)))
        if settings != self.settings or self.session is None:
            self.start_session(settings)

    def _tell(self, problems: Sequence[SettingsProblem]) -> None:
        """The mistakes of settings files, on their lines; those that were mended go."""
        found = {problem.path: [p for p in problems if p.path == problem.path] for problem in problems}
        gone = self._blamed - found.keys()
        self._blamed = {path for path in found if path is not None}
        for path in (*self._blamed, *gone):
            items = [settings_diagnostic(problem) for problem in found.get(path, ())]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri_of(path), items))


def create_server(process: AnalysisProcess | None = None) -> CudaServer:
    """A server with every feature wired. ``process``: the one for its analyses, if there is one already."""
    server = CudaServer(process)
    _wire_documents(server)
    _wire_settings(server)
    _wire_reading(server)
    _wire_dynamic(server)
    return server


def _wire_dynamic(server: CudaServer) -> None:
    def said(ls: CudaServer, text: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        ls.window_show_message(lsp.ShowMessageParams(kind, text))

    def engine(ls: CudaServer) -> str:
        return str(cast("Protocol", ls.protocol).options.get("engine", "auto"))

    @server.command(check_commands.COMMAND)
    async def run(ls: CudaServer, uri: str, kernel: str | int) -> None:
        """``kernel``: its name, or a line (from 0) that it is on."""
        session, document = ls.session, ls.workspace.get_text_document(uri)
        if not ls.trusted:
            return said(ls, check_commands.UNTRUSTED)
        checks = await ls.checks()
        report = session.report(document.uri) if session else None
        found = lenses.kernel_at(report, kernel) if report else None
        text = document.source if found else ""
        job = None
        if session and report and found:
            job = await checks.job(session, report.path, text, found, engine(ls))
        if report is None or found is None or job is None:
            name = kernel if isinstance(kernel, str) else "the code here"
            return said(ls, f"{name} is not analysed yet; mend the errors of the file and run it again")
        told = await checks.run(ls, report, text, job, found, ls.settings)
        ls.show_again(uri)
        run_messages.tell(ls, told, document)

    async def program(ls: CudaServer, uri: str, arguments: list[str] | None) -> None:
        session, document = ls.session, ls.workspace.get_text_document(uri)
        report = session.report(document.uri) if session and ls.trusted else None
        if session is None or report is None:
            return said(ls, "the file is not analysed yet" if ls.trusted else check_commands.UNTRUSTED)
        checks = await ls.checks()
        how = checks.options(engine(ls))
        told = await checks.run_program(ls, report, document.source, session, ls.settings, how, arguments)
        ls.show_again(uri)
        run_messages.tell(ls, told, document)

    @server.command(check_commands.PROGRAM_COMMAND)
    async def run_program(ls: CudaServer, uri: str) -> None:
        await program(ls, uri, None)

    @server.command(check_commands.PROGRAM_WITH_COMMAND)
    async def run_program_with(ls: CudaServer, uri: str, arguments: list[str]) -> None:
        await program(ls, uri, arguments)

    @server.command(check_commands.VERDICTS_COMMAND)
    def tell(ls: CudaServer, uri: str, line: int) -> None:
        report = ls.report(uri)
        said(ls, lenses.told_instances(report, line) if report else "not analysed", lsp.MessageType.Info)

    del run, run_program, run_program_with, tell


def _wire_documents(server: CudaServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: CudaServer, params: lsp.DidOpenTextDocumentParams) -> None:
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

    del initialized, changed, watched


async def _watch_files(ls: CudaServer) -> None:
    """Have the client tell of settings files and headers that change, where it can."""
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace else None
    if watching and watching.dynamic_registration:
        watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = lsp.Registration("files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        await ls.client_register_capability_async(lsp.RegistrationParams([registration]))


async def _pull_settings(ls: CudaServer, pushed: Mapping[str, Any] | None = None) -> None:
    """Ask the client where it can answer; else what it pushed or sent at the start."""
    workspace = ls.client_capabilities.workspace
    editor: Any = pushed
    if workspace and workspace.configuration:
        item = lsp.ConfigurationItem(section=SECTION)
        answers = await ls.workspace_configuration_async(lsp.ConfigurationParams([item]))
        editor = answers[0] if answers else None
    if not editor:
        editor = cast("Protocol", ls.protocol).options.get("settings")
    ls.apply_settings({k: v for k, v in _table(editor).items() if k not in ("server", "trace")})


async def _report_of(ls: CudaServer, session: Session, document: TextDocument) -> FileReport | None:
    """The report of this version, when it comes soon."""
    known = (document.uri, document.version, document.source)
    report = await asyncio.to_thread(session.settled, *known, _ACTIONS_WAIT)
    return None if report is None else ls.with_checks(report, document.source)


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _wire_reading(server: CudaServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def show(ls: CudaServer, params: lsp.HoverParams) -> lsp.Hover | None:
        document = ls.workspace.get_text_document(params.text_document.uri)
        report = ls.report(document.uri)
        where = from_client(params.position, document)
        text = hover.hover_text(report, where, tables=ls.draws_tables) if report else None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lens(ls: CudaServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        report = ls.report(params.text_document.uri)
        if report is None or not ls.settings.code_lens:
            return []
        document = ls.workspace.get_text_document(params.text_document.uri)
        shown = lenses.lenses(report, document, ls.runs(report, document.source))
        built = bool(ls.settings.build_command)
        return [*shown, *(lenses.program_lens(report, document, built) if report.kernels else [])]

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay(ls: CudaServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        report = ls.report(params.text_document.uri) if ls.settings.inlay_hints else None
        if report is None:
            return []
        lines = (params.range.start.line, params.range.end.line)
        document = ls.workspace.get_text_document(params.text_document.uri)
        return lenses.hints(report, document, lines, ls.runs(report, document.source))

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
        report = await _report_of(ls, session, document)
        if report is None:
            return []  # the client asks again when it has the findings of its newest text
        only = tuple(getattr(kind, "value", kind) for kind in params.context.only or ())
        lines = params.range.start.line, params.range.end.line
        asks = bool(cast("Protocol", ls.protocol).options.get("asksLaunch"))
        wanted = actions.Wanted(*lines, only, ls.resolves_edits, asks, session.reports())
        # The analysis thread tries repairs when it has nothing else to do, and as fast as edits.
        trials = ls.trials(session, document, _VERIFY_WAIT)
        return await asyncio.to_thread(actions.actions, report, document, wanted, trials)

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(ls: CudaServer, action: lsp.CodeAction) -> lsp.CodeAction:
        data = _table(action.data)
        known = ls.workspace.text_documents.get(unquote(str(data.get("uri"))))
        session = ls.session
        if known is None or session is None or known.version != data.get("version"):
            return action
        document = as_it_is(known)
        report = await _report_of(ls, session, document)
        if report is not None:
            trials = ls.trials(session, document, _CHOSEN_WAIT)
            await asyncio.to_thread(actions.resolved, action, report, document, trials)
        return action

    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(inter_file_dependencies=False, workspace_diagnostics=False, identifier=SECTION),
    )
    async def pull(
        ls: CudaServer, params: lsp.DocumentDiagnosticParams
    ) -> lsp.RelatedFullDocumentDiagnosticReport | lsp.RelatedUnchangedDocumentDiagnosticReport:
        document = as_it_is(ls.workspace.get_text_document(params.text_document.uri))
        report = None
        if (session := ls.session) is not None:
            known = (document.uri, document.version, document.source)
            report = await asyncio.to_thread(session.settled, *known, _PULL_WAIT)
            report = report or session.report(document.uri)
            report = ls.with_checks(report, document.source) if report else None
        items = diagnostics(report, document, ls.settings.documentation) if report else []
        result = f"{document.version}:{hash(str(items))}"
        if params.previous_result_id == result:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
        return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=result)

    del show, lens, inlay, act, resolve, pull
