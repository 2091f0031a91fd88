"""The commands of the server, wired: runs of kernels and programs, and what is shown on request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

from attrs import asdict
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.workspace import TextDocument

from cuda_lsp.model import FileReport
from cuda_lsp.overloads import why_not_run
from cuda_lsp.server import check_commands, close_ups, lenses, run_messages
from cuda_lsp.server.client_progress import Progress, UserCancelled
from cuda_lsp.server.cuda_server import SECTION, CudaServer
from cuda_lsp.server.documents import as_it_is
from cuda_lsp.server.positions import uri_of
from cuda_lsp.server.pygls_fixes import Protocol
from cuda_lsp.server.session import Session
from cuda_lsp.server.trials import Trials
from cuda_lsp.server.workspace_check import folders_of

log = logging.getLogger(__name__)

_Look = Callable[[Session, FileReport, TextDocument, int, Trials], Awaitable["close_ups.Picture | None"]]
_begun: set[asyncio.Task[None]] = set()  # commands that were answered before they ended
_REPAIR_WAIT = 10.0  # seconds for the picture of a mended text


def wire_commands(server: CudaServer) -> None:
    """Register them all."""

    def said(ls: CudaServer, text: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        ls.window_show_message(lsp.ShowMessageParams(kind, text))

    async def outcome(ls: CudaServer, check: Awaitable[run_messages.Told], document: TextDocument) -> None:
        """Tell what a check comes to; nothing where the user cancels it."""
        with contextlib.suppress(UserCancelled):
            told = await check
            for shown in list(ls.workspace.text_documents):
                ls.show_again(shown)
            run_messages.tell(ls, told, document)

    @server.command(check_commands.COMMAND)
    async def run(ls: CudaServer, uri: str, kernel: str | int) -> None:
        """``kernel``: its name, or a line (from 0) that it is on."""
        session, document = ls.session, ls.workspace.get_text_document(uri)
        if not ls.trusted:
            return said(ls, check_commands.UNTRUSTED)
        checks = await ls.checks()
        report = session.report(document.uri) if session else None
        found = lenses.kernel_at(report, kernel) if report else None
        if report and found and (why := why_not_run(found, report)):
            return said(ls, why)
        text = document.source if found else ""
        job = None
        if session and report and found:
            job = await checks.job(session, report.path, text, found, ls.engine)
        if report is None or found is None or job is None:
            name = kernel if isinstance(kernel, str) else "the code here"
            return said(ls, f"{name} is not analysed yet; mend the errors of the file and run it again")
        checked = checks.run(ls, report, text, job, found, ls.settings_at(report.path))
        return await _answered(ls, outcome(ls, checked, document))

    async def program(ls: CudaServer, uri: str, arguments: list[str] | None) -> None:
        session, document = ls.session, ls.workspace.get_text_document(uri)
        report = session.report(document.uri) if session and ls.trusted else None
        if session is None or report is None:
            return said(ls, "the file is not analysed yet" if ls.trusted else check_commands.UNTRUSTED)
        checks = await ls.checks()
        opened = [(report, document.source), *ls.opened(but=document.uri)]
        how = checks.options(ls.engine)
        checked = checks.run_program(ls, opened, session, ls.settings_at, how, arguments)
        return await _answered(ls, outcome(ls, checked, document))

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

    async def picture(ls: CudaServer, uri: str, line: int, look: _Look, nothing: str) -> None:
        document = as_it_is(ls.workspace.get_text_document(uri))
        session, report = ls.session, ls.report(uri)
        drawn = None
        if session is not None and report is not None:
            looking = look(session, report, document, line, ls.trials(session, document, _REPAIR_WAIT))
            try:
                async with Progress.shown(ls, f"Drawing line {line}, and its repair") as progress:
                    drawn = await progress.unless_cancelled(looking)
            except UserCancelled:
                return None
        if drawn is None:
            return said(ls, nothing)
        if ls.shows_pictures:
            tables = [asdict(table) for table in drawn.tables]
            shown = {
                "uri": uri,
                "title": drawn.title,
                "svg": drawn.svg,
                "words": drawn.words,
                "tables": tables,
            }
            return ls.protocol.notify(f"{SECTION}/picture", shown)
        if not await _opened(ls, drawn.path):
            said(ls, f"The picture: {drawn.path} ({drawn.words})", lsp.MessageType.Info)

    @server.command(check_commands.PICTURE_COMMAND)
    async def banks(ls: CudaServer, uri: str, line: int) -> None:
        """``line`` from 1."""
        nothing = f"no access to shared memory on line {line} whose addresses are known"
        await _answered(ls, picture(ls, uri, line, close_ups.bank_picture, nothing))

    @server.command(check_commands.INTERVALS_COMMAND)
    async def intervals(ls: CudaServer, uri: str, line: int) -> None:
        """``line`` from 1."""
        nothing = f"no race on line {line} of two threads that are known"
        await _answered(ls, picture(ls, uri, line, close_ups.interval_picture, nothing))

    @server.command(check_commands.WORKSPACE_COMMAND)
    async def check_workspace(ls: CudaServer) -> None:
        folders = folders_of(ls.roots)
        if not ls.trusted or not folders:
            return said(ls, check_commands.UNTRUSTED if not ls.trusted else "no folder is open")
        return await _answered(ls, checked_workspace(ls, folders))

    async def checked_workspace(ls: CudaServer, folders: list[Path]) -> None:
        told = await ls.workspace_check.run(ls, folders, ls.settings.documentation)
        if told is not None:
            said(ls, told, lsp.MessageType.Info)
        if told is not None and ls.workspace_check.pulled and ls.pulls_when_told:
            ls.workspace_diagnostic_refresh(None)

    del run, run_program, run_program_with, tell, banks, intervals, check_workspace


async def _answered(ls: CudaServer, work: Coroutine[Any, Any, None]) -> None:
    """Do the work of a command; behind its answer for a client that waits for answers (``answersAtOnce``)."""
    if not cast("Protocol", ls.protocol).options.get("answersAtOnce"):
        return await work
    task = asyncio.ensure_future(work)
    _begun.add(task)
    task.add_done_callback(_ended)
    return None


def _ended(task: asyncio.Task[None]) -> None:
    _begun.discard(task)
    problem = None if task.cancelled() else task.exception()
    if problem is not None:
        log.error("a command failed", exc_info=problem)


async def _opened(ls: CudaServer, path: Path) -> bool:
    """Whether the client has shown a file in a program of its user's. Editors in a terminal may have none."""
    window = ls.client_capabilities.window
    if not (window and window.show_document and window.show_document.support):
        return False
    try:
        shown = await ls.window_show_document_async(lsp.ShowDocumentParams(uri_of(path), external=True))
    except JsonRpcException as refused:
        log.info("the client does not show %s: %s", path, refused)
        return False
    return shown.success
