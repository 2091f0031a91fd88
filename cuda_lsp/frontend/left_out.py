"""Code of a kernel that the preprocessor leaves out: a verdict is given without it, and says so.

Which branches of conditional directives clang has compiled is seen in its tree: something of them is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.tree import Ast, Node

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b([^\n]*)", re.M)
_TOUCHES = re.compile(rb"\[|->|\basm\b|\batomic|__sync|\.sync\b|\*[ \t]*\w[^;=()*]*\*?=(?!=)")
_LONGEST = 60  # letters of a directive that are quoted


class _Branch(NamedTuple):
    """From behind a directive to the next one of its level, as byte offsets."""

    directive: bytes
    start: int
    end: int


def left_out(ast: Ast, kernel: KernelSource, source: SourceText) -> tuple[str, ...]:
    """What a kernel's text has that touches memory, or orders threads, and is not compiled, for people."""
    start, end = kernel.offsets
    if not _DIRECTIVE.search(source.data, start, end):
        return ()
    places = sorted(_places(ast, kernel.cursor))
    told: list[str] = []
    behind = start
    for branch in sorted(_branches(source.data, start, end), key=lambda b: (b.start, -b.end)):
        compiled = any(branch.start <= place < branch.end for place in places)
        text = _code(source.data[branch.start : branch.end])
        if branch.start < behind or compiled or not _TOUCHES.search(text):
            continue
        behind = branch.end
        told.append(_told(branch, source))
    return tuple(told)


def _code(data: bytes) -> bytes:
    return blanked(data.decode("latin-1")).encode("latin-1")


def _told(branch: _Branch, source: SourceText) -> str:
    text = source.data[branch.start : branch.end]
    first = source.position(branch.start + len(text) - len(text.lstrip())).line
    last = source.position(branch.start + len(text.rstrip()) - 1).line
    lines, them = (f"line {first}", "it") if first == last else (f"lines {first} to {last}", "them")
    directive = " ".join(branch.directive.decode("utf-8", "replace").split())[:_LONGEST]
    return f"the preprocessor leaves out {lines} (`{directive}`), and nobody looks at {them}"


def _places(ast: Ast, cursor: RawCursor) -> Iterator[int]:
    """Where the parts of a function begin, as byte offsets."""
    waiting: list[Node] = [ast.snapshot(cursor)]
    while waiting:
        node = waiting.pop()
        yield ast.place(ast.lib.clang_getCursorLocation(node.cursor))[3]
        waiting += node.children


def _branches(data: bytes, start: int, end: int) -> Iterator[_Branch]:
    """All of them, outer and inner ones."""
    open_: list[tuple[bytes, int]] = []
    for directive in _DIRECTIVE.finditer(data, start, end):
        word = directive[1]
        if not word.startswith(b"if") and open_:
            text, begin = open_.pop()
            yield _Branch(text, begin, directive.start())
        if word != b"endif":
            open_.append((_code(directive[0]).strip(), directive.end()))
