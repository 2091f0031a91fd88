"""All files of the client's folders checked on request, as the command line does it, in a process of its own.

What it finds is published for files that nobody has open, unless the client pulls it; those that are open are
analysed as they are typed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from attrs import define, field, frozen
from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec, TextDocument

from cuda_lsp.children import NEUTRAL_FOLDER, python_command
from cuda_lsp.files import read_text
from cuda_lsp.model import Code, LaunchConfig, LaunchSource, Position, Severity, SourceRange
from cuda_lsp.report.explain import page_url
from cuda_lsp.server.client_progress import Progress, UserCancelled
from cuda_lsp.server.diagnostics import SOURCE
from cuda_lsp.server.documents import Document
from cuda_lsp.server.positions import path_of, to_client, uri_of

_Json = Mapping[str, Any]
_KEPT = 20.0  # seconds for which a check holds for who pulls again: nobody hears of all that it depends on


class NotChecked(Exception):
    """The check did not come to an end; why."""


@frozen
class Checked:
    """What a check found: diagnostics of files by URI, launches that the source tells, a line for the user.

    ``folders``, ``base`` and ``changes`` are what it was asked; ``ended``: when.
    """

    found: Mapping[str, list[lsp.Diagnostic]]
    launches: tuple[LaunchConfig, ...]
    summary: str
    asked: tuple[Sequence[Path], str, int]
    ended: float = field(factory=time.monotonic)


@define
class WorkspaceCheck:
    """One check at a time. ``told``: files with published diagnostics of the last one.

    ``pulled``: the client pulls what is found, so that nothing is published. Of trusted folders alone: what
    their settings name is run.
    """

    told: set[str] = field(factory=set[str])
    pulled: bool = False
    _lock: asyncio.Lock = field(factory=asyncio.Lock)
    _changes: int = 0
    _last: Checked | None = None

    @property
    def launches(self) -> tuple[LaunchConfig, ...]:
        """Those of the last check, each once, the commonest first."""
        return self._last.launches if self._last is not None else ()

    def changed(self) -> None:
        """Files or settings changed: what is known may no longer hold."""
        self._changes += 1

    async def run(self, server: LanguageServer, folders: Sequence[Path], base: str) -> str | None:
        """Check them with progress in the client; what to tell the user, None: it was cancelled.

        ``base``: where codes are documented.
        """
        if self._lock.locked():
            return "the workspace is being checked already"
        try:
            async with self._lock:
                checked = await self._checked(server, folders, base)
        except UserCancelled:
            return None
        except NotChecked as problem:
            return str(problem)
        self._publish(server, {} if self.pulled else checked.found)
        return checked.summary

    async def pull(
        self, server: LanguageServer, folders: Sequence[Path], base: str, token: int | str | None, hears: bool
    ) -> Mapping[str, list[lsp.Diagnostic]]:
        """What is found in all files now; checked again only where that may be something else than before.

        ``token``: the client's progress; ``hears``: it tells of files that change. Raises UserCancelled and
        NotChecked.
        """
        async with self._lock:
            known, now = self._last, (folders, base, self._changes)
            recent = known is not None and known.asked == now and time.monotonic() - known.ended < _KEPT
            if known is None or not (hears and recent):
                known = await self._checked(server, folders, base, token)
        if not self.pulled:
            self.pulled = True
            self._publish(server, {})
        return known.found

    async def _checked(
        self, server: LanguageServer, folders: Sequence[Path], base: str, token: int | str | None = None
    ) -> Checked:
        asked = (folders, base, self._changes)
        async with Progress.shown(server, "Checking the CUDA files of the workspace", token) as progress:
            output, problem = await progress.unless_cancelled(_output(folders))
            if not output:
                raise NotChecked(problem or "the check said nothing")
            files: list[_Json] = json.loads(output)["files"]
            told = _Told(base, server.workspace.position_codec)
            found = await asyncio.to_thread(lambda: {_uri(file): told.of(file) for file in files})
        self._last = Checked(found, _launches(files), _summary(files), asked)
        return self._last

    def _publish(self, server: LanguageServer, found: Mapping[str, list[lsp.Diagnostic]]) -> None:
        opened = server.workspace.text_documents
        shown = {uri for uri, diagnostics in found.items() if diagnostics and unquote(uri) not in opened}
        for uri in shown | {uri for uri in self.told if unquote(uri) not in opened}:
            diagnostics = found.get(uri, []) if uri in shown else []
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))
        self.told = shown


def _launches(files: Sequence[_Json]) -> tuple[LaunchConfig, ...]:
    told = (kernel["launch"] for file in files for kernel in file["kernels"] if kernel["launch"])
    shapes = Counter(
        (tuple(la["block"]), la["grid"] and tuple(la["grid"]), la["dynamic_shared"])
        for la in told
        if not la["assumed"]
    )
    return tuple(LaunchConfig(*shape, LaunchSource.PROGRAM) for shape, _ in shapes.most_common())


def _summary(files: Sequence[_Json]) -> str:
    kernels = [kernel["verdict"] for file in files for kernel in file["kernels"]]
    counts = ", ".join(f"{kernels.count(v)} {v}" for v in ("racy", "undecided", "race-free"))
    findings = sum(len(file["findings"]) for file in files)
    return f"{len(files)} files, {len(kernels)} kernels: {counts}; {findings} findings"


async def _output(folders: Sequence[Path]) -> tuple[str, str]:
    """What ``check`` prints, and its last complaint. It ends with who waits for it."""
    options = ("check", "--format", "json", "--fail-on", "never")
    process = await asyncio.create_subprocess_exec(
        *python_command("cuda_lsp.cli.child", *options, *map(str, folders)),
        cwd=NEUTRAL_FOLDER,
        stdin=asyncio.subprocess.DEVNULL,  # ours are the editor's
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, complaints = await process.communicate()
        lines = complaints.decode("utf-8", "replace").strip().splitlines()
        return output.decode("utf-8", "replace"), lines[-1] if lines else ""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes of the files
            await process.wait()


@define
class _Told:
    """Files of the exchange format as diagnostics in the client's units; reads the lines that they are on.

    ``base``: where codes are documented.
    """

    _base: str
    _codec: PositionCodec
    _read: dict[Path, TextDocument | None] = field(factory=dict[Path, TextDocument | None])

    def of(self, file: _Json) -> list[lsp.Diagnostic]:
        """All that is found in one file, and what could not be done with it."""
        path = Path(file["path"])
        findings = [self._finding(finding, path) for finding in file["findings"]]
        return [*findings, *(self._error(error, path) for error in file["errors"])]

    def _finding(self, finding: _Json, path: Path) -> lsp.Diagnostic:
        page = page_url(Code(finding["code"]), self._base)
        related = [
            lsp.DiagnosticRelatedInformation(self._location(place), place["message"])
            for place in finding["related"]
        ]
        return lsp.Diagnostic(
            range=self._range(finding["range"], path),
            message=finding["message"],
            severity=_severity(finding),
            code=finding["code"],
            code_description=lsp.CodeDescription(page) if page else None,
            source=SOURCE,
            related_information=related or None,
        )

    def _error(self, error: _Json, path: Path) -> lsp.Diagnostic:
        message, related = error["message"], None
        start = lsp.Position(0, 0)
        place = lsp.Range(start, start)
        if error["range"] is not None and Path(error["path"]) == path:
            place = self._range(error["range"], path)
        elif error["range"] is not None:  # of a header: the place is a link
            related = [lsp.DiagnosticRelatedInformation(self._location(error), message)]
            message = f"{Path(error['path']).name}:{error['range']['start']['line']}: {message}"
        return lsp.Diagnostic(
            place, message, severity=_severity(error), source=SOURCE, related_information=related
        )

    def _location(self, place: _Json) -> lsp.Location:
        path = Path(place["path"])
        return lsp.Location(uri_of(path), self._range(place["range"], path))

    def _range(self, extent: _Json, path: Path) -> lsp.Range:
        if path not in self._read:
            self._read[path] = self._document(path)
        start, end = (Position(extent[name]["line"], extent[name]["column"]) for name in ("start", "end"))
        return to_client(SourceRange(path, start, end), self._read[path])

    def _document(self, path: Path) -> TextDocument | None:
        """None: the file is gone since it was checked, and its columns stay what they are."""
        try:
            return Document(uri_of(path), read_text(path), position_codec=self._codec)
        except OSError:
            return None


def _severity(told: _Json) -> lsp.DiagnosticSeverity:
    return lsp.DiagnosticSeverity(int(Severity[told["severity"].upper()]))


def _uri(file: _Json) -> str:
    return uri_of(Path(file["path"]))


def folders_of(uris: Iterable[str | None]) -> list[Path]:
    """The client's folders on this machine."""
    return [path_of(uri) for uri in uris if uri and uri.startswith("file:")]
