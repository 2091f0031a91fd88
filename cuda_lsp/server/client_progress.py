"""Work that the client shows while it goes on, and lets its user cancel."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

_POLL = 0.05

_T = TypeVar("_T")


class UserCancelled(Exception):
    """The user has cancelled what a progress shows."""


class Progress:
    """A work-done progress of the client; silent where it has none."""

    def __init__(self, server: LanguageServer, token: int | str | None) -> None:
        self._server = server
        self._token = token
        self._loop = asyncio.get_running_loop()

    @classmethod
    @asynccontextmanager
    async def shown(
        cls, server: LanguageServer, title: str, token: int | str | None = None
    ) -> AsyncGenerator[Progress]:
        """One with this title, that ends with the block, however that ends. ``token``: the client's own."""
        progress = await cls.begin(server, title, token)
        try:
            yield progress
        except (asyncio.CancelledError, UserCancelled):
            progress.end("cancelled")
            raise
        except Exception:
            progress.end("failed")
            raise
        progress.end("done")

    @classmethod
    async def begin(cls, server: LanguageServer, title: str, token: int | str | None = None) -> Progress:
        """Show it, with this title."""
        if token is None:
            window = server.client_capabilities.window
            if not (window and window.work_done_progress):
                return cls(server, None)
            token = str(uuid.uuid4())
            made: Any = server.work_done_progress
            await made.create_async(token)
        server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title=title, cancellable=True))
        return cls(server, token)

    def stage(self, text: str) -> None:
        """Called from the runner's thread."""
        self._loop.call_soon_threadsafe(self._report, text)

    def _report(self, text: str) -> None:
        if self._token is not None:
            self._server.work_done_progress.report(self._token, lsp.WorkDoneProgressReport(message=text))

    def cancelled(self) -> bool:
        """Whether the user has cancelled it."""
        progress: Any = self._server.work_done_progress
        future = progress.tokens.get(self._token) if self._token is not None else None
        return future is not None and future.cancelled()

    async def unless_cancelled(self, work: Awaitable[_T]) -> _T:
        """What comes of it. Raises UserCancelled as soon as the user has cancelled it, and drops the work."""
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=_POLL))[0]:
                if self.cancelled():
                    raise UserCancelled
        finally:
            task.cancel()
        return task.result()

    def end(self, text: str) -> None:
        """Take it away; the first word is the last."""
        token, self._token = self._token, None
        if token is not None:
            made: Any = self._server.work_done_progress
            made.tokens.pop(token, None)
            made.end(token, lsp.WorkDoneProgressEnd(message=text))
