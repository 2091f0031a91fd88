"""The server of one client: its settings, its session, its checks, and what it publishes."""

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
from cuda_lsp.server.analysis.process import AnalysisProcess
from cuda_lsp.server.diagnostics import DiagnosticsJson, diagnostics, identity, settings_diagnostic
from cuda_lsp.server.positions import path_of, uri_of
from cuda_lsp.server.pygls_fixes import Protocol, Server
from cuda_lsp.server.session import Session
from cuda_lsp.server.trials import Trials
from cuda_lsp.server.verdicts import shown_verdict
from cuda_lsp.server.workspace_check import WorkspaceCheck

if TYPE_CHECKING:
    from cuda_lsp.server.dynamic_check import DynamicChecks
    from cuda_lsp.server.run_outcomes import LastRun

SECTION = "cuda-lsp"
_IDLE = 1.0  # seconds without an edit after which a click on "Run dynamic check" is prepared for


class CudaServer(Server):
    """The server of one client."""

    def __init__(self, process: AnalysisProcess | None = None) -> None:
        super().__init__(SECTION, __version__)
        self._process = process
        self.settings = Settings()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.session: Session | None = None
        self.watches_refused = False
        self.workspace_check = WorkspaceCheck()
        self._checks: DynamicChecks | None = None
        self._preparing: asyncio.TimerHandle | None = None
        self._prepared: asyncio.Task[None] | None = None
        self._wanted = False  # somebody has asked for a dynamic check
        self._editor: tuple[Mapping[str, Any], ...] = ()  # settings of the client, by folder
        self._nested: set[Path] = set()  # folders with settings files below those of the client
        self._asked: set[Path] = set()  # folders in which files were opened
        self._blamed: set[Path] = set()  # settings files that something was told of
        self._pulled: dict[str, tuple[int | None, str]] = {}  # what clients pulled last: version, identity
        self._trials: dict[str, tuple[Session, int | None, str, Trials]] = {}
        self._made = DiagnosticsJson(cast("Protocol", self.protocol).encode)

    def start_session(self, settings: Settings) -> None:
        """(Re)start the analysis, with the texts that are open."""
        if self.session:
            self.session.stop()
        self.settings = settings
        self.workspace_check.changed()
        self._made = DiagnosticsJson(cast("Protocol", self.protocol).encode, settings.documentation)
        self.session, self._process = Session(settings, self._publish_later, self._process), None
        for document in self.workspace.text_documents.values():
            self.changed(document)

    def changed(self, document: TextDocument) -> None:
        """Analyse the newest text of a document."""
        if self._preparing:
            self._preparing.cancel()
        if self.session:
            self.session.change(document.uri, path_of(document.uri), document.source, document.version)

    def report(self, uri: str) -> FileReport | None:
        """The newest report of a document, with what dynamic checks of its kernels saw."""
        report = self.session.report(uri) if self.session else None
        return self.with_checks(report, self._text(uri)) if report else None

    async def settled(self, document: TextDocument, seconds: float) -> FileReport | None:
        """The report of this version of a document, when it comes so soon."""
        known = (document.uri, document.version, document.source)
        report = await asyncio.to_thread(self.session.settled, *known, seconds) if self.session else None
        return None if report is None else self.with_checks(report, document.source)

    async def first_settled(self, document: TextDocument, seconds: float) -> FileReport | None:
        """Also where the client has yet to say what its settings are."""
        until = time.monotonic() + seconds
        while self.session is None and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return await self.settled(document, until - time.monotonic())

    def opened(self, but: str) -> list[tuple[FileReport, str]]:
        """The reports of all other documents that are of their texts as they are, with these."""
        session, documents = self.session, list(self.workspace.text_documents.values())
        reports = ((d, session.report(d.uri)) for d in documents if session and d.uri != but)
        return [(r, d.source) for d, r in reports if r is not None and r.version == d.version]

    def _text(self, uri: str) -> str:
        document = self.workspace.text_documents.get(unquote(uri))
        return document.source if document else ""

    async def checks(self) -> DynamicChecks:
        """Dynamic checks, for who is about to run one: there is nothing to prepare any more."""
        self._wanted = True
        if self._preparing:
            self._preparing.cancel()
        return await self._loaded()

    async def _loaded(self) -> DynamicChecks:
        """Half a second of imports, the first time."""
        module = await asyncio.to_thread(import_module, "cuda_lsp.server.dynamic_check")
        checks: DynamicChecks = self._checks or module.DynamicChecks()
        self._checks = checks
        return checks

    def _prepare_soon(self, path: Path) -> None:
        """Have what a first dynamic check would wait for: once, in a trusted workspace, when nobody types."""
        if self._prepared is not None or self._wanted or not self.trusted or self.loop is None:
            return
        if self._preparing:
            self._preparing.cancel()
        self._preparing = self.loop.call_later(_IDLE, self._prepare, path)

    def _prepare(self, path: Path) -> None:
        async def prepare() -> None:
            checks = await self._loaded()
            if self.session and not self._wanted:
                settings = self.settings_at(path)
                await asyncio.to_thread(checks.prepare, self.session, path, self.engine, settings)

        self._prepared = asyncio.ensure_future(prepare())

    @property
    def engine(self) -> str:
        """What the client wants dynamic checks to run on."""
        return str(cast("Protocol", self.protocol).options.get("engine", "auto"))

    def with_checks(self, report: FileReport, text: str) -> FileReport:
        """The report of a text, with what dynamic checks of its kernels saw."""
        return self._checks.overlay(report, text, self.settings_at(report.path)) if self._checks else report

    def runs(self, report: FileReport, text: str) -> Mapping[str, LastRun]:
        """What the last dynamic checks of kernels came to, by name."""
        return self._checks.runs(report, text, self.settings_at(report.path)) if self._checks else {}

    def trials(self, session: Session, document: TextDocument, seconds: float) -> Trials:
        """Trials of repairs of a document as it is, for so long; what earlier ones found is known to them."""
        known = self._trials.get(document.uri)
        state = (session, document.version, document.source)
        trials = known[3] if known and known[:3] == state else Trials(session, document.uri, document.version)
        self._trials[document.uri] = (*state, trials)
        return trials.lasting(seconds)

    @property
    def resolves_edits(self) -> bool:
        """Whether the client asks for the edit of a code action when it is chosen."""
        document = self.client_capabilities.text_document
        support = document.code_action.resolve_support if document and document.code_action else None
        return support is not None and "edit" in support.properties

    @property
    def pulls_when_told(self) -> bool:
        """Whether the client can be told that there is something to pull."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)

    @property
    def hears_of_files(self) -> bool:
        """Whether the client can tell of files that change on the disk."""
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        return bool(watching and watching.dynamic_registration) and not self.watches_refused

    @property
    def refreshes_hints(self) -> bool:
        """Whether the client can be told to ask for inlay hints again."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support)

    @property
    def draws_tables(self) -> bool:
        """Whether the client says how it renders Markdown: those that do draw tables, others show bars."""
        general = self.client_capabilities.general
        return general is not None and general.markdown is not None

    @property
    def shows_pictures(self) -> bool:
        """Whether the client has a view for them; others get files."""
        return bool(cast("Protocol", self.protocol).options.get("pictures"))

    @property
    def trusted(self) -> bool:
        """Whether the client says that this workspace may compile and run its code."""
        return bool(cast("Protocol", self.protocol).options.get("trusted", False))

    def show_again(self, uri: str) -> None:
        """Publish the newest report of a document once more."""
        report = self.session.report(uri) if self.session else None
        if report:
            self._publish(uri, report, all(kernel.refined for kernel in report.kernels))
            self._refresh_pulled(uri)

    def pulled(self, document: TextDocument) -> tuple[list[lsp.Diagnostic], str]:
        """The newest diagnostics of a document, for who pulls them, and their identity."""
        report = self.report(document.uri)
        items = diagnostics(report, document, self.settings.documentation) if report else []
        known = identity(items, document.version)
        self._pulled[document.uri] = document.version, known
        return items, known

    def _refresh_pulled(self, uri: str) -> None:
        """Have the client pull again where it has something else of this version than there is now."""
        document, report = self.workspace.text_documents.get(unquote(uri)), self.report(uri)
        before = self._pulled.get(uri)
        if (
            not self.pulls_when_told
            or before is None
            or document is None
            or report is None
            or before[0] != document.version
        ):
            return
        items = diagnostics(report, document, self.settings.documentation)
        if before[1] != identity(items, document.version):
            del self._pulled[uri]  # once, until it has pulled
            self.workspace_diagnostic_refresh(None)

    def files_changed(self, *, headers: bool) -> None:
        """Files changed on disk; ``headers``: also such as open files may include."""
        self.workspace_check.changed()
        if headers and self.session:
            self.session.refresh()
        if self._checks and self._checks.files_changed():
            for document in self.workspace.text_documents.values():
                self.show_again(document.uri)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._made.forget(path_of(uri))
        self._trials.pop(uri, None)
        self._pulled.pop(uri, None)

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
        if refined:
            self._refresh_pulled(uri)
            if kernels:
                self._prepare_soon(report.path)
        self._refresh_annotations()

    def _refresh_annotations(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)
        if self.refreshes_hints:
            self.workspace_inlay_hint_refresh(None)

    @property
    def roots(self) -> list[str | None]:
        """URIs of the client's folders, the main one first; None: of where the server was started."""
        folders = [folder.uri for folder in self.workspace.folders.values()]
        return [*folders] or [self.workspace.root_uri]  # the latter: of older clients

    def apply_settings(self, editor: Sequence[Mapping[str, Any]]) -> None:
        """Merge file and editor settings, the latter of each of ``roots``; mistakes are shown once.

        Each folder of the client has its own, and so has each folder below it with a settings file in which a
        file is open.
        """
        opened = {path_of(uri).parent for uri in self.workspace.text_documents}
        self._nested = {*filter(None, map(self._settings_folder, opened))}
        told: list[SettingsProblem] = []
        shown: list[str] = []
        found: list[tuple[Path, Settings]] = []
        for uri, values in zip(self.roots, editor, strict=True):
            root = path_of(uri) if uri else Path(working_folder())
            nested = sorted(folder for folder in self._nested if folder.is_relative_to(root))
            for folder in (root, *nested):
                loaded, problems = settings_file.load(folder, trusted=self.trusted)
                settings, more = config.merge(loaded, values, "editor settings")
                settings = settings_file.placed(settings, folder)
                if not self.trusted and settings.compile_commands is None:
                    settings = evolve(settings, compile_commands=config.NO_DATABASE)
                told += problems
                shown += map(str, more)
                found.append((folder, settings))
        self._editor = tuple(editor)
        self._tell(told)
        for problem in dict.fromkeys(shown):
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, problem))
        main = found[0][1]
        settings = evolve(main, folders=tuple(found)) if len(found) > 1 else main
        if settings != self.settings or self.session is None:
            self.start_session(settings)

    def opened_in(self, folder: Path) -> None:
        """A file of this folder was opened: a settings file near it counts from now on."""
        if folder not in self._asked and self._editor:
            self._asked.add(folder)
            if self._settings_folder(folder) not in (None, *self._nested):
                self.apply_settings(self._editor)

    def reread_settings(self) -> None:
        """Look at the settings files again."""
        if self._editor:
            self.apply_settings(self._editor)

    def _settings_folder(self, folder: Path) -> Path | None:
        """Where the settings file of a folder lies, if that is below one of the client's folders."""
        nearest = settings_file.find_settings_file(folder)
        roots = [path_of(uri) for uri in self.roots if uri]
        below = nearest is not None and any(root in nearest.parent.parents for root in roots)
        return nearest.parent if nearest is not None and below else None

    def settings_at(self, path: Path) -> Settings:
        """Those of one file."""
        return self.settings.of_file(path) if self.settings.folders else self.settings

    def _tell(self, problems: Sequence[SettingsProblem]) -> None:
        """The mistakes of settings files, on their lines; those that were mended go."""
        found = {problem.path: [p for p in problems if p.path == problem.path] for problem in problems}
        gone = self._blamed - found.keys()
        self._blamed = {path for path in found if path is not None}
        for path in (*self._blamed, *gone):
            items = [settings_diagnostic(problem) for problem in found.get(path, ())]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri_of(path), items))
