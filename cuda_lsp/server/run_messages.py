"""The message at the end of a dynamic check, with a link to the place to look at first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from attrs import frozen
from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import SourceRange
from cuda_lsp.server.positions import path_of, to_client, uri_of

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from cuda_lsp.server.pygls_fixes import Protocol


@frozen
class Told:
    """What a check came to, for the user; no ``text``: nothing is to be said. ``place``: to look at first."""

    text: str = ""
    failed: bool = False
    place: SourceRange | None = None


_waiting: set[asyncio.Task[None]] = set()  # for the answers of users, who take their time


def tell(server: LanguageServer, told: Told, document: TextDocument) -> None:
    """Show what a check came to; returns at once.

    Clients get a button beside the message only when they ask for it (``messageActions``): some editors ask
    their user at once, and wait.
    """
    if not told.text:
        return
    kind = lsp.MessageType.Error if told.failed else lsp.MessageType.Info
    options = cast("Protocol", server.protocol).options
    if told.place is None or not options.get("messageActions"):
        return server.window_show_message(lsp.ShowMessageParams(kind, told.text))
    task = asyncio.ensure_future(_linked(server, kind, told.text, told.place, document))
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)
    return None


async def _linked(
    server: LanguageServer, kind: lsp.MessageType, text: str, place: SourceRange, document: TextDocument
) -> None:
    show = lsp.MessageActionItem(f"Show Line {place.start.line}")
    chosen = await server.window_show_message_request_async(lsp.ShowMessageRequestParams(kind, text, [show]))
    if chosen is not None:
        same = place.path.absolute() == path_of(document.uri).absolute()
        await server.window_show_document_async(
            lsp.ShowDocumentParams(
                document.uri if same else uri_of(place.path),
                take_focus=True,
                selection=to_client(place, document if same else None),
            )
        )
