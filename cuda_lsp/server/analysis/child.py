"""The inside of the analysis process: messages of the server in, reports out, until the server is gone.

Whatever goes wrong with the text that is worked on, in clang or in our own code, ends this process and
nothing else: the server sees on the slate which text it was. It has limits of memory, writes no core
files, and is killed together with the server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from cuda_lsp.children.confined import OUT_OF_MEMORY, confine
from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport
from cuda_lsp.server.analysis.documents import Documents, Listener
from cuda_lsp.server.analysis.messages import MEMORY_LIMIT, Closed, Failed, Failure, Log
from cuda_lsp.server.analysis.reports import Sender
from cuda_lsp.server.analysis.slate import Slate
from cuda_lsp.static.analyze import Analyzer

_ASKED_AT_ONCE = 4

T = TypeVar("T")


def main(descriptor: str, slate: str, folder: str) -> None:
    """The whole process: a socket and a slate by number, and the folder that relative paths start in."""
    _limit()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    connection = Connection(int(descriptor))
    try:
        _Child(connection, Slate(int(slate))).serve()
    except (EOFError, OSError):
        os._exit(0)  # the server is gone; solver processes see that of us


def _limit() -> None:
    confine(MEMORY_LIMIT)
    sys.setswitchinterval(0.001)  # texts are taken while others are analysed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the server's affair


class _Child(Listener):
    """Between the socket and the documents."""

    def __init__(self, connection: Connection, slate: Slate) -> None:
        self._connection = connection
        self._slate = slate
        self._sender = Sender()
        self._sending = threading.Lock()
        self._helpers = ThreadPoolExecutor(_ASKED_AT_ONCE, "cuda-lsp-asked")
        root = logging.getLogger()
        root.addHandler(_ToServer(self._say))

    def serve(self) -> NoReturn:
        """Take messages for ever. Raises EOFError when the server is gone."""
        if not self._connection.poll():
            Analyzer(Settings(solver=False)).warm_up()  # the client has still to tell the settings
        number, settings, level = self._next()
        logging.getLogger().setLevel(level)
        self._documents = Documents(settings, self, self._slate, number)
        while True:
            number, action, *arguments = self._next()
            getattr(self, f"_{action}")(number, *arguments)

    def _next(self) -> Any:
        message = pickle.loads(self._connection.recv_bytes())
        self._slate.received(message[0])
        return message

    def _say(self, message: Any) -> None:
        with self._sending:
            self._send(message)

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # the server is gone, and so are we soon
            self._connection.send_bytes(pickle.dumps(message, 5))

    # ------------------------------------------------------------------------- what the server says

    def _change(self, number: int, uri: str, path: Path, text: str) -> None:
        self._documents.change(number, uri, path, text)

    def _look(self, number: int, path: Path, line: int) -> None:
        del number
        self._documents.look(path, line)

    def _close(self, number: int, uri: str) -> None:
        del number
        self._documents.close(uri)

    def _refresh(self, number: int) -> None:
        del number
        self._documents.refresh()

    def _try(self, number: int, uri: str, of: int, text: str, settled: bool) -> None:
        self._answer(number, lambda: self._documents.tried(number, uri, of, text, settled))

    def _ask(self, number: int, work: Callable[[Analyzer], Any]) -> None:
        self._answer(number, lambda: work(self._documents.analyzer))

    def _answer(self, number: int, work: Callable[[], Any]) -> None:
        """Work in a thread of its own."""

        def done() -> None:
            try:
                answer = work()
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                answer = Failure(f"{type(error).__name__}: {error}")
            self._say((number, answer))

        self._helpers.submit(done)

    # ------------------------------------------------------------------------- what the server hears

    def reported(self, uri: str, report: FileReport) -> None:
        origins = self._documents.analyzer.origins(report.path)
        with self._sending:
            self._send(self._sender.sent(uri, report, origins))

    def failed(self, uri: str, number: int, error: Exception) -> None:
        if isinstance(error, MemoryError):
            os._exit(OUT_OF_MEMORY)
        self._say(Failed(uri, number, f"internal error {type(error).__name__}: {error}"[:300]))

    def closed(self, uri: str) -> None:
        with self._sending:
            self._sender.forget(uri)
            self._send(Closed(uri))


class _ToServer(logging.Handler):
    """Log records become messages."""

    def __init__(self, say: Callable[[Any], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(Log(record.name, record.levelno, self.format(record)))
