"""Errors inside functions of included headers, for the kernels that may call those functions.

Headers are full of host code that does not parse for the device; that is nobody's concern. But a device
function of a header that clang could not read makes every kernel that reaches it (by name, through other
header functions too) incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp.frontend.compile_errors import CompileError
from cuda_lsp.frontend.kernel_sources import callable_on_device
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.model import Position, SourceRange

# CXCursorKind numbers: functions, then what may hold them.
_FUNCTIONS = frozenset({8, 21, 24, 25, 26, 30})
_SCOPES = frozenset({1, 2, 4, 22, 23, 31})
_WORD = re.compile(rb"[A-Za-z_]\w*")


@frozen
class HeaderProblem:
    """An error of clang outside the main file; ``offset`` and ``column`` in bytes."""

    message: str
    path: str
    offset: int
    line: int
    column: int

    @property
    def range(self) -> SourceRange:
        """The character where it is reported."""
        start = Position(self.line, self.column)
        return SourceRange(Path(self.path), start, Position(self.line, self.column + 1))

    @property
    def error(self) -> CompileError:
        """As it is told of a kernel."""
        return CompileError(self.range, self.message)


@frozen(eq=False)
class _Function:
    name: bytes
    problems: tuple[HeaderProblem, ...]
    words: frozenset[bytes]


class HeaderFunctions:
    """The functions of the headers that hold problems, with what they call."""

    def __init__(self, ast: Ast, root: RawCursor, problems: Sequence[HeaderProblem]) -> None:
        self._problems: dict[str, list[HeaderProblem]] = {}
        for problem in problems:
            self._problems.setdefault(problem.path, []).append(problem)
        self._functions: list[_Function] = []
        self._walk(ast, root)

    def _walk(self, ast: Ast, cursor: RawCursor) -> None:
        for child in ast.children(cursor):
            if child.kind not in _FUNCTIONS and child.kind not in _SCOPES:
                continue
            extent = ast.lib.clang_getCursorExtent(child)
            file, _, _, start = ast.place(ast.lib.clang_getRangeStart(extent))
            path = str(ast.path(file)) if file else ""
            problems = self._problems.get(path)
            if problems is None:
                continue
            if child.kind in _SCOPES:
                self._walk(ast, child)
                continue
            end = ast.place(ast.lib.clang_getRangeEnd(extent))[3]
            contents = ast.contents(file)
            if not callable_on_device(ast, child, contents[start:end]):
                continue
            inside = tuple(p for p in problems if start <= p.offset < end)
            words = frozenset(_WORD.findall(contents, start, end))
            self._functions.append(_Function(ast.spelling(child).encode(), inside, words))

    def reached(self, words: set[bytes]) -> tuple[list[CompileError], set[bytes]]:
        """Errors inside functions that code with these ``words`` may call; and the words of all of it."""
        known = set(words)
        remaining = self._functions
        found: dict[HeaderProblem, None] = {}
        while True:
            called = [f for f in remaining if f.name in known or f.name.startswith(b"operator")]
            if not called:
                return [problem.error for problem in found], known
            here = {id(function) for function in called}
            remaining = [f for f in remaining if id(f) not in here]
            for function in called:
                known |= function.words
                found.update(dict.fromkeys(function.problems))
