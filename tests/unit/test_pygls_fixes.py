"""Our work-arounds for pygls, where no conversation shows them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from lsprotocol import types as lsp

from cuda_lsp.server.documents import Documents
from cuda_lsp.server.pygls_fixes import Protocol, Server

URI = Path("/fuzz/k.cu").as_uri()


def test_nothing_is_kept_of_notifications_that_were_handled():
    """A conversation of a day has a hundred thousand."""

    async def conversation() -> None:
        server = Server("test", "1")
        protocol = cast("Any", server.protocol)
        assert isinstance(protocol, Protocol)
        server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(lambda params: None)
        protocol._workspace = Documents(None)
        protocol.take(_message("didOpen", textDocument=_document(version=1, languageId="cuda", text="a")))
        for version in range(2, 50):
            changes = [{"text": f"{version}"}]
            document = {"uri": URI, "version": version}
            protocol.take(_message("didChange", textDocument=document, contentChanges=changes))
        await asyncio.sleep(0)
        assert protocol.workspace.get_text_document(URI).source == "49"
        assert protocol._request_futures == {}

    asyncio.run(conversation())


def _message(kind: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"textDocument/{kind}", "params": params}


def _document(**more: Any) -> dict[str, Any]:
    return {"uri": URI, **more}
