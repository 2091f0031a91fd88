"""Work-arounds for pygls 2.1 and lsprotocol 2025.0, each until upstream changes.

1. Documents are those of ``documents``: their lines are LSP's, and late changes are put where they belong.
2. ``shutdown`` with requests in flight: they are cancelled first (upstream iterates a changing dict).
3. Notifications whose JSON is there already are written as they are.
4. After ``exit`` nothing is written; the exit status says whether ``shutdown`` came before; worker threads
   are not waited for.
5. Messages are read by ``messages``; what the client got wrong is answered, and logged in one line.
6. What came of a notification is forgotten when it is handled (upstream keeps the future of each).
7. A request that upstream hands on (a command) is cancelled with what it was handed on to (upstream only
   answers that it was cancelled, and the command goes on).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Generator
from functools import partial
from typing import Any, cast

from cattrs import transform_error
from lsprotocol import types as lsp
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
)
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
)
from pygls.workspace import Workspace

from cuda_lsp.server import messages
from cuda_lsp.server.documents import Documents

log = logging.getLogger(__name__)

_LONGEST_REASON = 300  # characters


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

    def take(self, data: dict[str, Any]) -> None:
        """Handle one message of the client's."""
        try:
            message = self.structure_message(data)
            self.handle_message(message)
        except JsonRpcException as error:
            self.refuse(data.get("id") if "method" in data else None, error)
        except Exception:
            log.exception("a message was not handled")
            if "method" in data and "id" in data:
                self.refuse(data["id"], JsonRpcInternalError("the message was not handled"))

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The typed message. Raises JsonRpcInvalidRequest or JsonRpcInvalidParams, which say why."""
        method: Any = data.get("method")
        answers = method is None and "id" in data and ("result" in data or "error" in data)
        if not answers and not isinstance(method, str):
            raise JsonRpcInvalidRequest("a message has a method, or is an answer")
        if isinstance(data.get("id"), (dict, list)):
            raise JsonRpcInvalidRequest("an id is a number or a text")
        try:
            return self._structured({**data, "jsonrpc": self.VERSION}, method)
        except Exception as error:  # noqa: BLE001 - whatever converting what clients send may raise
            reason = "; ".join(transform_error(error, path="message"))
            raise JsonRpcInvalidParams(f"{method}: {reason[:_LONGEST_REASON]}") from None

    def _structured(self, data: dict[str, Any], method: str | None) -> Any:
        if method is not None:
            otherwise: Any = JsonRPCRequestMessage if "id" in data else JsonRPCNotification
            typed = self.get_message_type(method) or otherwise
            return self._converter.structure({"params": None, **data}, typed)
        if "error" in data:
            return self._converter.structure(data, lsp.ResponseErrorMessage)
        expected: Any = self._result_types.pop(data["id"], None) or JsonRPCResponseMessage
        return self._converter.structure(data, expected)

    def refuse(self, number: Any, error: JsonRpcException) -> None:
        """Say what was wrong with a message: in its answer, when it has an id, and in the log."""
        cancelled = error.code == lsp.LSPErrorCodes.ServerCancelled
        log.log(logging.INFO if cancelled else logging.WARNING, "%s", error)
        if isinstance(number, (int, str)) or isinstance(error, (JsonRpcParseError, JsonRpcInvalidRequest)):
            number = number if isinstance(number, (int, str)) else None
            answer = {"code": error.code, "message": error.message}
            if error.data is not None:
                answer["data"] = error.data
            self._send_data({"jsonrpc": self.VERSION, "id": number, "error": answer})

    def _execute_handler(
        self, msg_id: Any, handler: Any, callback: Any, *arguments: Any, **named: Any
    ) -> None:
        super()._execute_handler(msg_id, handler, callback, *arguments, **named)
        future = self._request_futures.get(msg_id)
        asked = getattr(callback, "keywords", {}).get("result_future")  # of the request that was handed on
        notified = callback == self._check_handler_result
        if future is not None and (notified or asked is not None):  # nobody asks for it by this number
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))
        if future is not None and asked is not None:
            asked.add_done_callback(partial(_cancel_with, future))

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        problem = None if future.cancelled() else future.exception()
        if isinstance(problem, JsonRpcException) and not isinstance(problem, JsonRpcInternalError):
            self._request_futures.pop(msg_id, None)
            self.refuse(msg_id, problem)
        else:
            super()._send_handler_result(future, msg_id=msg_id)

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


def _cancel_with(future: Any, asked: Any) -> None:
    if asked.cancelled():
        future.cancel()


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
        self._left = asyncio.Event()

    def run(self) -> None:
        """Serve over stdio until the client leaves; does not return."""
        cast("Protocol", self.protocol).set_writer(StdoutWriter(sys.stdout.buffer))
        try:
            asyncio.run(self._serve())
        except BrokenPipeError:
            log.warning("the client left without a word")
        finally:
            self.at_exit()
            sys.stderr.flush()
            os._exit(self.exit_code)

    async def _serve(self) -> None:
        protocol = cast("Protocol", self.protocol)
        reading = messages.serve(sys.stdin.buffer, self.thread_pool, protocol.take, protocol.refuse)
        done = {asyncio.ensure_future(reading), asyncio.ensure_future(self._left.wait())}
        await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)

    def at_exit(self) -> None:
        """Called once, when the conversation is over."""

    def shutdown(self) -> None:
        """Let the loop end, and wait for no thread."""
        self._left.set()
        if self._thread_pool:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
