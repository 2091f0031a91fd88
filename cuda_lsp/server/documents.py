"""Open documents, as the protocol means them and as clients send them.

Lines end with LF, CRLF or CR only: ``str.splitlines`` also cuts at form feed, NEL and others, and incremental
edits would then land in the wrong place. Changes of documents that were never opened are left alone.

Changes count in the order of their versions. Clients are to send them so; Helix 25.01 sends each from a task
of its own, and on a busy machine the second letter of a word comes before the first: the server then had
another text than the editor, for good. A change that is older than others which came a moment ago is put
before them.
"""

from __future__ import annotations

import copy
import logging
import re
import time
from collections import deque
from typing import Any, NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.workspace import TextDocument, Workspace

log = logging.getLogger(__name__)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_LATE_S = 1.0  # no task is behind by more: a client that counts anew is taken at its word
_REMEMBERED = 64  # changes; each holds a text


class _Change(NamedTuple):
    """``before``: the text that it changed. ``taken``: when it came, by the monotonic clock."""

    version: int
    event: lsp.TextDocumentContentChangeEvent
    before: str
    taken: float


class Document(TextDocument):
    """A text document whose lines are LSP's, cut once per text."""

    _cut: tuple[str, tuple[str, ...]] | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._changes: deque[_Change] = deque(maxlen=_REMEMBERED)

    @property
    def lines(self) -> tuple[str, ...]:  # type: ignore[override]
        """The lines with their ends, cut at LF, CRLF and CR."""
        text = self.source
        if self._cut is None or self._cut[0] is not text:
            self._cut = (text, tuple(_LINE.findall(text)))
        return self._cut[1]

    def take(self, version: int, event: lsp.TextDocumentContentChangeEvent) -> None:
        """Make a change that leads to ``version``, before those of later versions that came just now."""
        now = time.monotonic()
        later = deque[_Change]()
        while (
            self._changes and self._changes[-1].version > version and self._changes[-1].taken > now - _LATE_S
        ):
            later.appendleft(self._changes.pop())
        if later:
            log.debug("version %d of %s came after %d", version, self.uri, later[-1].version)
            self._source = later[0].before
        for number, change in ((version, event), *((c.version, c.event) for c in later)):
            self._changes.append(_Change(number, change, self.source, now))
            self.apply_change(copy.deepcopy(change))  # upstream writes into places that are none
            self.version = number


def as_it_is(document: TextDocument) -> TextDocument:
    """A copy that stays as it is while the document is edited, for those who work in a thread."""
    return Document(document.uri, document.source, document.version, position_codec=document.position_codec)


class Documents(Workspace):
    """A workspace of ``Document``."""

    def update_text_document(
        self,
        text_doc: lsp.VersionedTextDocumentIdentifier,
        change: lsp.TextDocumentContentChangeEvent,
    ) -> None:
        """Take a change of an open document; one of another is logged."""
        document = self._text_documents.get(unquote(text_doc.uri))  # as pygls keeps them
        if isinstance(document, Document):
            document.take(text_doc.version, change)
        else:
            log.warning("a change of %s, which is not open", text_doc.uri)

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
