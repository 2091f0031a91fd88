"""Statements of which clang keeps nothing: loops over an object whose class it could not make, for one.

Where the class's own text is wrong, and not the place that uses it, clang says nothing of the place either.
So the text between the statements of a block is looked at, where clang complains of anything at all.
"""

from __future__ import annotations

import re

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.clang_errors import complains
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.tree import Ast, Node
from cuda_lsp.model import Position, SourceRange

_KEYWORDS = frozenset(("for", "while", "if", "do", "switch", "return", "else", "case", "default", "try"))
_NAMING = frozenset(("using", "typedef"))
_DIRECTIVE = re.compile(r"(?<!\s)\s*#\s*(\w*)")
_WORD = re.compile(r"[\s;:]*(\w*)\s*")
_LONGEST = 60  # letters of a statement that are quoted


def lost(ast: Ast, block: Node) -> dict[int, tuple[str, SourceRange]]:
    """What stands in a block's text before its statements, by their place among them, and in none of them."""
    if not complains(ast):
        return {}
    _, file, start, end = ast.extent(block)
    data = ast.contents(file)
    if data[start : start + 1] != b"{" or data[end - 1 : end] != b"}":
        return {}  # a macro writes it
    found: dict[int, tuple[str, SourceRange]] = {}
    behind = start + 1
    places = [ast.extent(child)[1:] for child in block.children]
    for index, (within, begin, stop) in enumerate([*places, (file, end - 1, end)]):
        if within == file and begin >= behind and (at := _statement(data[behind:begin])) is not None:
            found[index] = _told(ast, block, data, behind + at, begin)
        behind = max(behind, stop) if within == file else behind
    return found


def loses(ast: Ast, function: RawCursor) -> bool:
    """Whether a function has lost a statement."""
    declaration = ast.declaration(function) if complains(ast) else None
    return declaration is not None and _loses(ast, ast.body(declaration))


def _loses(ast: Ast, node: Node) -> bool:
    if node.kind == K.COMPOUND and lost(ast, node):
        return True
    return any(_loses(ast, child) for child in node.children)


def is_statement(ast: Ast, nothing: Node) -> bool:
    """Whether where clang has an empty statement there is one of which it keeps nothing."""
    if not complains(ast):
        return False
    text = ast.text_from(nothing)[:_LONGEST]
    word = _WORD.match(text) if not text.startswith(";") else None  # ``;`` says nothing of what is behind it
    return word is not None and word[1] in _KEYWORDS


def _told(ast: Ast, block: Node, data: bytes, at: int, end: int) -> tuple[str, SourceRange]:
    whole, _, start, _ = ast.extent(block)
    line = whole.start.line + data.count(b"\n", start, at)
    column = len(data[data.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", "replace"))
    text = " ".join(data[at:end].decode("utf-8", "replace").split())[:_LONGEST]
    begin = Position(line, column + 1)
    return text, SourceRange(whole.path, begin, Position(line, column + 2))


def _statement(gap: bytes) -> int | None:
    """Where a statement begins in text that is in none; None: macros, attributes and directives at most."""
    if not gap.strip(b" \t\r\n;"):
        return None
    text = _compiled(blanked(gap.decode("latin-1")))
    at = begin = _behind_a_call(text)
    while (match := _WORD.match(text, at)) is not None and at < len(text):
        if at == begin or ";" in text[at : match.start(1)]:
            begin = match.start(1)
        at = match.end()
        if match[1] in _KEYWORDS:
            return match.start(1)
        if match[1] in _NAMING:
            at = text.find(";", at) % (len(text) + 1)
        elif at < len(text) and text[at] in "([":
            at = _closed(text, at)
        elif not match[1]:
            return begin if at < len(text) else None
    return None


def _behind_a_call(text: str) -> int:
    """Where the text begins, or where what it is in the middle of ends: the use of a macro of statements."""
    depth = behind = 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            depth, behind = 0, place + 1
    return behind


def _closed(text: str, at: int) -> int:
    """Behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place + 1
    return len(text)


def _compiled(text: str) -> str:
    """``text`` with directives, and what stands between them, replaced by spaces."""
    lines, depth, goes_on = text.split("\n"), 0, False
    for number, line in enumerate(lines):
        directive = None if goes_on else _DIRECTIVE.match(line)
        if directive is not None:
            depth += directive[1].startswith("if") - (directive[1] == "endif" and depth > 0)
            depth = max(depth, int(directive[1].startswith("el")))
        goes_on = (directive is not None or goes_on) and line.rstrip().endswith("\\")
        if directive is not None or depth or goes_on:
            lines[number] = " " * len(line)
    return "\n".join(lines)
