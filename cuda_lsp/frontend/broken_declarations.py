"""Errors in declarations outside functions, for the kernels that name what is declared there.

Clang keeps an array whose size it does not know, or a record with a member of unknown type, and marks them;
of what a kernel does with them nothing is left. An alias of an unknown type it takes for ``int`` and says no
more, so that a kernel that names the alias would be read with the wrong type.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from cuda_lsp.frontend.compile_errors import CompileError
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.tree import Ast

# CXCursorKind numbers.
_RECORDS = frozenset({2, 3, 4, 31, 32})
_SCOPES = _RECORDS | {22, 23}
_FIELD, _VARIABLE = 6, 9
_ALIASES = frozenset({20, 36})
_DECLARATIONS = _ALIASES | {_FIELD, _VARIABLE}


@frozen
class BrokenDeclarations:
    """Names with the errors of what declares them."""

    objects: tuple[tuple[bytes, CompileError], ...] = ()
    aliases: tuple[tuple[bytes, CompileError], ...] = ()

    def misread(self, words: set[bytes]) -> list[CompileError]:
        """Errors of aliases among ``words``, which mean another type than clang takes them for."""
        return [error for name, error in self.aliases if name in words]

    def named(self, words: set[bytes]) -> list[CompileError]:
        """Errors of all declarations among ``words``."""
        return [error for name, error in (*self.aliases, *self.objects) if name in words]

    def moved(self, path: Path, last: int, lines: int) -> BrokenDeclarations:
        """After ``lines`` more lines before line ``last`` of the file ``path``."""
        if not lines:
            return self
        return BrokenDeclarations(
            *(
                tuple((name, _moved(error, path, last, lines)) for name, error in found)
                for found in (self.objects, self.aliases)
            )
        )


def _moved(error: CompileError, path: Path, last: int, lines: int) -> CompileError:
    if error.range.path != path or error.range.start.line <= last:
        return error
    start, end = (evolve(p, line=p.line + lines) for p in (error.range.start, error.range.end))
    return evolve(error, range=evolve(error.range, start=start, end=end))


def broken_declarations(
    ast: Ast, root: RawCursor, problems: Iterable[tuple[str, int, CompileError]]
) -> BrokenDeclarations:
    """What one parse leaves without a meaning; ``problems``: file, byte offset and error of each."""
    files: dict[str, list[tuple[int, CompileError]]] = {}
    for path, offset, error in problems:
        files.setdefault(path, []).append((offset, error))
    finder = _Finder(ast, {path: sorted(found, key=lambda f: f[0]) for path, found in files.items()})
    if files:
        finder.walk(root, b"")
    return BrokenDeclarations(tuple(finder.objects), tuple(finder.aliases))


class _Finder:
    def __init__(self, ast: Ast, problems: dict[str, list[tuple[int, CompileError]]]) -> None:
        self.ast = ast
        self.problems = problems
        self.objects: list[tuple[bytes, CompileError]] = []
        self.aliases: list[tuple[bytes, CompileError]] = []

    def walk(self, cursor: RawCursor, record: bytes) -> None:
        ast = self.ast
        for child in ast.children(cursor):
            kind = child.kind
            if kind in _SCOPES:
                name = ast.spelling(child).encode() if kind in _RECORDS else b""
                if self._errors(child, whole=False):
                    self.walk(child, name)
            elif kind in _DECLARATIONS and ast.lib.clang_isInvalidDeclaration(child):
                name = record if kind == _FIELD else ast.spelling(child).encode()
                alias = kind in _ALIASES
                found = self.aliases if alias else self.objects
                found += ((name, evolve(e, of_alias=alias)) for e in self._errors(child, whole=True))

    def _errors(self, cursor: RawCursor, *, whole: bool) -> Sequence[CompileError]:
        """Those inside; ``whole``: up to the end of the statement, as clang's extents end before an error."""
        lib = self.ast.lib
        extent = lib.clang_getCursorExtent(cursor)
        file, _, _, start = self.ast.place(lib.clang_getRangeStart(extent))
        problems = self.problems.get(str(self.ast.path(file))) if file else None
        if not problems:
            return ()
        end = self.ast.place(lib.clang_getRangeEnd(extent))[3]
        end = self.ast.contents(file).find(b";", end) if whole else end
        first, behind = (bisect_left(problems, offset, key=lambda p: p[0]) for offset in (start, end))
        return [error for _, error in problems[first:behind]]
