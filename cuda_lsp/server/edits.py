"""Lines written into a document."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.workspace import TextDocument


def indent_of(document: TextDocument, line: int) -> str:
    """The white space that a line (from 0) begins with."""
    content = document.lines[line]
    return content[: len(content) - len(content.lstrip())]


def line_above(document: TextDocument, line: int, text: str) -> lsp.WorkspaceEdit:
    """``text`` on a line of its own above another one (from 0), as far in."""
    at = lsp.Position(line, 0)
    edit = lsp.TextEdit(lsp.Range(at, at), f"{indent_of(document, line)}{text}\n")
    return lsp.WorkspaceEdit(changes={document.uri: [edit]})
