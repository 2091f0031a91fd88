"""All files of the client's folders checked on request, as the command line does it, in a process of its own.

What it finds is published for files that nobody has open; those that are open are analysed as they are typed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from attrs import define, field
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from cuda_lsp.children import NEUTRAL_FOLDER, python_command
from cuda_lsp.model import Code, Severity
from cuda_lsp.report.explain import page_url
from cuda_lsp.server.client_progress import Progress
from cuda_lsp.server.diagnostics import SOURCE
from cuda_lsp.server.positions import path_of, uri_of

_POLL = 0.1
_Json = Mapping[str, Any]


@define
class WorkspaceCheck:
    """One check at a time. ``told``: files with diagnostics of the last one."""

    told: set[str] = field(factory=set[str])
    running: bool = False

    async def run(self, server: LanguageServer, folders: Sequence[Path], base: str) -> str | None:
        """Check them with progress in the client; what to tell the user, None: it was cancelled.

        ``base``: where codes are documented. Runs what settings of the folders name: for trusted ones alone.
        """
        if self.running:
            return "the workspace is being checked already"
        self.running = True
        progress = await Progress.begin(server, "Checking the CUDA files of the workspace")
        try:
            said = await _output(folders, progress)
            if said is None:
                progress.end("cancelled")
                return None
            output, problem = said
            progress.end("done")
            if not output:
                return problem or "the check said nothing"
            return self._publish(server, json.loads(output)["files"], base)
        finally:
            self.running = False

    def _publish(self, server: LanguageServer, files: Iterable[_Json], base: str) -> str:
        files = list(files)
        found = {uri_of(Path(file["path"])): _diagnostics(file, base) for file in files}
        opened = server.workspace.text_documents
        shown = {uri for uri, diagnostics in found.items() if diagnostics and unquote(uri) not in opened}
        for uri in shown | {uri for uri in self.told if unquote(uri) not in opened}:
            diagnostics = found.get(uri, []) if uri in shown else []
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))
        self.told = shown
        kernels = [kernel["verdict"] for file in files for kernel in file["kernels"]]
        counts = ", ".join(f"{kernels.count(v)} {v}" for v in ("racy", "undecided", "race-free"))
        findings = sum(len(file["findings"]) for file in files)
        return f"{len(files)} files, {len(kernels)} kernels: {counts}; {findings} findings"


async def _output(folders: Sequence[Path], progress: Progress) -> tuple[str, str] | None:
    """What ``check`` prints, and its last complaint; None: somebody has cancelled it."""
    options = ("check", "--format", "json", "--fail-on", "never")
    process = await asyncio.create_subprocess_exec(
        *python_command("cuda_lsp.cli.child", *options, *map(str, folders)),
        cwd=NEUTRAL_FOLDER,
        stdin=asyncio.subprocess.DEVNULL,  # ours are the editor's
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    ending = asyncio.ensure_future(process.communicate())
    try:
        while not (await asyncio.wait({ending}, timeout=_POLL))[0]:
            if progress.cancelled():
                return None
        output, complaints = ending.result()
        lines = complaints.decode("utf-8", "replace").strip().splitlines()
        return output.decode("utf-8", "replace"), lines[-1] if lines else ""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes of the files
            await ending


def _diagnostics(file: _Json, base: str) -> list[lsp.Diagnostic]:
    """Of the exchange format."""
    findings = [_finding(finding, base) for finding in file["findings"]]
    errors = [
        lsp.Diagnostic(
            _range(error["range"]), error["message"], lsp.DiagnosticSeverity.Information, source=SOURCE
        )
        for error in file["errors"]
    ]
    return [*findings, *errors]


def _finding(finding: _Json, base: str) -> lsp.Diagnostic:
    page = page_url(Code(finding["code"]), base)
    related = [
        lsp.DiagnosticRelatedInformation(
            lsp.Location(uri_of(Path(place["path"])), _range(place["range"])), place["message"]
        )
        for place in finding["related"]
    ]
    return lsp.Diagnostic(
        range=_range(finding["range"]),
        message=finding["message"],
        severity=lsp.DiagnosticSeverity(int(Severity[finding["severity"].upper()])),
        code=finding["code"],
        code_description=lsp.CodeDescription(page) if page else None,
        source=SOURCE,
        related_information=related or None,
    )


def _range(extent: _Json | None) -> lsp.Range:
    if extent is None:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    start, end = extent["start"], extent["end"]
    return lsp.Range(
        lsp.Position(start["line"] - 1, start["column"] - 1), lsp.Position(end["line"] - 1, end["column"] - 1)
    )


def folders_of(uris: Iterable[str | None]) -> list[Path]:
    """The client's folders on this machine."""
    return [path_of(uri) for uri in uris if uri and uri.startswith("file:")]
