"""Work-arounds for pygls 2.1 and lsprotocol 2025.0, each until upstream changes.

1. Lines end with LF, CRLF or CR only: ``str.splitlines`` also cuts at form feed, NEL and others, and
   incremental edits would then land in the wrong place.
2. ``shutdown`` with requests in flight: they are cancelled first (upstream iterates a changing dict).
3. Notifications whose JSON is there already are written as they are.
4. After ``exit`` nothing is written; the exit status says whether ``shutdown`` came before; worker threads
   are not waited for.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator
from typing import Any, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.workspace import TextDocument, Workspace

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Document(TextDocument):
    """A text document whose lines are LSP's, cut once per text."""

    _cut: tuple[str, tuple[str, ...]] | None = None

    @property
    def lines(self) -> tuple[str, ...]:  # type: ignore[override]
        """The lines with their ends, cut at LF, CRLF and CR."""
        text = self.source
        if self._cut is None or self._cut[0] is not text:
            self._cut = (text, tuple(_LINE.findall(text)))
        return self._cut[1]


class Documents(Workspace):
    """A workspace of ``Document``."""

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        return Document(
            uri=doc_uri,
            source=source,
            version=version,
            language_id=language_id,
            sync_kind=self._sync_kind,
            position_codec=self._position_codec,
        )


class Protocol(LanguageServerProtocol):
    """The protocol with the work-arounds.

    ``options``: the client's initializationOptions. ``pull``: it asked to pull diagnostics instead of
    having them pushed (never both).
    """

    closed = False
    pull = False
    options: dict[str, Any]

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, Any]:
        """Take the client's options, and no pull diagnostics unless they ask for them."""
        given: Any = params.initialization_options
        self.options = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        self.pull = self.options.get("diagnostics") == "pull"
        steps = cast("Generator[Any, Any, Any]", super().lsp_initialize(params))
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as stop:
                self._use_documents()
                if not self.pull:
                    stop.value.capabilities.diagnostic_provider = None
                return stop.value
            self._use_documents()
            answer = yield step

    def encode(self, value: Any) -> str:
        """One of the protocol's types as JSON."""
        return json.dumps(value, default=self._serialize_message)

    def notify_json(self, method: str, params: str) -> None:
        """A notification whose parameters are JSON already, over stdio."""
        if self.writer is not None and not self.closed:
            body = f'{{"jsonrpc": "{self.VERSION}", "method": "{method}", "params": {params}}}'.encode()
            self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _use_documents(self) -> None:
        if self._workspace is not None and type(self._workspace) is Workspace:
            self._workspace.__class__ = Documents

    @lsp_method(lsp.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, Any]:
        """Cancel the requests in flight, then shut down."""
        pending = cast("dict[Any, Any]", self._request_futures)
        for number, future in list(pending.items()):
            if number != self.msg_id and not future.done():
                future.cancel()
        upstream = cast("Any", super().lsp_shutdown)  # pyright: ignore[reportUnknownMemberType]
        yield from upstream(*args)

    @lsp_method(lsp.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, Any]:
        """End with 0 after ``shutdown``, else with 1; nothing is written from here on."""
        self.closed = True
        cast("Server", self._server).exit_code = 0 if self._shutdown else 1
        upstream = cast("Any", super().lsp_exit)  # pyright: ignore[reportUnknownMemberType]
        yield from upstream(*args)

    def _send_data(self, data: Any) -> None:
        if not self.closed:
            super()._send_data(data)


class Server(LanguageServer):
    """A language server that leaves with the right status and waits for nobody."""

    exit_code = 1  # end of input without shutdown and exit is abnormal

    def __init__(self, name: str, version: str) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            name,
            version,
            protocol_cls=Protocol,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
        )

    def run(self) -> None:
        """Serve over stdio until the client leaves; does not return."""
        try:
            self.start_io()
        finally:
            self.at_exit()
            sys.stderr.flush()
            os._exit(self.exit_code)

    def at_exit(self) -> None:
        """Called once, when the conversation is over."""

    def shutdown(self) -> None:
        """Let the loop end, and wait for no thread."""
        if self._stop_event is not None:
            self._stop_event.set()
        if self._thread_pool:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
